"""Google's client of Cloud Translation v3 against a real server over TLS with another endpoint and key; or plain."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.google.v3 import translation_service_pb2 as google
from tests.certificates import Authority, Files
from tests.e2e import command
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess

PARENT = "projects/my-project/locations/global"
NMT = f"{PARENT}/models/general/nmt"
ENGLISH, GERMAN, FRENCH = "Where did you learn to cook?", "Wo hast du kochen gelernt?", "Où est la gare ?"
CLIENT = Path(__file__).with_name("google_client.py")


def new_key(name: str, *limits: str) -> tuple[str, str]:
    """A line of the file of keys, and the key."""
    done = command.run("api-key", name, *limits)
    return done.stdout.decode(), done.stderr.decode().split()[-1]


class Guarded:
    """A server with TLS, keys, a glossary and models of two source languages."""

    def __init__(self, folder: Path) -> None:
        authority, files = Authority(), Files(folder)
        files.write(authority.issue())
        files.client_ca.write_bytes(authority.pem)
        shop, self.key = new_key("shop")
        slow, self.slow_key = new_key("slow", "--requests-per-s=0.001", "--burst=2")
        (folder / "keys.toml").write_text(shop + slow)
        (folder / "glossaries").mkdir()
        (folder / "glossaries" / "products.en-de.csv").write_text("house,Anwesen\n")
        copy_bundle(BUNDLE, folder / "models" / "en-de")
        copy_pair(folder / "models", "fr", "de")
        self.authority = files.client_ca
        self.server = ServerProcess(
            (
                f"--models={folder / 'models'}",
                "--threads=1",
                f"--tls-certificate={files.certificate}",
                f"--tls-key={files.key}",
                f"--api-keys={folder / 'keys.toml'}",
                f"--glossaries={folder / 'glossaries'}",
            )
        )

    def made(self, *calls: tuple[str, dict[str, Any]], key: str = "") -> list[Any]:
        return made(self.server, *calls, key=key or self.key, roots=self.authority)


@pytest.fixture(scope="module")
def guarded(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("google")
    (folder / "models").mkdir()
    guarded = Guarded(folder)
    try:
        guarded.server.wait_until_serving()
        yield guarded
        guarded.server.signal(signal.SIGTERM)
        assert guarded.server.exit_code() == 0
        assert not any("Traceback" in line or guarded.key in line for line in guarded.server.log)
    finally:
        guarded.server.close()


def run(server: ServerProcess, *calls: tuple[str, dict[str, Any]], key: str = "", roots: Path | None = None) -> Any:
    """Have both of Google's clients make calls in a process of their own."""
    environment = {**os.environ, "NO_GCE_CHECK": "true"}
    if roots is not None:
        environment["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = str(roots)
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, CLIENT, server.address, *([key] if key else [])],
        input=json.dumps(calls),
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def made(server: ServerProcess, *calls: tuple[str, dict[str, Any]], **access: Any) -> list[Any]:
    """What came of calls, the same by both clients."""
    synchronous, asynchronous = run(server, *calls, **access)["results"]
    assert synchronous == asynchronous
    return synchronous


def translate(*contents: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    known = {"parent": PARENT, "source_language_code": "en", "target_language_code": "de"}
    return "translate_text", {**known, "contents": contents, **fields}


def texts(answer: dict[str, Any], name: str = "translations") -> list[tuple[str, str, str]]:
    return [(each["translated_text"], each["detected_language_code"], each["model"]) for each in answer[name]]


def listed(answer: dict[str, Any]) -> list[tuple[str, str, bool, bool]]:
    names = ("language_code", "display_name", "support_source", "support_target")
    return [tuple(each[name] for name in names) for each in answer["languages"]]


def test_with_endpoint_and_key_alone(guarded: Guarded) -> None:
    html = translate("<p>Good <b>morning</b>.</p>")
    plain = translate("<p>", "Good morning.", mime_type="text/plain", labels={"team": "a"})
    answers = guarded.made(
        html,
        plain,
        ("detect_language", {"parent": "projects/my-project", "content": FRENCH}),
        ("get_supported_languages", {"parent": PARENT, "display_language_code": "en"}),
        ("get_supported_languages", {"parent": PARENT, "model": f"{PARENT}/models/fr-de"}),
    )
    translated, untouched, detected, named, of_one_model = answers
    [(text, language, model)] = texts(translated)
    assert text.startswith("<p>")
    assert text.endswith("</p>")
    assert (language, model) == ("", "")
    assert texts(untouched)[1] == ("Guten Morgen.", "", "")
    assert detected["languages"][0]["language_code"] == "fr"
    assert detected["languages"][0]["confidence"] > 0.9
    assert listed(named) == [
        ("de", "German", False, True),
        ("en", "English", True, False),
        ("fr", "French", True, False),
    ]
    assert listed(of_one_model) == [
        ("de", "", False, True),
        ("fr", "", True, False),
    ]


def test_a_language_is_detected_where_none_is_said(guarded: Guarded) -> None:
    served, unserved = guarded.made(
        translate(ENGLISH, FRENCH, GERMAN, "42", source_language_code="", mime_type="text/plain"),
        translate(ENGLISH, "Dove si trova la stazione?", source_language_code=""),
    )
    [english, french, german, number] = texts(served)
    assert english == (GERMAN, "en", "")
    assert french[1] == "fr"
    assert german == (GERMAN, "de", "")  # needs none
    assert number[1] == "und"
    assert (unserved["error"], unserved["reason"]) == ("InvalidArgument", "UNKNOWN_LANGUAGE_PAIR")
    assert "'it'" in unserved["message"]


def test_names_of_models_and_a_glossary(guarded: Guarded) -> None:
    models = [NMT, f"{PARENT}/models/general/translation-llm", f"{PARENT}/models/en-de"]
    glossary = {"glossary": f"{PARENT}/glossaries/products.en-de"}
    *named, with_terms, unknown_model, unknown_glossary = guarded.made(
        *(translate(ENGLISH, model=model) for model in models),
        translate("The house is big.", glossary_config=glossary, mime_type="text/plain"),
        translate(ENGLISH, model=f"{PARENT}/models/none"),
        translate(ENGLISH, glossary_config={"glossary": f"{PARENT}/glossaries/none"}),
    )
    assert [texts(answer) for answer in named] == [[(GERMAN, "", model)] for model in models]
    [translation] = with_terms["glossary_translations"]
    assert "Anwesen" in translation["translated_text"]
    assert translation["glossary_config"]["glossary"] == glossary["glossary"]
    assert texts(with_terms) == texts(with_terms, "glossary_translations")
    assert (unknown_model["error"], unknown_model["reason"]) == ("InvalidArgument", "UNKNOWN_MODEL")
    assert (unknown_glossary["error"], unknown_glossary["reason"]) == ("InvalidArgument", "UNKNOWN_GLOSSARY")


def test_what_cannot_be_done_is_said(guarded: Guarded) -> None:
    bucket = {"gcs_destination": {"output_uri_prefix": "gs://bucket/"}}
    too_large = "a" * 2_000_000
    parent, pair, text, script, batch = guarded.made(
        translate(ENGLISH, parent="my-project"),
        translate(ENGLISH, target_language_code="xx"),
        translate("a", too_large),
        translate(ENGLISH, transliteration_config={"enable_transliteration": True}),
        ("batch_translate_text", {"parent": PARENT, "source_language_code": "en", "output_config": bucket}),
    )
    assert (parent["error"], parent["reason"]) == ("InvalidArgument", "INVALID_REQUEST")
    assert "parent: must be projects/PROJECT or" in parent["message"]
    assert (pair["error"], pair["reason"]) == ("InvalidArgument", "UNKNOWN_LANGUAGE_PAIR")
    assert (text["error"], "contents[1]" in text["message"]) == ("InvalidArgument", True)
    assert "transliteration_config.enable_transliteration" in script["message"]
    assert batch["error"] == "MethodNotImplemented"
    assert "not on this server: it works on files in a cloud" in batch["message"]
    counted = {"method": "TranslateText", "code": "INVALID_ARGUMENT", "protocol": "google"}
    assert guarded.server.metric("requests_total", **counted) >= 8  # four by each client


def test_a_wrong_key_is_refused(guarded: Guarded) -> None:
    calls = translate(ENGLISH), ("detect_language", {"parent": PARENT, "content": ENGLISH})
    assert {(each["error"], each["reason"]) for each in guarded.made(*calls, key="wrong")} == {
        ("Unauthenticated", "UNAUTHENTICATED")
    }


def test_the_limits_of_a_key_hold(guarded: Guarded) -> None:
    languages = "get_supported_languages", {"parent": PARENT}
    done = run(guarded.server, languages, languages, key=guarded.slow_key, roots=guarded.authority)
    first, then = done["results"]
    assert [each.get("error") for each in first] == [None, None]
    assert [(each["error"], each["reason"]) for each in then] == [("ResourceExhausted", "RATE_LIMITED")] * 2


def test_without_tls_and_key_over_a_channel_of_its_own(server: ServerProcess) -> None:
    done = run(server, translate(ENGLISH))
    assert [texts(answer) for [answer] in done["results"]] == [[(GERMAN, "", "")]] * 2
    own = {
        message.full_name: {
            field.name: [field.number, field.type, field.message_type and field.message_type.full_name]
            for field in message.fields
        }
        for message in google.DESCRIPTOR.message_types_by_name.values()
    }
    theirs = done["messages"]
    assert own.keys() == theirs.keys()
    for name, fields in own.items():
        assert fields.items() <= theirs[name].items(), name
