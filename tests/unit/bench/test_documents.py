"""The table of calls beside documents, with a real server for a moment."""

import json
from pathlib import Path

import pytest

from bench import documents
from bench.documents import Row, as_markdown
from dragoman.documents.formats import format_of
from tests.server_process import BUNDLE


def test_the_table() -> None:
    rows = [Row("alone", 100, 0, 4.0, 8.0), Row("XLIFF", 50, 1, 6.0, 9.0)]
    assert as_markdown(rows).splitlines()[-1] == "| XLIFF | 50 | 1 | 6.0 | 9.0 | 1.50 |"


def test_documents_are_of_known_formats() -> None:
    assert all(format_of(name) and len(content) > 100_000 for name, content in documents.documents().values())


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_calls_are_measured_beside_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"Markdown, slow to parse": ("a.md", b"![" * 20_000)}
    monkeypatch.setattr(documents, "documents", lambda: small)
    assert documents.main(["--seconds=0.5", f"--bundle={BUNDLE}", f"--json={tmp_path / 'out'}"]) == 0
    report = json.loads((tmp_path / "out").read_text())
    assert [row["beside"] for row in report["rows"]] == ["alone", *small]
    assert all(row["calls"] for row in report["rows"])
