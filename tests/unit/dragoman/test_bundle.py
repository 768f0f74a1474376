import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.bundle import (
    FORMAT,
    OLDEST_FORMAT,
    Bundle,
    Manifest,
    cache_names,
    find_bundles,
    memory_names,
    sha256,
    target_limit,
)
from dragoman.errors import BundleError
from dragoman.files import FileState

GRAPHS = {
    "encoder.onnx": b"encoder",
    "decoder.onnx": b"decoder",
    "place.onnx": b"place",
    "copy.onnx": b"copy",
    "search.onnx": b"search",
}
CONTENT = GRAPHS | {"tokenizer.model": b"pieces"}
FIELDS = {
    "format_version": FORMAT,
    "name": "en-de",
    "languages": {"sources": ["en"], "targets": ["de"]},
    "precision": "int8",
    "pad_id": 0,
    "start_id": 1,
    "eos_id": 2,
    "unknown_id": 3,
    "vocabulary_size": 8000,
    "d_model": 256,
    "heads": 4,
    "head_dim": 64,
    "encoder_layers": 6,
    "decoder_layers": 2,
    "max_source_tokens": 128,
    "max_target_tokens": 256,
    "alignment": {"layer": 0, "heads": [0]},
    "parameters": 12345,
    "provenance": {"checkpoint_sha256": "ab" * 32, "versions": {"torch": "2.13.0"}},
}
Edit = Callable[..., Path]


def write(folder: Path, content: dict[str, bytes] = CONTENT) -> Path:
    folder.mkdir(parents=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    files = {name: sha256(folder / name) for name in content}
    (folder / "bundle.json").write_text(json.dumps(FIELDS | {"files": files}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "bundle")


@pytest.fixture
def edit(folder: Path) -> Edit:
    """Changes fields of the manifest; None takes one away."""

    def edit(**fields: Any) -> Path:
        file = folder / "bundle.json"
        manifest = json.loads(file.read_text()) | fields
        file.write_text(json.dumps({name: value for name, value in manifest.items() if value is not None}))
        return folder

    return edit


def refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        Bundle.open(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_opens(folder: Path) -> None:
    bundle = Bundle.open(folder)
    assert bundle.path == folder
    assert bundle.manifest.name == "en-de"
    assert bundle.manifest.provenance.checkpoint_sha256 == "ab" * 32


def test_files_are_checked_while_they_are_used(folder: Path) -> None:
    with Bundle.opening(folder) as bundle, bundle.mapped("encoder.onnx") as content:
        assert bytes(content) == b"encoder"
    assert bundle == Bundle.open(folder)
    assert bundle.hashed == Bundle.open(folder).hashed


def test_a_link_to_a_file_that_is_checked_is_no_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_later(path: Path) -> Bundle:
        os.link(path / "encoder.onnx", path.parent / "a link")
        return really_open(path)

    really_open = Bundle.open
    monkeypatch.setattr(Bundle, "open", open_later)
    with Bundle.opening(folder) as bundle:
        assert bundle.path == folder


@pytest.mark.parametrize("name", CONTENT)
def test_a_changed_file_is_refused_at_the_end_of_its_use(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[3] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(BundleError, match=rf"{name}: sha256 is .*, the manifest says"), Bundle.opening(folder):
        raise ValueError("what came of it")


def test_a_file_that_came_before_its_check_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hash is that of the file that lies there now; the block may have used the one before."""
    with (folder / "decoder.onnx").open("rb") as stream:
        before = FileState.of(stream)
    monkeypatch.setattr("dragoman.bundle._state", lambda _: before)
    with pytest.raises(BundleError, match="has changed while it was loaded"), Bundle.opening(folder):
        pass


def test_a_file_beside_those_of_the_manifest_is_no_harm(folder: Path) -> None:
    (folder / "README.md").write_text("a model card")
    Bundle.open(folder)


def test_no_bundle(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing").startswith(f"{tmp_path / 'missing' / 'bundle.json'}: cannot read")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"null", b"\xff\xfe", b'{"name": "en-de"'])
def test_no_manifest(folder: Path, content: bytes) -> None:
    (folder / "bundle.json").write_bytes(content)
    assert "bundle.json" in refusal(folder)


@pytest.mark.parametrize("name", CONTENT)
def test_changed_file(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[3] ^= 1
    (folder / name).write_bytes(data)
    assert refusal(folder).startswith(f"{folder / name}: sha256 is ")


@pytest.mark.parametrize("name", CONTENT)
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert refusal(folder).startswith(f"{folder / name}: cannot read")


@pytest.mark.parametrize("name", ["bundle.json", *CONTENT])
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_not_waited_for(folder: Path, name: str, make: Callable[[Path], None]) -> None:
    (folder / name).unlink()
    make(folder / name)
    assert refusal(folder) == f"{folder / name}: cannot read: is not a regular file"


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_that_the_manifest_leaves_out_is_not_trusted(folder: Path, edit: Edit, name: str) -> None:
    files = json.loads((folder / "bundle.json").read_text())["files"]
    del files[name]
    assert f"no entry for {name}" in refusal(edit(files=files))


@pytest.mark.parametrize("other", [{}, {"alignment": None}, {"shape": "round"}])
@pytest.mark.parametrize(
    ("version", "limit", "cure"),
    [
        (OLDEST_FORMAT - 1, f"at least {OLDEST_FORMAT}", "export the model again (dragoman export "),
        (0, f"at least {OLDEST_FORMAT}", "export the model again (dragoman export "),
        (FORMAT + 1, f"at most {FORMAT}", "install a newer dragoman-server"),
    ],
)
def test_another_format_is_refused_by_its_number(
    edit: Edit, version: int, limit: str, cure: str, other: dict[str, Any]
) -> None:
    folder = edit(format_version=version, **other)
    message = f"{folder / 'bundle.json'}: format_version: must be {limit}, not {version}: {cure}"
    assert refusal(folder).startswith(message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"note": "a" * 201}, "note: "),
        ({"note": "two\nlines"}, "note: must be one line of characters that can be printed"),
        ({"quality": {"bias": 1.0}}, "quality.mean_log_probability"),
        ({"format_version": "6"}, "format_version: must be a valid integer, not '6'"),
        ({"format_version": True}, "format_version"),
        ({"precision": "int4"}, "precision"),
        ({"name": "../en-de"}, "name"),
        ({"name": ""}, "name"),
        ({"languages": {"sources": ["english language"], "targets": ["de"]}}, "languages.sources"),
        ({"vocabulary_size": 0}, "vocabulary_size"),
        ({"max_target_tokens": "many"}, "max_target_tokens"),
        ({"decoder_layers": None}, "decoder_layers: Field required"),
        ({"provenance": {}}, "provenance.checkpoint_sha256: Field required"),
        ({"files": None}, "files: Field required"),
        ({"layers": 3}, "layers: is no known field"),
    ],
)
def test_manifest_of_another_format(edit: Edit, fields: dict[str, Any], message: str) -> None:
    assert message in refusal(edit(**fields))


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("max_target_tokens", 10**7, 65536),
        ("max_target_tokens", 10**30, 65536),
        ("max_source_tokens", 65537, 65536),
        ("decoder_layers", 10**6, 1000),
        ("encoder_layers", 1001, 1000),
        ("d_model", 10**12, 65536),
        ("heads", 10**6, 65536),
        ("head_dim", 10**6, 65536),
        ("vocabulary_size", 10**12, 2**24),
        ("eos_id", 10**9, 2**24),
        ("parameters", 10**30, 2**63 - 1),
    ],
)
def test_values_out_of_all_proportion_are_named_with_their_limit(
    edit: Edit, folder: Path, field: str, value: int, limit: int
) -> None:
    message = refusal(edit(**{field: value}))
    assert message == f"{folder / 'bundle.json'}: {field}: must be less than or equal to {limit}, not {value}"


@pytest.mark.parametrize("name", ["pad_id", "start_id", "eos_id", "unknown_id"])
def test_an_id_beyond_the_vocabulary_is_refused(edit: Edit, name: str) -> None:
    assert f"{name} 8000 must be below vocabulary_size 8000" in refusal(edit(**{name: 8000}))


def test_the_width_of_all_heads_has_its_limit(edit: Edit) -> None:
    assert "heads 2048 times head_dim 64 must be at most 65536" in refusal(edit(heads=2048))


def test_heads_may_be_wider_together_than_the_model(edit: Edit) -> None:
    assert Manifest.read(edit(heads=8)).attention_width == 8 * 64


@pytest.mark.parametrize(
    "name", ["../secret", "a/b", "/etc/hostname", "..", ".", "", "encoder.onnx/", "./encoder.onnx", "a\0b"]
)
def test_names_that_lead_elsewhere(folder: Path, edit: Edit, name: str) -> None:
    """Even where the file is there and its hash is right."""
    secret = folder.parent / "secret"
    secret.write_bytes(b"encoder")
    (folder / "a").mkdir()
    (folder / "a" / "b").write_bytes(b"encoder")
    files = json.loads((folder / "bundle.json").read_text())["files"]
    assert "bundle.json: files: " in refusal(edit(files={name: sha256(secret), **files}))


def test_find_bundles(tmp_path: Path) -> None:
    deep, shallow = write(tmp_path / "models" / "fr" / "bundle"), write(tmp_path / "models" / "de")
    assert find_bundles(tmp_path / "models") == [shallow, deep]
    assert find_bundles(shallow) == [shallow]
    assert find_bundles(tmp_path / "missing") == []


def test_links_to_folders_are_followed_wherever_they_lead(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    whole, other = write(root / "en-de" / "bundle"), write(elsewhere / "v2" / "bundle")
    (root / "fr").symlink_to(elsewhere / "v2")
    (root / "gone").symlink_to(elsewhere / "v1")
    (root / ".hidden").symlink_to(write(tmp_path / "hidden"))
    assert find_bundles(root) == [whole, root / "fr" / "bundle"]
    assert find_bundles(root / "fr") == [root / "fr" / "bundle"]
    (other / "back").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "all").symlink_to(".")
    assert find_bundles(root) == [whole, root / "fr" / "bundle"]


def test_a_bundle_with_a_link_beside_it_is_one(tmp_path: Path) -> None:
    bundle = write(tmp_path / "models" / "en-de")
    (tmp_path / "models" / "default").symlink_to("en-de")
    (tmp_path / "models" / "again").symlink_to("default")
    assert find_bundles(tmp_path / "models") == [bundle]


def test_what_is_still_written_was_replaced_or_is_hidden_is_no_bundle(tmp_path: Path) -> None:
    root = tmp_path / "a.old"  # where it lies itself does not count
    whole = write(root / "en-de")
    for name in ("en-de.partial", "en-de.old", ".en-de", ".trash/en-de"):
        write(root / name)
    assert find_bundles(root) == [whole]


def test_names_of_caches_and_memory() -> None:
    assert cache_names(2) == ["self_key_0", "self_value_0", "self_key_1", "self_value_1"]
    assert memory_names(1) == ["memory_key_0", "memory_value_0"]


@settings(deadline=None)
@given(source=st.integers(1, 10_000), limit=st.integers(2, 10_000))
def test_target_limit(source: int, limit: int) -> None:
    tokens = target_limit(source, limit)
    assert 1 <= tokens <= limit
    assert tokens == limit or tokens >= 2 * source
    assert tokens <= target_limit(source + 1, limit)


def test_the_target_limit_rounds_down() -> None:
    assert target_limit(3, 100, factor=1.5, offset=0) == 4
    assert target_limit(1, 100, factor=1.99, offset=3) == 4


def test_the_target_limit_can_be_set() -> None:
    assert target_limit(7, 100, factor=1.5, offset=3) == 13
    assert target_limit(7, 100, factor=0, offset=3) == 3
    assert target_limit(7, 12, factor=1.5, offset=3) == 12


def test_a_tokenizer_without_a_hash_is_refused(folder: Path) -> None:
    file = folder / "bundle.json"
    manifest = json.loads(file.read_text())
    del manifest["files"]["tokenizer.model"]
    file.write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"files: no entry for tokenizer\.model"):
        Bundle.open(folder)


def test_a_file_is_read_and_checked_at_once(folder: Path) -> None:
    bundle = Bundle.open(folder)
    assert bundle.read("encoder.onnx") == b"encoder"
    assert bundle.graph("decoder.onnx") == (b"decoder", folder / "decoder.onnx")


@pytest.mark.parametrize("name", CONTENT)
def test_what_was_written_over_after_the_check_is_refused(folder: Path, name: str) -> None:
    bundle = Bundle.open(folder)
    (folder / name).write_bytes(b"noise")
    with pytest.raises(BundleError, match=r"sha256 is .*, the manifest says"):
        bundle.tokenizer() if name == "tokenizer.model" else bundle.graph(name)


def test_what_is_gone_after_the_check_is_named(folder: Path) -> None:
    bundle = Bundle.open(folder)
    (folder / "encoder.onnx").unlink()
    with pytest.raises(BundleError, match=r"encoder\.onnx: cannot read"):
        bundle.read("encoder.onnx")


def test_a_file_is_mapped_without_being_hashed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have gigabytes."""
    bundle = Bundle.open(folder)
    monkeypatch.setattr("dragoman.bundle._sha256", lambda _: "never asked")
    with bundle.mapped("encoder.onnx") as content:
        assert bytes(content) == b"encoder"
    with bundle.mapped("weights.bin") as content:  # which this manifest does not list
        assert bytes(content) == b""
    os.utime(folder / "encoder.onnx")
    with pytest.raises(BundleError, match="sha256 is never asked"), bundle.mapped("encoder.onnx"):
        pass


def test_what_was_written_over_before_it_is_mapped_is_refused(folder: Path) -> None:
    bundle = Bundle.open(folder)
    (folder / "encoder.onnx").write_bytes(b"reencod")
    with pytest.raises(BundleError, match=r"sha256 is .*, the manifest says"), bundle.mapped("encoder.onnx"):
        pass
    (folder / "encoder.onnx").unlink()
    with pytest.raises(BundleError, match=r"encoder\.onnx: cannot read"), bundle.mapped("encoder.onnx"):
        pass


def test_what_is_written_over_while_it_is_mapped_is_refused(folder: Path) -> None:
    def write_while_mapped() -> None:
        with Bundle.open(folder).mapped("encoder.onnx"):
            (folder / "encoder.onnx").write_bytes(b"reencod")
            os.utime(folder / "encoder.onnx", (0, 0))

    with pytest.raises(BundleError, match=r"encoder\.onnx: has changed while it was loaded"):
        write_while_mapped()


def test_a_link_to_what_is_mapped_is_no_change(folder: Path) -> None:
    with Bundle.open(folder).mapped("encoder.onnx") as content:
        os.link(folder / "encoder.onnx", folder.parent / "a link to the encoder")
    assert bytes(content) == b"encoder"


def test_an_empty_file_can_be_mapped(folder: Path) -> None:
    (folder / "empty").write_bytes(b"")
    files = {"empty": sha256(folder / "empty")}
    manifest = Bundle.open(folder).manifest.model_copy(update={"files": files})
    with Bundle(folder, manifest).mapped("empty") as content:
        assert bytes(content) == b""


def test_pieces_that_are_none_are_named(folder: Path) -> None:
    with pytest.raises(BundleError, match=r"tokenizer\.model: cannot read the tokenizer"):
        Bundle.open(folder).tokenizer()
