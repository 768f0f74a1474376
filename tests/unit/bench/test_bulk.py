"""The table of what bulk jobs cost, and the size from which Ray pays."""

from bench.bulk import Way, as_markdown, pays_from

WAYS = [
    Way("translate", 9.0, 0.0, 160.4, 0),
    Way("bulk --no-ray", 10.0, 0.0, 180.0, 0),
    Way("bulk --ray", 25.0, 0.0, 1900.0, 0),
    Way("bulk --address", 2.0, 11.0, 100.0, 1),
]


def test_the_table() -> None:
    lines = as_markdown(WAYS, 10_000).splitlines()
    assert lines[0].startswith("| 10,000 lines | CPU s |")
    assert lines[2] == "| translate | 9.0 | 0.0 | 0.90 | 160 | 0 |"
    assert lines[5] == "| bulk --address | 13.0 | 11.0 | 1.30 | 100 | 1 |"


def test_ray_pays_where_its_own_time_is_a_tenth() -> None:
    # 15 s of its own are a tenth of 150 s, which are 150,000 lines of 1 ms and of 40 bytes.
    assert pays_from(WAYS, 10_000, 400_000).endswith("from 150,000 lines on (6.0 MB of text).")
