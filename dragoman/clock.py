"""Times of day that are written with a.m. or p.m."""

import re
from typing import Final

# 3 p.m., 3:30pm, 11.20 PM, and not 13 pm, nor "um 5 am Bahnhof"; a stop that ends a sentence is the time's own, too.
TWELVE_HOURS: Final = re.compile(
    r"(?<![\d:.,])(?P<hour>1[0-2]|0?[1-9])(?:[:.](?P<minute>[0-5]\d))?[ \u00a0\u202f]?"
    r"(?P<half>[ap]\.m|am(?! [A-ZÄÖÜ])|pm|[AP]\.?M)\b\.?"
)


def hour_of(time: re.Match[str]) -> int:
    """Give the hour of a time that `TWELVE_HOURS` found, 0 to 23."""
    return int(time["hour"]) % 12 + 12 * (time["half"][0] in "pP")
