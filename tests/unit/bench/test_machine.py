import re
from pathlib import Path

import pytest

from bench.machine import environment, installed, now, processor

XEON = """processor : 0
model name : Some Xeon
flags : fpu sse2 avx2 avx512f avx512_vnni amx_int8

processor : 1
model name : Another
flags : fpu
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (XEON, "Some Xeon (AVX2, AVX-512, AVX-512 VNNI, AMX)"),
        ("model name : Old\nflags : fpu sse2 avx2\n", "Old (AVX2)"),
        ("model name : Older\nflags : fpu\n", "Older"),
    ],
)
def test_the_instructions_are_named(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert processor(tmp_path / "cpuinfo") == expected


def test_elsewhere_there_is_a_name(tmp_path: Path) -> None:
    assert isinstance(processor(tmp_path / "missing"), str)


def test_a_load_says_where_it_was_made() -> None:
    found = environment()
    assert set(found) == {"dragoman", "grpcio", "system", "python", "processor", "cores"}
    assert isinstance(found["cores"], int)
    assert found["cores"] >= 1


def test_a_package_that_is_not_installed_has_no_version() -> None:
    assert installed("grpcio") == environment()["grpcio"]
    assert installed("no-such-package-anywhere") is None


def test_the_time_is_in_utc_to_the_second() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", now())
