"""What kustomize makes of deploy/kubernetes: of the base with any of the components, and of the example."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from tests import debian

ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "deploy/kubernetes"
COMPONENTS: Final = sorted(folder.name for folder in (MANIFESTS / "components").iterdir())

Document = dict[str, Any]


@cache
def command() -> tuple[str, ...]:
    """Give the words that the folder to build comes after: of kubectl, or else of kustomize from Debian, in .cache/.

    Raises:
        NoPackagesError: there is neither.
    """
    if kubectl := shutil.which("kubectl"):
        return kubectl, "kustomize"
    return str(debian.unpacked("kustomize", debian.NEWEST) / "usr/bin/kustomize"), "build"


@cache
def missing() -> str:
    """Say in one line why there is neither kubectl nor kustomize; empty where there is one."""
    try:
        command()
    except debian.NoPackagesError as error:
        return f"neither kubectl nor kustomize here: {error}"
    return ""


@cache
def base_with(*components: str) -> list[Document]:
    """Build the base with components, in their order."""
    with TemporaryDirectory() as folder:
        manifests = os.path.relpath(MANIFESTS, Path(folder).resolve())  # kustomize takes no absolute path
        overlay = {
            "resources": [f"{manifests}/base"],
            "components": [f"{manifests}/components/{name}" for name in components],
        }
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        return _build(Path(folder))


@cache
def example() -> list[Document]:
    """Build the example of an overlay."""
    return _build(MANIFESTS / "example")


def _build(folder: Path) -> list[Document]:
    done = subprocess.run([*command(), folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr  # such as a field that is deprecated
    return list(yaml.load_all(done.stdout, Loader=yaml.CSafeLoader))
