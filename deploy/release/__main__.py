"""python -m deploy.release: all that a release would publish, in dist/release.

Run it by `make release`, in the environment of requirements.txt.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.release import images, inventory, packages
from deploy.release.source import NoReleaseError, Release

ROOT = Path(__file__).parents[2]
OUT = ROOT / "dist" / "release"
SUMS = "SHA256SUMS"


def main() -> int:
    """Build everything, or say in one line why not."""
    partial = OUT.with_name("release.partial")
    try:
        release = Release.of(ROOT)
        shutil.rmtree(partial, ignore_errors=True)
        packages.build_twice(release, partial / "packages")
        packages.check(partial / "packages")
        print("packages: built twice, the same bytes", flush=True)
        inventory.write(release, partial / "packages", partial)
        print("bills of materials and licences of what is installed today", flush=True)
        for line in images.write(release, partial):
            print(line, flush=True)
    except NoReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"release: {error}: {' '.join(str(error.stderr or error.stdout or '').split())[-300:]}", file=sys.stderr)
        return 1
    write_sums(partial)
    shutil.rmtree(OUT, ignore_errors=True)
    partial.rename(OUT)
    print(f"{OUT.relative_to(ROOT)}: {release.version}, commit {release.commit}")
    return 0


def write_sums(folder: Path) -> None:
    """Write the file that `sha256sum --check` reads, of all files but the images, as if they lay in one folder."""
    lines = []
    for file in sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".tar"):
        with file.open("rb") as stream:
            lines.append(f"{hashlib.file_digest(stream, 'sha256').hexdigest()}  {file.name}\n")
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
