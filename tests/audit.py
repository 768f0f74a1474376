"""`make audit`: known vulnerabilities of the packages that a server runs on, by pip-audit; skips where it cannot tell.

python tests/audit.py
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
TIMEOUT_S = 120
_TOOL = "pip-audit>=2.9,<3"
# As pip writes requirements: a name, perhaps extras and versions, perhaps a condition.
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*(?:;(.*))?")


def serving_set() -> dict[str, str]:
    """Gives the version of every installed package of others that serving needs, directly or not."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    found: dict[str, str] = {}
    needed = [*project["dependencies"], *project["optional-dependencies"]["cpu"]]
    left = [requirement for requirement in needed if not requirement.startswith("dragoman")]
    while left:
        name, condition = _REQUIREMENT.fullmatch(left.pop()).groups()  # type: ignore[union-attr]
        if name in found or "extra ==" in (condition or ""):
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another system or another Python
        found[name] = package.version
        left.extend(package.requires or [])
    return found


def findings(pins: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """Asks pip-audit, installed in a folder of its own.

    Raises:
        OSError: it cannot be installed, or cannot reach its database.
    """
    requirements = folder / "serving.txt"
    requirements.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
    venv.create(folder / "venv", with_pip=True)
    _run(folder, "pip", "install", "--quiet", "--disable-pip-version-check", _TOOL)
    report = _run(
        folder,
        "pip_audit",
        "--progress-spinner=off",
        "--format=json",
        "--disable-pip",
        "--no-deps",
        "-r",
        str(requirements),
    )
    try:
        packages = json.loads(report)["dependencies"]
    except ValueError as error:
        raise OSError("pip-audit gave no report") from error
    if skipped := [package["skip_reason"] for package in packages if "skip_reason" in package]:
        raise OSError(f"pip-audit can tell nothing of {len(skipped)} packages: {skipped[0][:120]}")
    return [package for package in packages if package["vulns"]]


def _run(folder: Path, module: str, *arguments: str) -> str:
    """Runs a module, and gives what it prints, whatever its exit code: pip-audit's is 1 where it finds something."""
    command = [str(folder / "venv" / "bin" / "python"), "-m", module, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{module} did not end within {TIMEOUT_S} s") from error
    if done.returncode and not done.stdout:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise OSError(f"{module}: {last[:200]}")
    return done.stdout


def _lines(package: dict[str, Any]) -> Iterator[str]:
    for vulnerability in package["vulns"]:
        fixed = ", ".join(vulnerability["fix_versions"]) or "none"
        yield f"{package['name']} {package['version']}: {vulnerability['id']} (fixed in: {fixed})"


def main() -> int:
    """Prints one line for each known vulnerability, or one that there are none, or one that nobody could be asked."""
    pins = serving_set()
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = findings(pins, Path(folder))
        except (OSError, subprocess.SubprocessError) as error:
            print(f"audit skipped: {error}")
            return 0
    for package in found:
        print("\n".join(_lines(package)))
    print(f"{len(pins)} packages audited, {len(found)} with known vulnerabilities")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
