"""The clients of docs/clients.md, each built from the contract alone in its own language, against a real server."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import google.rpc
import pytest

from tests.clients.languages import LANGUAGES, Language
from tests.server_process import REPOSITORY, ServerProcess

PATIENCE_S = 600
CACHE = REPOSITORY / ".cache" / "clients"
PROTO = REPOSITORY / "proto"
ENVIRONMENT = {
    **os.environ,
    "PROTO": str(PROTO),
    "GOOGLEAPIS": str(Path(google.rpc.__path__[0]).parents[1]),
    "CLASSPATH": "/usr/share/java/*",
    "GOCACHE": str(CACHE / "go-build"),
    # Without a network it is soon said so: npm would try for minutes.
    "PIP_RETRIES": "1",
    "npm_config_fetch_retries": "1",
    "npm_config_fetch_retry_mintimeout": "1000",
    # What runs once need not be made fast.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
ENVIRONMENT.pop("PYTHONPATH", None)  # clients know nothing of our packages


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-e", "-c", command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S
    )


def built(language: Language) -> Path:
    """Build a client, once for each state of its sources and of the contract."""
    sources = [*sorted(filter(Path.is_file, language.folder.iterdir())), *sorted(PROTO.rglob("*.proto"))]
    state = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = CACHE / f"{language.name}-{state}"
    if folder.exists():
        return folder
    half_built = Path(shutil.copytree(language.folder, f"{folder}.half-built", dirs_exist_ok=True))
    if (half_built / "install.sh").exists() and run(". ./install.sh", half_built).returncode:
        pytest.skip(f"the packages of {language.folder.relative_to(REPOSITORY)}/install.sh cannot be installed here")
    if (half_built / "build.sh").exists():
        done = run(". ./build.sh", half_built)
        assert done.returncode == 0, done.stdout + done.stderr
    return half_built.rename(folder)


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
def test_a_client_translates_and_reads_the_reason_of_an_error(language: Language, server: ServerProcess) -> None:
    if missing := language.missing():
        pytest.skip(missing)
    done = run(language.run.replace("ADDRESS", server.address), built(language))
    assert done.returncode == 0, done.stderr
    models, translation, error = done.stdout.splitlines()
    assert (models, translation) == ("en-de", "Guten Morgen.")
    assert error.endswith(" UNKNOWN_MODEL")
