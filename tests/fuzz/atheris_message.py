"""Coverage-guided fuzzing of parsing and validation: `python -m tests.fuzz.atheris_message -runs=20000`."""

import sys

import atheris

with atheris.instrument_imports(include=["service", "dragoman"]):
    from dragoman.v1 import translation_pb2 as pb
    from tests.fuzz.properties import check_message

# Beside what is made up: a field that was never right would hide what comes behind it.
GOOD = ("", "en", "de", "en-de", "text/plain", "text/html", "text/xml")


def made_up(provider: atheris.FuzzedDataProvider) -> pb.TranslateTextRequest:
    """Fills the fields of a request with odd and with good values."""

    def text() -> str:
        if provider.ConsumeBool():
            return provider.PickValueInList(list(GOOD))
        return provider.ConsumeUnicodeNoSurrogates(provider.ConsumeIntInRange(0, 40))

    return pb.TranslateTextRequest(
        source_language_code=text(),
        target_language_code=text(),
        model=text(),
        mime_type=text(),
        request_id=text(),
        priority=provider.ConsumeIntInRange(-1, 3),
        options={"max_target_tokens": provider.ConsumeIntInRange(0, 2**32 - 1)},
        all_or_nothing=provider.ConsumeBool(),
        contents=[text() for _ in range(provider.ConsumeIntInRange(0, 4))],
    )


def try_one(data: bytes) -> None:
    """Takes what libFuzzer made up as a message, which it seldom is, and as the fields of one."""
    check_message(data)
    check_message(made_up(atheris.FuzzedDataProvider(data)).SerializeToString())


atheris.Setup(sys.argv, try_one)
atheris.Fuzz()
