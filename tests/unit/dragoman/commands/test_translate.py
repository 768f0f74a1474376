import io
import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tqdm import tqdm

from dragoman.cli import main
from dragoman.commands import translate

BUNDLE = str(Path(__file__).parents[4] / "models" / "en-de" / "bundle")


class Bar(tqdm):  # type: ignore[type-arg]
    """A progress bar that is shown from the start."""

    made: ClassVar[list["Bar"]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"delay": 0, "disable": False, "file": io.StringIO()})
        self.shown_total, self.shown_unit = options["total"], options["unit"]
        Bar.made.append(self)


@pytest.mark.parametrize("content", ["Good morning.\nGood night.\nGood morning.\n", "Good morning.\n\nGood night."])
def test_progress_counts_lines(content: str, tmp_path: Path, monkeypatch, capfd) -> None:
    (tmp_path / "lines").write_text(content)
    monkeypatch.setattr(translate, "tqdm", Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with (tmp_path / "lines").open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        assert main(["translate", "--models", BUNDLE]) == 0
        sys.stdin.detach()
    bar = Bar.made.pop()
    assert (bar.shown_total, bar.shown_unit, bar.n) == (3, "line", 3)
    assert capfd.readouterr().out.count("\n") == 3


def test_json_of_an_argument_that_is_not_utf8(capfd) -> None:
    assert main(["translate", "--models", BUNDLE, "--json", "caf\udce9"]) == 0
    assert json.loads(capfd.readouterr().out)["text"] == "caf\ufffd"
