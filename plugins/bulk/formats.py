"""The file formats, by suffix. An output file has the format of its input."""

from pathlib import Path
from typing import Final

from dragoman.errors import DataError
from plugins.bulk.rows import Format

SUFFIXES: Final = (".csv", ".jsonl", ".ndjson", ".parquet", ".tsv")


def format_of(path: Path) -> Format:
    """Find the format of a file.

    Raises:
        DataError: the suffix belongs to no known format.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        from plugins.bulk.parquet import Parquet  # imported here: pyarrow comes with an extra

        return Parquet()
    if suffix in (".csv", ".tsv"):
        from plugins.bulk.delimited import CSV, TSV

        return CSV if suffix == ".csv" else TSV
    if suffix in (".jsonl", ".ndjson"):
        from plugins.bulk.json_lines import JsonLines

        return JsonLines()
    raise DataError(f"{path}: must end with {', '.join(SUFFIXES)}")
