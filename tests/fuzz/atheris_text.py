"""Coverage-guided fuzzing of segmentation and tokenizer: `python -m tests.fuzz.atheris_text -runs=20000`."""

import sys

import atheris

with atheris.instrument_imports(include=["service", "dragoman"]):
    from tests.fuzz.properties import check_text


def try_one(data: bytes) -> None:
    """Reads a text from what libFuzzer made up."""
    check_text(atheris.FuzzedDataProvider(data).ConsumeUnicodeNoSurrogates(len(data)))


atheris.Setup(sys.argv, try_one)
atheris.Fuzz()
