import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service import cores

V1_ROOT = Path("/sys/fs/cgroup/cpu")


@pytest.fixture
def write(tmp_path: Path):
    """Writes files below the folder of a test, and gives the quota that they stand for."""

    def write(groups: str, files: dict[str, str]) -> float:
        (tmp_path / "groups").write_text(groups)
        for name, text in files.items():
            file = tmp_path / "root" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return cores.cpu_quota(tmp_path / "groups", tmp_path / "root")

    return write


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("200000 100000\n", 2.0),
        ("150000 100000\n", 1.5),
        ("50000\n", 0.5),
        ("max 100000\n", math.inf),
        ("", math.inf),
        ("nonsense here\n", math.inf),
        ("0 0\n", math.inf),
    ],
)
def test_version_2(write, text: str, quota: float) -> None:
    assert write("0::/\n", {"cpu.max": text}) == quota


def test_version_2_takes_the_smallest_quota_up_to_the_root(write) -> None:
    files = {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n", "cpu.max": "800000 100000\n"}
    assert write("0::/a/b\n", files) == 3.0


@pytest.mark.parametrize("path", ["/docker/0123", "/../../pod", "/"])
def test_a_container_that_sees_its_own_part_has_its_quota_at_the_root(write, path: str) -> None:
    assert write(f"0::{path}\n", {"cpu.max": "200000 100000\n"}) == 2.0


@pytest.mark.parametrize(("work", "quota"), [("250000\n", 2.5), ("-1\n", math.inf)])
@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
def test_version_1(write, controllers: str, work: str, quota: float) -> None:
    groups = f"12:cpuset:/\n4:{controllers}:/kube/pod\n1:name=systemd:/\n0::/\n"
    files = {"cpu/kube/pod/cpu.cfs_quota_us": work, "cpu/kube/pod/cpu.cfs_period_us": "100000\n"}
    assert write(groups, files) == quota


@pytest.mark.parametrize("groups", ["", "nonsense\n", "0::/a\n", "3:cpu:/a\n"])
def test_without_files_there_is_no_quota(write, groups: str) -> None:
    assert write(groups, {}) == math.inf


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert cores.cpu_quota(tmp_path / "missing", tmp_path) == math.inf


@pytest.mark.parametrize(("quota", "expected"), [(0.1, 1), (1.0, 1), (1.5, 2), (2.0, 2), (64.0, 3), (math.inf, 3)])
def test_a_part_of_a_core_counts_as_one_and_affinity_holds_as_well(monkeypatch, quota: float, expected: int) -> None:
    monkeypatch.setattr(cores, "cpu_quota", lambda groups, root: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2}, raising=False)
    assert cores.available() == expected


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of this machine; skips where none can be made."""
    folder = V1_ROOT / f"dragoman-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("no control group of version 1 can be made here")
    try:
        yield folder
    finally:
        folder.rmdir()


def test_a_process_in_a_real_control_group(group: Path) -> None:
    (group / "cpu.cfs_period_us").write_text("100000")
    (group / "cpu.cfs_quota_us").write_text("100000")
    code = (
        f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n"
        "from service.settings import load\nprint(load().decoding_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "1\n"
