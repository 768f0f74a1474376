"""The CPU image, a file for each architecture that can be built here."""

import subprocess
import tempfile
from pathlib import Path

from deploy.release.source import Release

ARCHITECTURES = ("amd64", "arm64")


def write(release: Release, out: Path) -> list[str]:
    """Build the images, as files that `docker load` reads.

    Args:
        release: what is built.
        out: folder for the files.

    Returns:
        One line for each image: its file, or why there is none.
    """
    if reason := _failure("docker", "buildx", "version") or _failure("docker", "info"):
        return [f"images skipped: {reason}"]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder, "source")
        release.copy_to(context)
        for architecture in ARCHITECTURES:
            image = f"dragoman:{release.version}-{architecture}"
            file = out / f"dragoman-{release.version}-linux-{architecture}.tar"
            reason = _failure(
                "docker", "buildx", "build", context, f"--file={context}/deploy/Dockerfile", f"--tag={image}", "--load",
                f"--platform=linux/{architecture}", f"--build-arg=SOURCE_DATE_EPOCH={release.epoch_s}",
                f"--label=org.opencontainers.image.version={release.version}",
                f"--label=org.opencontainers.image.revision={release.commit}",
            ) or _failure("docker", "save", f"--output={file}", image)  # fmt: skip
            lines.append(f"image of {architecture} skipped: {reason}" if reason else file.name)
    return lines


def _failure(*command: str | Path) -> str:
    """Run a command, and give the line that says why it fails; empty where it does not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return f"there is no {command[0]}"
    if not done.returncode:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no message"]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors[-1] if errors else lines[0])[:300]
