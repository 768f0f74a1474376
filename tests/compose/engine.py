"""A Docker engine of our own for one run: everything in one folder, and nothing left behind but that folder.

Debian's packages are unpacked, not installed. The folder is a cache: a second run finds the programs, the base image
and the build cache in it.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import debian

BASE_IMAGE = "python:3.11-slim"
_RELEASE = debian.OLDEST  # its Python is the 3.11 of the base image
_COMPOSE_RELEASE = debian.NEWEST  # the first with compose 2
_PACKAGES = ("docker.io", "iptables", "debootstrap")
_CA_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
_IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


class NoEngineError(Exception):
    """No engine can be had here; the message says why in one line."""


def _output(*command: str | Path, env: dict[str, str] | None = None) -> str:
    return subprocess.run(command, env=env, check=True, text=True, capture_output=True).stdout


class Tools:
    """The programs, unpacked in a folder, and the environment that finds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        root = folder / "tools"
        self._root = root
        libraries = [str(path) for path in root.glob("usr/lib/*-linux-gnu")]
        self.env = os.environ | {
            "PATH": f"{root}/usr/sbin:{root}/usr/bin:{root}/sbin:{os.environ['PATH']}:/usr/sbin:/sbin",
            "LD_LIBRARY_PATH": ":".join(libraries),
            "XTABLES_LIBDIR": f"{libraries[0]}/xtables" if libraries else "",
            "DEBOOTSTRAP_DIR": f"{root}/usr/share/debootstrap",
            "DOCKER_HOST": f"unix://{folder}/docker.sock",
            "DOCKER_CONFIG": f"{folder}/config",
            "DOCKER_BUILDKIT": "1",
        }

    @classmethod
    def get(cls, folder: Path) -> "Tools":
        """Give the programs in a folder, after fetching them if they are not there.

        Raises:
            NoPackagesError: they cannot be fetched.
        """
        if not (folder / "config").exists():  # made last
            _fetch(folder)
        return cls(folder)

    def run(self, *command: str | Path) -> str:
        """Run a program and give what it printed."""
        return _output(*command, env=self.env)


def _fetch(folder: Path) -> None:
    """Download the packages with lists and archives of our own, and unpack them."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tools", "partial"):
        (folder / name).mkdir(parents=True)
    archive = debian.Archive(folder / "apt", _RELEASE, _COMPOSE_RELEASE)
    archive.download_with_dependencies(*_PACKAGES)
    archive.download(*_PACKAGES)  # those that are installed as well
    archive.download(*(f"{name}/{_COMPOSE_RELEASE}" for name in ("docker-compose", "docker-buildx")))
    archive.unpack(folder / "tools")
    _link_iptables(folder / "tools/usr/sbin")
    shutil.copytree(folder / "tools/usr/libexec/docker/cli-plugins", folder / "partial/cli-plugins")
    shutil.rmtree(folder / "apt")
    (folder / "partial").rename(folder / "config")


def _link_iptables(folder: Path) -> None:
    """Do what the package's installation would: the plain name is the nft variant."""
    if (folder / "xtables-nft-multi").exists():
        (folder / "iptables").symlink_to("xtables-nft-multi")


def _check_machine() -> None:
    """Raise NoEngineError unless an engine of our own may be started here."""
    if os.geteuid() != 0:
        raise NoEngineError("not root")
    if not debian.is_debian() or not shutil.which("ip"):
        raise NoEngineError("not a Debian system")
    for name in Path("/proc").glob("[0-9]*/comm"):
        try:
            if name.read_text().strip() == "dockerd":
                raise NoEngineError(f"another Docker engine runs (process {name.parent.name})")
        except OSError:  # that process has just ended
            continue


@contextmanager
def running(folder: Path) -> Iterator[Tools]:
    """Run an engine; afterwards the machine's network is as it was.

    Yields:
        The programs, with the environment that reaches the engine.

    Raises:
        NoEngineError: there can be none on this machine.
        NoPackagesError: its programs cannot be fetched.
    """
    _check_machine()
    tools = Tools.get(folder)
    network = _Network(tools)
    log = folder / "dockerd.log"
    with log.open("w") as output:
        daemon = subprocess.Popen(
            ["dockerd", "--data-root", folder / "root", "--exec-root", folder / "exec", "--pidfile", folder / "pid",
             "-H", tools.env["DOCKER_HOST"]],
            env=tools.env, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        _wait_until_up(daemon, tools, log)
        yield tools
    finally:
        _stop(daemon)
        _unmount_below(folder)
        network.restore()


def _wait_until_up(daemon: subprocess.Popen[bytes], tools: Tools, log: Path) -> None:
    give_up_s = time.monotonic() + 60
    while daemon.poll() is None and time.monotonic() < give_up_s:
        try:
            tools.run("docker", "info")
            return
        except subprocess.CalledProcessError:
            time.sleep(0.2)
    raise NoEngineError(f"dockerd does not start: {_last_line(log.read_text())}")


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.send_signal(signal.SIGTERM)
    try:
        daemon.wait(60)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _unmount_below(folder: Path) -> None:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for point in reversed(points):
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", point], check=False)


class _Network:
    """What an engine changes on the machine's network: how it was, and the way back."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._ip_forward = _IP_FORWARD.read_text()
        self._policy = self._rules("filter", "-P FORWARD")

    def restore(self) -> None:
        """Delete the engine's bridge and chains, and set back what it set."""
        subprocess.run(["ip", "link", "delete", "docker0"], check=False, capture_output=True)
        for table in ("filter", "nat"):
            for rule in self._rules(table, "-A"):
                if "DOCKER" in rule or "docker0" in rule:
                    self._iptables(table, "-D", *rule.split()[1:])
            chains = [rule.split()[1] for rule in self._rules(table, "-N DOCKER")]
            for verb in ("-F", "-X"):
                for chain in chains:
                    self._iptables(table, verb, chain)
        for rule in self._policy:
            self._iptables("filter", *rule.split())
        _IP_FORWARD.write_text(self._ip_forward)

    def _rules(self, table: str, start: str) -> list[str]:
        return [rule for rule in self._iptables(table, "-S").splitlines() if rule.startswith(start)]

    def _iptables(self, table: str, *words: str) -> str:
        return self._tools.run("iptables", "--wait", "-t", table, *words)


def import_base_image(tools: Tools) -> None:
    """Make the base image of our Dockerfiles from Debian's packages, unless the engine has it.

    It proves the logic of our Dockerfiles, not the published image of that name.
    """
    if tools.run("docker", "images", "--quiet", BASE_IMAGE):
        return
    system = tools.folder / "system"
    shutil.rmtree(system, ignore_errors=True)
    packages = "python3,python3-venv,ca-certificates"
    tools.run("debootstrap", "--variant=minbase", f"--include={packages}", _RELEASE, system, debian.mirror())
    if (Path("/") / _CA_BUNDLE).exists():  # behind a proxy that signs for others, pip must trust it as well
        shutil.copyfile(Path("/") / _CA_BUNDLE, system / _CA_BUNDLE)
    (system / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    shutil.rmtree(system / "var/lib/apt/lists")
    with subprocess.Popen(["tar", "-C", system, "-c", "."], stdout=subprocess.PIPE) as archive:
        command = ["docker", "import", "-", BASE_IMAGE]
        subprocess.run(command, stdin=archive.stdout, env=tools.env, check=True, capture_output=True)
    shutil.rmtree(system)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
