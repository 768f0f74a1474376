from pathlib import Path

import pytest

from dragoman.errors import DataError
from plugins.bulk.delimited import CSV, TSV
from plugins.bulk.formats import format_of
from plugins.bulk.json_lines import JsonLines


def test_the_end_of_the_name_says_the_format() -> None:
    assert format_of(Path("a.csv")) is CSV
    assert format_of(Path("a.TSV")) is TSV
    assert isinstance(format_of(Path("a.jsonl")), JsonLines)
    assert isinstance(format_of(Path("a.ndjson")), JsonLines)


@pytest.mark.parametrize("name", ["a.json", "a", "a.jsonl.gz"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DataError, match=r"must end with \.csv, \.jsonl, \.ndjson, \.parquet, \.tsv"):
        format_of(Path(name))
