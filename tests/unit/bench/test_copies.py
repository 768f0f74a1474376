from pathlib import Path

from bench.copies import copied
from dragoman.bundle import Bundle
from tests.synthetic import Synthetic


def test_copies_are_bundles_that_share_no_weights(int8: Synthetic, tmp_path: Path) -> None:
    names = ["one", "other"]
    bundles = [Bundle.open(copied(int8.bundle.path, tmp_path / name, name=name)) for name in names]
    assert [bundle.manifest.name for bundle in bundles] == names
    assert len({bundle.manifest.files["weights.bin"] for bundle in bundles}) == 2
