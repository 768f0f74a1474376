"""Both distributions, built and installed in environments of their own, and used in the folder of another project.

That project has packages with the names of the server's, and they cannot be imported.
"""

import json
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

import pytest
from mypy import api
from packaging.requirements import Requirement

from bench.server_process import running
from deploy.release import packages

ROOT = Path(__file__).parents[2]
PYPROJECT = ROOT / "dragoman" / "pyproject.toml"
PATIENCE_S = 300
PACKAGES = ("service", "plugins", "model", "export", "bench", "models")
PROGRAM = """
from dragoman import Client, Translation

def translated(client: Client) -> Translation:
    return client.translate("Good morning.", model="en-de")

if __name__ == "__main__":
    import sys
    with Client(sys.argv[1]) as client:
        print(translated(client).text)
"""


class Built(NamedTuple):
    """What is built of one distribution."""

    sdist: Path
    wheel: Path


class Project:
    """The folder of a user, whose programs run in some environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in PACKAGES:
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").write_text("raise SystemExit('a package of the user was imported')\n")
        (folder / "program.py").write_text(PROGRAM)

    def command(self, environment: Path, program: str, *arguments: str) -> list[str]:
        """A command that runs in the folder, whose packages Python finds first."""
        within = ["env", f"--chdir={self.folder}", f"PYTHONPATH={self.folder}"]
        return [*within, str(environment / "bin" / program), *arguments]

    def run(self, environment: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = self.command(environment, program, *arguments)
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


def build(source: Path, out: Path) -> Built:
    """Builds the sdist, and the wheel from nothing but the sdist."""
    sdist = hatchling(source, "sdist", out, "*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    return Built(sdist, hatchling(out / sdist.name.removesuffix(".tar.gz"), "wheel", out, "*.whl"))


def hatchling(source: Path, target: str, out: Path, pattern: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=PATIENCE_S)
    (built,) = out.glob(pattern)
    return built


def install(environment: Path, *what: str) -> Path:
    """Makes an environment, and installs what is given and all that it needs."""
    venv.create(environment)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-compile", "--disable-pip-version-check", *what], check=True, timeout=PATIENCE_S)
    return environment


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(ROOT / "dragoman", tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(ROOT, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def client_environment(client: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the oldest version of each package that the client takes."""
    environment = tmp_path_factory.mktemp("with_client")
    oldest = environment / "oldest.txt"
    oldest.write_text("\n".join(oldest_of(tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"])))
    return install(environment, "--constraint", str(oldest), str(client.wheel))


def oldest_of(requirements: list[str]) -> Iterator[str]:
    for requirement in map(Requirement, requirements):
        (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
        # Of packages with compiled code, the oldest have no wheels for later versions of Python.
        if sys.version_info < (3, 13):
            yield f"{requirement.name}=={bound}"


@pytest.fixture(scope="module")
def server_environment(client: Built, server: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("with_server"), str(client.wheel), f"{server.wheel}[cpu]")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def address(project: Project, server_environment: Path) -> Iterator[str]:
    """Of a server that was started in the user's folder, with its own default model."""
    with running(project.command(server_environment, "dragoman", "serve")) as server:
        yield server.address


def top_level(wheel: Path) -> set[str]:
    return {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_each_wheel_puts_one_package_into_site_packages(client: Built, server: Built) -> None:
    assert top_level(client.wheel) == {"dragoman"}
    assert top_level(server.wheel) == {"dragoman_server"}


def test_a_release_accepts_the_contents_of_both_wheels(client: Built, server: Built) -> None:
    pytest.importorskip("check_wheel_contents", reason="check-wheel-contents is not installed")
    packages.check_wheels([client.wheel, server.wheel])


def test_each_wheel_brings_its_licence(client: Built, server: Built) -> None:
    for built in (client, server):
        with zipfile.ZipFile(built.wheel) as archive:
            licences = [
                archive.read(name).decode() for name in archive.namelist() if name.endswith("/licenses/LICENSE")
            ]
        assert licences == [(ROOT / "LICENSE").read_text(encoding="utf-8")]


def test_the_server_brings_the_files_of_its_page(server: Built) -> None:
    files = {file.name for file in (ROOT / "plugins" / "page" / "static").iterdir()}
    names = {Path(name) for name in zipfile.ZipFile(server.wheel).namelist()}
    assert {"index.html", "page.js"} <= files
    assert files == {name.name for name in names if name.parent == Path("dragoman_server/plugins/page/static")}


def test_the_sdists_hold_neither_tests_nor_checkpoints(client: Built, server: Built) -> None:
    names = []
    for built in (client, server):
        with tarfile.open(built.sdist) as archive:
            names += archive.getnames()
    assert not [name for name in names if {"tests", "checkpoint", "docs"} & set(Path(name).parts)]
    data = [name for name in names if name.endswith((".safetensors", ".png", ".tsv"))]
    assert [Path(name).name for name in data] == ["sentences.tsv"]  # of the exporter


def test_the_client_brings_grpc_and_protobuf_and_little_else(client_environment: Path) -> None:
    (packages,) = client_environment.glob("lib/python*/site-packages")
    names = {found.name.lower().replace("_", "-") for found in distributions(path=[str(packages)])}
    needed = {"dragoman", "googleapis-common-protos", "grpcio", "grpcio-health-checking", "protobuf", "tqdm"}
    assert names - {"typing-extensions"} == needed


def test_a_type_checker_knows_the_installed_client(
    client_environment: Path, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = f"--python-executable={client_environment / 'bin' / 'python'}"
    options = ["--config-file=", "--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    monkeypatch.chdir(project.folder)  # in the clone, its own packages come first
    said, _, code = api.run([*options, interpreter, f"--cache-dir={tmp_path}", "program.py"])
    assert (code, said.splitlines()[-1]) == (0, "Success: no issues found in 1 source file")


def test_the_default_model_is_served_to_a_client_alone(
    address: str, client_environment: Path, project: Project
) -> None:
    done = project.run(client_environment, "python", "program.py", address)
    assert (done.stdout, done.stderr) == ("Guten Morgen.\n", "")
    done = project.run(client_environment, "dragoman", "translate", "--address", address, "Good morning.")
    assert (done.stdout, done.stderr) == ("Guten Morgen.\n", "")
    done = project.run(client_environment, "dragoman", "models", "--address", address)
    assert "en-de" in done.stdout


@pytest.mark.parametrize("arguments", [["serve"], ["translate", "Good morning."], ["train"]])
def test_the_client_alone_says_what_to_install(
    arguments: list[str], client_environment: Path, project: Project
) -> None:
    done = project.run(client_environment, "dragoman", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert " needs dragoman-server " in done.stderr


@pytest.mark.parametrize("program", [["dragoman"], ["python", "-m", "dragoman"]])
def test_the_server_translates_without_a_port(program: list[str], server_environment: Path, project: Project) -> None:
    done = project.run(server_environment, *program, "translate", "Good morning.")
    assert (done.stdout, done.stderr) == ("Guten Morgen.\n", "")


def test_the_server_brings_the_commands_of_its_plugins(server_environment: Path, project: Project) -> None:
    done = project.run(server_environment, "dragoman", "bulk", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_finds_its_plugins(server_environment: Path, project: Project) -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for apart in ("dragoman.commands", "dragoman.tracers"):  # the client loads the one, the other needs an extra
        del groups[apart]
    program = (
        "import dragoman_server\n"
        "from service import plugins\n"
        f"print([len(plugins.load(group)) for group in {sorted(groups)}])"
    )
    done = project.run(server_environment, "python", "-c", program)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [len(groups[group]) for group in sorted(groups)]


def test_a_program_of_the_server_starts_others(server_environment: Path, project: Project) -> None:
    program = ["python", "-m", "dragoman_server", "bench", "cold-start", "--requests=1"]
    done = project.run(server_environment, *program)
    assert done.stderr == ""
    assert "- model: en-de" in done.stdout.splitlines()
