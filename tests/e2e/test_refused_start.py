"""What keeps a server from starting is one line, and exit code 2."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bundle import no_bundles
from service.registry.folders import one_name
from tests.server_process import BUNDLE, PATIENCE_S, REPOSITORY


def serve(*arguments: str, before: str = ":") -> subprocess.CompletedProcess[str]:
    """Starts a server from a shell, after a command of the shell."""
    command = [
        sys.executable,
        "-m",
        "dragoman.cli",
        "serve",
        "--metrics-address=127.0.0.1:0",
        "--http-address=none",
        *arguments,
    ]
    shell = ["sh", "-c", f'{before}; exec "$@"', "sh", *command]
    return subprocess.run(shell, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("descriptors", [8, 12, 16])
def test_too_few_file_descriptors(descriptors: int) -> None:
    done = serve("--address=127.0.0.1:0", before=f"ulimit -n {descriptors}")
    expected = f"dragoman serve: at least 64 file descriptors are needed, the limit is {descriptors} (ulimit -n)\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_a_hard_limit_below_what_the_connections_need_is_a_warning(tmp_path: Path) -> None:
    arguments = "--address=127.0.0.1:0", "--max-connections=100", f"--models={tmp_path / 'nope'}"
    refusal = f"dragoman serve: {no_bundles(tmp_path / 'nope')}\n"
    need = "--max-connections 100 needs 164 file descriptors"
    warning = f"dragoman serve: warning: {need}, the hard limit is 128 (ulimit -Hn)\n"
    assert serve(*arguments, before="ulimit -n 128").stderr == warning + refusal
    assert serve(*arguments, before="ulimit -n 164").stderr == refusal
    assert serve(*arguments, before="ulimit -Sn 128").stderr == refusal


def test_no_models_are_told_before_a_port_is_open(tmp_path: Path) -> None:
    done = serve("--address=127.0.0.1:0", f"--models={tmp_path / 'nope'}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dragoman serve: {no_bundles(tmp_path / 'nope')}\n")


def test_a_folder_of_glossaries_that_is_not_there_is_told_before_a_port_is_open(tmp_path: Path) -> None:
    done = serve("--address=127.0.0.1:0", f"--models={BUNDLE}", f"--glossaries={tmp_path / 'nope'}")
    expected = f"dragoman serve: DRAGOMAN_GLOSSARIES (--glossaries): {tmp_path / 'nope'}: no such folder\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_two_models_of_a_name_are_told_before_a_port_is_open(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        shutil.copytree(BUNDLE, folder)
    done = serve("--address=127.0.0.1:0", f"--models={tmp_path}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dragoman serve: {one_name('en-de', folders)}\n")


@pytest.mark.parametrize("flag", ["--api-keys", "--tls-client-ca"])
def test_a_device_in_place_of_a_file(flag: str) -> None:
    tls = () if flag == "--api-keys" else ("--tls-certificate=/dev/zero", "--tls-key=/dev/zero")
    done = serve("--address=127.0.0.1:0", f"{flag}=/dev/zero", *tls)
    named = ", ".join([*(given.partition("=")[0] for given in tls), flag])
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"dragoman serve: {named}: /dev/zero: is not a regular file\n",
    )
