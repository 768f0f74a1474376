"""Texts and their known right translations: made by `dragoman translate`, which needs no server."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "models" / "en-de" / "bundle"
MODEL = "en-de"

PAGE_SENTENCES, NOVEL_SENTENCES = 20, 400
_SENTENCES = [
    text
    for number in range(100, 160)
    for text in (
        f"Tom bought {number} books.",
        f"The train number {number} leaves at eight, and we will be late.",
        f"There are {number} trees in the garden.",
        f"I have never seen {number} birds in one place before, have you?",
    )
]
# The engines of these servers are made to fail on it: one segment of more than 100 tokens.
POISON = "Tom " + "and Tom " * 55 + "went home"


class Truth:
    """What may be asked, and what must be answered."""

    def __init__(self) -> None:
        # The first take tens of milliseconds, the second the better part of a second.
        self.pages = [" ".join(Random(seed).sample(_SENTENCES, PAGE_SENTENCES)) for seed in range(40)]
        self.novels = [" ".join(Random(seed).choices(_SENTENCES, k=NOVEL_SENTENCES)) for seed in range(4)]
        self._known = _translate([*_SENTENCES, *self.pages, *self.novels])

    def sentences(self, random: Random, count: int) -> list[str]:
        """Some short texts."""
        return random.choices(_SENTENCES, k=count)

    def is_right(self, texts: Sequence[str], answers: Sequence[str]) -> bool:
        """Whether these are the translations of these texts."""
        return [self._known[text] for text in texts] == list(answers)


def _translate(texts: list[str]) -> dict[str, str]:
    command = [sys.executable, "-m", "dragoman.cli", "translate", "--models", str(BUNDLE)]
    done = subprocess.run(
        command, cwd=ROOT, input="\n".join(texts) + "\n", capture_output=True, text=True, check=True, timeout=120
    )
    return dict(zip(texts, done.stdout.splitlines(), strict=True))
