import subprocess
import sys

import pytest

TEXTS = ["Good morning.", "", "Where is the station? I have never been to Berlin.", "  😀 \t"]


@pytest.fixture(params=["in process", "of a server"])
def place(request, server) -> list[str]:
    from_server = request.param == "of a server"
    return ["--address", server.address] if from_server else ["--models", "models/en-de/bundle"]


def run(server, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dragoman.cli", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, cwd=server.directory)


@pytest.fixture
def expected(client) -> bytes:
    return b"".join(translation.text.encode() + b"\n" for translation in client.translate(TEXTS, model="en-de"))


def test_arguments_are_translated(server, place, expected) -> None:
    done = run(server, "translate", *place, *TEXTS)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")


def test_lines_of_standard_input_are_translated_one_to_one(server, place, expected) -> None:
    done = run(server, "translate", *place, "--model", "en-de", stdin="\n".join(TEXTS).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")


def test_many_lines_are_translated_in_order(server, place, client) -> None:
    lines = [f"Tom bought {number} books." for number in range(600)]
    done = run(server, "translate", *place, stdin="\n".join(lines).encode())
    expected = [translation.text for translation in client.translate(lines, model="en-de")]
    assert done.stdout.decode().splitlines() == expected


def test_bytes_that_are_not_utf8_are_said_and_do_not_end_it(server, place) -> None:
    done = run(server, "translate", *place, stdin=b"Good morning.\ncaf\xe9 is open.\nGood morning.\n")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 3
    assert done.stderr == b"dragoman translate: line 2 is not UTF-8; U+FFFD stands for bad bytes\n"


def test_no_input_gives_no_output(server, place) -> None:
    done = run(server, "translate", *place)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_unknown_model_is_one_line(server, place) -> None:
    done = run(server, "translate", *place, "--model", "xx", "Hello.")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"no model 'xx'; there are: en-de" in done.stderr


def test_the_models_are_listed(server, place) -> None:
    done = run(server, "models", *place)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[1].split()[:4] == ["en-de", "en", "de", "int8"]
