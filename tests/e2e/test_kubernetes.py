"""A real server with the variables and probes of deploy/kubernetes, and with Secrets as the kubelet mounts them."""

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Client, UnauthenticatedError
from dragoman.cli import main
from tests.certificates import Authority
from tests.kubernetes import kustomize
from tests.kubernetes.documents import config, container
from tests.kubernetes.kustomize import base_with
from tests.server_process import PATIENCE_S, REPOSITORY, ServerProcess
from tests.waiting import until

if reason := kustomize.missing():
    pytest.skip(reason, allow_module_level=True)


class SecretVolume:
    """Its files are links through one link to a folder; a new version is another folder, and replaces that link."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._version = 0

    def write(self, **files: bytes) -> None:
        self._version += 1
        version = self._folder / f"..{self._version}"
        version.mkdir()
        for name, content in files.items():
            (version / name).write_bytes(content)
            if self._version == 1:
                (self._folder / name).symlink_to(f"..data/{name}")
        link = self._folder / "..data_tmp"
        link.symlink_to(version.name)
        link.replace(self._folder / "..data")


class Pod:
    """A server with the variables of the manifests, whose volumes are folders of this machine."""

    def __init__(self, folder: Path) -> None:
        documents = base_with("api-keys", "tls")
        self._container = container(documents)
        mounts = {mount["mountPath"]: folder / mount["name"] for mount in self._container["volumeMounts"]}
        self.secrets = {path: SecretVolume(volume) for path, volume in mounts.items() if path != "/tmp"}
        self.variables = dict(config(documents))
        for name, value in config(documents).items():
            folder_there, _, file = value.rpartition("/")
            if folder_there in mounts:
                self.variables[name] = str(mounts[folder_there] / file)
        self.authority = Authority()
        self.server: ServerProcess

    def start(self, serve: Callable[..., ServerProcess]) -> None:
        self.server = serve("--http-address=127.0.0.1:0", **self.variables)

    def write_certificate(self) -> str:
        certificate, key = self.authority.issue()
        self.secrets["/tls"].write(**{"tls.crt": certificate, "tls.key": key})
        return certificate.decode()

    def write_key(self, capsys: pytest.CaptureFixture[str]) -> str:
        assert main(["api-key", "alice"]) == 0
        line, told = capsys.readouterr()
        self.secrets["/api-keys"].write(**{"keys.toml": line.encode()})
        return told.split()[-1]

    def probe(self, name: str) -> subprocess.CompletedProcess[str]:
        program, script = self._container[f"{name}Probe"]["exec"]["command"]
        assert program == "python"
        command = [sys.executable, REPOSITORY / "deploy" / Path(script).name]
        environment = os.environ | self.variables | {"DRAGOMAN_ADDRESS": self.server.address}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)

    def lets_in(self, key: str) -> bool:
        credentials = self.authority.channel_credentials()
        with Client(self.server.address, credentials=credentials, api_key=key, timeout_s=PATIENCE_S) as client:
            try:
                return client.translate("Good morning.", model="en-de").text == "Guten Morgen."
            except UnauthenticatedError:
                return False

    def served_certificate(self) -> str:
        host, _, port = self.server.address.rpartition(":")
        return ssl.get_server_certificate((host, int(port)), timeout=PATIENCE_S)


def test_a_pod_with_keys_and_tls_takes_up_new_secrets(serve, tmp_path: Path, capsys) -> None:
    pod = Pod(tmp_path)
    pod.write_certificate()
    key = pod.write_key(capsys)
    pod.start(serve)
    assert [pod.probe("startup").stdout, pod.probe("liveness").returncode] == ["SERVING\n", 0]
    assert pod.lets_in(key)

    certificate, other = pod.write_certificate(), pod.write_key(capsys)
    until(lambda: pod.served_certificate() in certificate)
    until(lambda: pod.lets_in(other))
    assert not pod.lets_in(key)
    assert pod.probe("readiness").stdout == "SERVING\n"

    pod.server.signal(signal.SIGTERM)
    pod.server.wait_for("shutting down")
    assert pod.probe("readiness").stdout == "NOT_SERVING\n"
    assert pod.lets_in(other)
    pod.server.signal(signal.SIGTERM)
    assert pod.server.exit_code() == 0
