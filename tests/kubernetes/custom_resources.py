"""Checks resources of the Gateway API, KEDA and the Prometheus operator by the types and schemas that npm has of them.

TypeScript finds names that do not exist, names that are missing and values that are not in a list; the schemas find
values that break a pattern or a bound.
"""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.kubernetes.kustomize import ROOT, Document
from tests.made_once import filled_once

_MODELS: Final = {
    "gateway.networking.k8s.io": "gateway-api",
    "keda.sh": "keda",
    "monitoring.coreos.com": "prometheus-operator",
}
# Exactly these: npm would take old versions, without GRPCRoute, where Node is older than the newest ask for.
_PACKAGES: Final = (
    "@kubernetes-models/gateway-api@2.0.0",
    "@kubernetes-models/keda@2.0.0",
    "@kubernetes-models/prometheus-operator@6.0.0",
    "typescript@7.0.2",
)
_FOLDER: Final = ROOT / ".cache" / f"kubernetes-models-{hashlib.sha256(' '.join(_PACKAGES).encode()).hexdigest()[:8]}"
_OPTIONS: Final = ("--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022")


class NoModelsError(Exception):
    """npm cannot get what is needed; the message says why in one line."""


def fetch() -> None:
    """Install the packages into .cache/, unless they are there.

    Raises:
        NoModelsError: they cannot be installed.
    """
    if not shutil.which("npm"):
        raise NoModelsError("there is no npm")
    filled_once(_FOLDER, _install)


def _install(folder: Path) -> None:
    words = "--no-save --no-fund --no-audit --silent --ignore-scripts --fetch-retries=1 --fetch-retry-mintimeout=1000"
    command = ["npm", "install", "--prefix", folder, *words.split(), *_PACKAGES]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=180)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise NoModelsError("npm cannot install @kubernetes-models and typescript") from error
    (folder / "package.json").write_text('{"type": "module"}')


def is_known(document: Document) -> bool:
    """Whether the resource is of a kind that is checked here."""
    return document["apiVersion"].partition("/")[0] in _MODELS


def problems(documents: Sequence[Document]) -> str:
    """Say what is wrong with the resources, one line each; empty where nothing is."""
    with TemporaryDirectory(dir=_FOLDER) as folder:
        program = Path(folder) / "documents.ts"
        program.write_text(_program(documents))
        checked = subprocess.run(
            [_FOLDER / "node_modules/.bin/tsc", *_OPTIONS, program], capture_output=True, text=True, timeout=120
        )
        validated = subprocess.run(["node", program.with_suffix(".js")], capture_output=True, text=True, timeout=60)
        return checked.stdout + checked.stderr + validated.stdout + validated.stderr


def _program(documents: Sequence[Document]) -> str:
    """Write a program that makes a model of each resource, which TypeScript checks, and validates it."""
    kinds = sorted({(document["apiVersion"], document["kind"]) for document in documents})
    lines = [
        f'import {{ {kind} }} from "@kubernetes-models/{_MODELS[version.partition("/")[0]]}/{version}/{kind}";'
        for version, kind in kinds
    ]
    for document in documents:
        fields = {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}
        made = f"new {document['kind']}({json.dumps(fields)})"
        lines.append(f"try {{ {made}.validate(); }} catch (error) {{ console.log(String(error)); }}")
    return "\n".join(lines)
