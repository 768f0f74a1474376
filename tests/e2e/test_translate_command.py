import json
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority, Files
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.e2e.command import assert_one_line, run, run_as_process
from tests.server_process import BUNDLE, PATIENCE_S, REPOSITORY, ServerProcess

TEXTS = ["Good morning.", "", "Where is the station? I have never been to Berlin.", "  😀 \t"]


@pytest.fixture(params=["in process", "of a server"])
def place(request, server) -> list[str]:
    from_server = request.param == "of a server"
    return ["--address", server.address] if from_server else ["--models", str(BUNDLE)]


@pytest.fixture
def expected(client) -> bytes:
    return b"".join(translation.text.encode() + b"\n" for translation in client.translate(TEXTS, model="en-de"))


def test_arguments_are_translated(place, expected) -> None:
    done = run_as_process("translate", *place, *TEXTS)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")


def test_lines_of_standard_input_are_translated_one_to_one(place, expected) -> None:
    done = run_as_process("translate", *place, "--model", "en-de", stdin="\n".join(TEXTS).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")


def test_many_lines_are_translated_in_order(place, client) -> None:
    lines = [f"Tom bought {number} books." for number in range(600)]
    done = run("translate", *place, stdin="\n".join(lines).encode())
    expected = [translation.text for translation in client.translate(lines, model="en-de")]
    assert done.stdout.decode().splitlines() == expected


def test_bytes_that_are_not_utf8_are_said_and_do_not_end_it(place) -> None:
    done = run("translate", *place, stdin=b"Good morning.\ncaf\xe9 is open.\nGood morning.\n")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 3
    assert done.stderr == b"dragoman translate: line 2 is not UTF-8; U+FFFD stands for bad bytes\n"


def test_no_input_gives_no_output(place) -> None:
    done = run("translate", *place)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_standard_input_that_is_closed_is_one_line(place) -> None:
    command = [sys.executable, "-m", "dragoman.cli", "translate", *place]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, timeout=PATIENCE_S)
    assert_one_line(done, "dragoman translate: standard input: Bad file descriptor")


def test_an_unknown_model_is_one_line(place) -> None:
    done = run("translate", *place, "--model", "xx", "Hello.")
    assert_one_line(done, "dragoman translate: no model 'xx'; there are: en-de")


def test_an_unknown_language_is_one_line(place) -> None:
    done = run("translate", *place, "--to", "fr", "Hello.")
    assert_one_line(done, "no model translates from any language to fr; there are: en-de (en to de)")
    assert_one_line(run("translate", *place, "--to", "German", "Hello."), "--to: must be a BCP-47 code")


def test_html_keeps_its_tags(place, client) -> None:
    text = "<p>Good <b>morning</b>.</p>"
    done = run("translate", *place, "--html", text)
    expected = client.translate(text, model="en-de", mime_type="text/html")
    assert done.stdout.decode() == expected.text + "\n"
    assert "<b>" in expected.text


def test_json_has_an_object_a_line(place, client) -> None:
    done = run("translate", *place, "--json", *TEXTS)
    expected = client.translate(TEXTS, model="en-de")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "text": text,
            "translation": translation.text,
            "finish_reason": translation.finish_reason,
            "model": "en-de",
            "source_tokens": translation.source_tokens,
            "target_tokens": translation.target_tokens,
            "error": None,
        }
        for text, translation in zip(TEXTS, expected, strict=True)
    ]
    assert done.returncode == 0


class Several:
    """Three models in a folder, and a server of them."""

    def __init__(self, folder: Path) -> None:
        copy_bundle(BUNDLE, folder / "en-de", name="en-de")
        copy_pair(folder, "en", "fr")
        copy_bundle(BUNDLE, folder / "gb-fr", name="gb-fr", languages={"sources": ["en-GB"], "targets": ["fr"]})
        self.folder = folder
        self.server = ServerProcess((f"--models={folder}",))
        self.server.wait_until_serving()


@pytest.fixture(scope="module")
def several(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    # Beside the models of the repository: the copies are links, which need the same file system.
    folder = tmp_path_factory.mktemp("several")
    try:
        several = Several(folder)
        yield several
    finally:
        several.server.close()


@pytest.fixture(params=["in process", "of a server"])
def place_of_several(request, several) -> list[str]:
    return ["--models", str(several.folder)] if request.param == "in process" else ["--address", several.server.address]


def test_where_several_models_can_be_meant_none_is_chosen(several, place_of_several) -> None:
    done = run("translate", *place_of_several, "Good morning.")
    everyone = "en-de (en to de), en-fr (en to fr), gb-fr (en-GB to fr)"
    assert_one_line(done, "there are several models, say which with --model, --from or --to", everyone)
    done = run("translate", *place_of_several, "--to", "fr", "Good morning.")
    assert_one_line(done, ": en-fr (en to fr), gb-fr (en-GB to fr)")


@pytest.mark.parametrize(
    ("flags", "model"),
    [
        (["--model", "gb-fr"], "gb-fr"),
        (["--to", "de"], "en-de"),
        (["--from", "en", "--to", "fr"], "en-fr"),
        (["--from", "en-GB", "--to", "fr"], "gb-fr"),
    ],
)
def test_a_model_is_chosen_by_name_or_languages(place_of_several, flags: list[str], model: str) -> None:
    done = run("translate", *place_of_several, *flags, "--json", "Good morning.")
    assert json.loads(done.stdout)["model"] == model, done.stderr


def test_a_line_over_the_limit_is_named_and_the_others_are_translated(serve) -> None:
    server = serve("--max-text-bytes=60")
    lines = ["Good morning.", "Good morning. " * 5, "Good night."]
    stdin = "\n".join(lines).encode()
    done = run("translate", "--address", server.address, stdin=stdin)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == ["Guten Morgen.", "", "Gute Nacht."]
    assert done.stderr == b"dragoman translate: line 2: must be at most 60 bytes, is 70\n"
    done = run("translate", "--address", server.address, "--json", stdin=stdin)
    assert done.returncode == 1
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [item["translation"] for item in objects] == ["Guten Morgen.", None, "Gute Nacht."]
    assert objects[1]["error"] == {"reason": "INVALID_REQUEST", "message": "must be at most 60 bytes, is 70"}


def test_a_server_that_takes_little_at_a_time_gets_little_at_a_time(serve) -> None:
    server = serve("--max-contents=2", "--max-request-bytes=200", "--max-text-bytes=1000")
    lines = [*["Good morning."] * 30, "Good morning. " * 20, "Good morning. " * 60, "Good night."]
    done = run("translate", "--address", server.address, stdin="\n".join(lines).encode())
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [*["Guten Morgen."] * 30, "", "", "Gute Nacht."]
    first, second = done.stderr.decode().splitlines()
    assert first.startswith("dragoman translate: line 31: a message must be at most 200 bytes, is ")
    assert second.startswith("dragoman translate: line 32: ")  # so large that gRPC refuses it in its own words


@pytest.mark.parametrize("command", [["models"], ["translate", "Good morning."]])
def test_an_address_that_is_none_is_one_line(command: list[str]) -> None:
    for address in ("localhost", "http://127.0.0.1:50051", "a..b:1", "127.0.0.1:99999"):
        done = run(*command, "--address", address)
        assert_one_line(done, f"dragoman {command[0]}: argument --address: must be host:port", repr(address))


@pytest.mark.parametrize("command", [["models"], ["translate", "Good morning."]])
def test_where_nobody_answers_is_one_line(server, command: list[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(*command, "--address", address)
    assert_one_line(done)
    assert done.stderr.decode() == f"dragoman {command[0]}: no server answers at {address}\n"


def test_a_host_without_an_address_is_one_line(server) -> None:
    done = run("models", "--address", "no-such-host.invalid:1")
    assert_one_line(done, "no server answers at no-such-host.invalid:1: the host has no address")


def test_a_certificate_of_a_stranger_is_one_line(server, serve, tmp_path) -> None:
    files = Files(tmp_path)
    files.write(Authority().issue())
    files.client_ca.write_bytes(Authority().pem)
    guarded = serve(f"--tls-certificate={files.certificate}", f"--tls-key={files.key}")
    done = run("models", "--address", guarded.address, "--tls-ca", str(files.client_ca))
    assert_one_line(done, f"no server answers at {guarded.address}: TLS could not be agreed on")


def test_many_lines_that_are_not_utf8_are_counted(server) -> None:
    done = run("translate", "--address", server.address, stdin=b"\xff\n" * 20)
    assert done.stderr.count(b"is not UTF-8") == 5
    assert done.stderr.endswith(b"20 lines are not UTF-8, the first 5 of them are named above\n")


def test_a_line_that_is_typed_is_translated_at_once(server) -> None:
    """Standard input is a terminal that stays open."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "dragoman.cli", "translate", "--address", server.address]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        os.write(controller, b"Good morning.\n")
        assert process.stdout.readline().decode() == "Guten Morgen.\n"
        process.kill()
    os.close(controller)
    os.close(terminal)


def test_the_models_are_listed(place) -> None:
    done = run("models", *place)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[1].split()[:5] == ["en-de", "en", "de", "transformer", "int8"]


def test_the_models_are_listed_as_json(place) -> None:
    done = run("models", *place, "--json")
    [model] = json.loads(done.stdout)
    assert (model["name"], model["source_languages"], model["precision"]) == ("en-de", ["en"], "int8")


def test_no_model_says_where_one_comes_from(tmp_path) -> None:
    for command in (["models"], ["translate", "Good morning."]):
        empty = run(*command, "--models", str(tmp_path))
        assert_one_line(empty, f"{tmp_path}: there is no bundle", "dragoman export")
        missing = run(*command, "--models", "no/such/folder")
        assert_one_line(missing, "no/such/folder: no such folder", "a name of the hub")
