"""Times of day that are written with a.m. or p.m."""

import re
from typing import Final

NOON: Final = 12
# 3 p.m., 3:30pm, 11.20 PM, 2:49:50 PM, and not 13 pm, nor "um 5 am Bahnhof"; a stop that ends a sentence is the time's
# own, too.
TWELVE_HOURS: Final = re.compile(
    r"(?<![\d:.,])(?P<hour>1[0-2]|0?[1-9])(?P<minutes>(?:[:.][0-5]\d){1,2})?[ \u00a0\u202f]?"
    r"(?P<half>[ap]\.m|am(?! [A-ZÄÖÜ])|pm|[AP]\.?M)\b\.?"
)


def in_24_hours(time: re.Match[str]) -> str:
    """Write a time that `TWELVE_HOURS` found as 18:45, or as 18 where it has no minutes."""
    hour = int(time["hour"]) % NOON + NOON * (time["half"][0] in "pP")
    return f"{hour}{(time['minutes'] or '').replace('.', ':')}"
