"""Times with a.m. or p.m. as they are found, and written with 24 hours."""

import pytest

from dragoman.clock import TWELVE_HOURS, in_24_hours


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("At 6:45 p.m.", ["18:45"]),
        ("12 a.m., 12:05 AM and 12 PM", ["0", "0:05", "12"]),
        ("09.30am to 1pm", ["9:30", "13"]),
        ("since 2:49:50 PM", ["14:49:50"]),
        ("13 pm, 3.14 pm2, 7 pmol, um 5 am Bahnhof", []),
    ],
)
def test_times_are_found_and_written_with_24_hours(text: str, found: list[str]) -> None:
    assert [in_24_hours(time) for time in TWELVE_HOURS.finditer(text)] == found
