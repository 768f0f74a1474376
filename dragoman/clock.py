"""Times of day with a.m. or p.m."""

import re
from typing import Final

NOON: Final = 12
# 3 p.m., 3:30pm, 11.20 PM, 2:49:50 PM, but neither 13 pm nor "um 5 am Bahnhof". A full stop at the end of a sentence
# counts as a part of the time.
TWELVE_HOURS: Final = re.compile(
    r"(?<![\d:.,])(?P<hour>1[0-2]|0?[1-9])(?P<minutes>(?:[:.][0-5]\d){1,2})?[ \u00a0\u202f]?"
    r"(?P<half>[ap]\.m|am(?! [A-ZÄÖÜ])|pm|[AP]\.?M)\b\.?"
)


def in_24_hours(time: re.Match[str]) -> str:
    """Write a match of `TWELVE_HOURS` as 18:45, or as 18 if it has no minutes."""
    hour = int(time["hour"]) % NOON + NOON * (time["half"][0] in "pP")
    return f"{hour}{(time['minutes'] or '').replace('.', ':')}"
