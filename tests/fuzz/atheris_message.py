"""Coverage-guided fuzzing of parsing and validation: `python -m tests.fuzz.atheris_message -runs=20000`."""

import sys

import atheris

with atheris.instrument_imports(include=["service", "dragoman"]):
    from tests.fuzz.properties import check_message

atheris.Setup(sys.argv, check_message)
atheris.Fuzz()
