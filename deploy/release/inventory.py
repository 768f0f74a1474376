"""What an installation holds: a bill of materials in CycloneDX, and the licences with their texts."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from deploy.release.source import Release

# By distribution: what is installed of it, and where its description is.
_INSTALLED = {"dragoman": ("", "dragoman/pyproject.toml"), "dragoman-server": ("[cpu]", "pyproject.toml")}


def write(release: Release, packages: Path, out: Path) -> None:
    """Install each distribution of its wheel, and write what is there, versions as they are today.

    Args:
        release: what is released.
        packages: folder with the wheels.
        out: folder for the files.

    Raises:
        CalledProcessError: what it needs cannot be installed.
    """
    for name, (extra, description) in _INSTALLED.items():
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder)
            python = Path(folder, "bin", "python")
            (wheel,) = packages.glob(f"{name.replace('-', '_')}-{release.version}-*.whl")
            _run("pip", f"--python={python}", "install", "--quiet", f"--find-links={packages}", f"{wheel}{extra}")
            about = f"{name}-{release.version}"
            bill = ("--output-reproducible", f"--pyproject={release.repository / description}", "--output-file")
            _run("cyclonedx_py", "environment", *bill, f"{out / about}.cdx.json", python)
            texts = ("--with-license-file", "--no-license-path", "--with-urls", "--format=plain-vertical")
            _run("piplicenses", f"--python={python}", *texts, f"--output-file={out / about}-licenses.txt")


def _run(module: str, *words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", module, *words], check=True, capture_output=True, text=True)
