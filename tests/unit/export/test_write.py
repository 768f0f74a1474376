"""A bundle appears whole and checked, or not at all."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from pydantic import ValidationError

from dragoman.bundle import Bundle, Precision, sha256
from dragoman.errors import BundleError, DataError
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer
from export.examples import Example
from export.parameters import open_checkpoint
from export.parity import Parity
from export.samples import Sample
from export.weights import WeightsFile
from export.write import ParityError, Target, cure, examples_of, export_bundle, installed_versions, write_graphs
from model.checkpoint import save_checkpoint
from model.corpus import Corpus
from model.transformer import Transformer
from tests import plain_pytorch


class Exported(Protocol):
    """Of the fixture `exported`."""

    bundle: Bundle
    parity: Parity


Export = Callable[[Precision], Exported]
NewTarget = Callable[..., Target]


def test_manifest(exported: Export, checkpoint: Path, loaded: tuple[Transformer, Tokenizer]) -> None:
    bundle, config = exported("int8").bundle, loaded[0].config
    manifest = bundle.manifest
    assert (manifest.name, manifest.languages) == ("random", Languages.pair("en", "de"))
    assert manifest.precision == "int8"
    assert (manifest.max_source_tokens, manifest.max_target_tokens) == (128, 40)
    assert (manifest.pad_id, manifest.start_id, manifest.eos_id, manifest.unknown_id) == (0, 1, 2, 3)
    assert (manifest.d_model, manifest.heads, manifest.head_dim) == (config.d_model, config.heads, config.head_dim)
    assert (manifest.encoder_layers, manifest.decoder_layers, manifest.vocabulary_size) == (1, 2, 400)
    assert manifest.parameters == sum(parameter.numel() for parameter in loaded[0].parameters())
    assert manifest.provenance.checkpoint_sha256 == sha256(checkpoint / "model.safetensors")
    assert {"onnx", "onnxruntime", "dragoman"} <= manifest.provenance.versions.keys()


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout may be run without being installed, and onnxruntime-gpu takes the place of onnxruntime."""
    every = installed_versions()

    def version_of(name: str) -> str:
        if name in ("dragoman", "onnxruntime") or name not in every:
            raise PackageNotFoundError(name)
        return every[name]

    monkeypatch.setattr("export.write.version", version_of)
    assert installed_versions() == {name: every[name] for name in every.keys() - {"dragoman", "onnxruntime"}}


def test_every_file_is_in_the_manifest(exported: Export, checkpoint: Path) -> None:
    bundle = exported("fp32").bundle
    names = {file.name for file in bundle.path.iterdir()}
    assert names == {"encoder.onnx", "decoder.onnx", "weights.bin", "place.onnx", "copy.onnx", "search.onnx"} | {
        "bundle.json",
        "tokenizer.model",
    }
    assert bundle.manifest.files == {name: sha256(bundle.path / name) for name in names - {"bundle.json"}}
    assert (bundle.path / "tokenizer.model").read_bytes() == (checkpoint / "tokenizer.model").read_bytes()


def test_no_path_of_this_machine_is_in_a_bundle(exported: Export) -> None:
    bundle = exported("int8").bundle
    for file in bundle.path.iterdir():
        assert str(Path(__file__).parents[3]).encode() not in file.read_bytes(), file.name


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds noise to a weight of a graph of the bundle, not of those in fp32 that it is compared with."""

    def changed(graph: str, change: float) -> None:
        calls = []

        def write(*arguments: Any, **options: Any) -> None:
            write_graphs(*arguments, **options)
            calls.append(arguments)
            if len(calls) % 2 == 0:
                folder = arguments[2]
                arguments[3].flush()
                file = folder / f"{graph}.onnx"
                content = onnx.load(file)
                shift(content, change)
                onnx.save(content, file)

        monkeypatch.setattr("export.write.write_graphs", write)

    return changed


def shift(model: onnx.ModelProto, change: float) -> None:
    """Adds noise to the last normalization of a graph."""
    norm = [node for node in model.graph.node if node.op_type == "LayerNormalization"][-1]
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == norm.input[1])
    values = numpy_helper.to_array(tensor)
    noise = np.random.default_rng(0).standard_normal(values.shape) * change
    tensor.CopyFrom(numpy_helper.from_array((values + noise).astype(values.dtype), tensor.name))


def test_an_older_bundle_is_replaced(checkpoint: Path, target: NewTarget, corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    out.mkdir()
    (out / "old.txt").write_text("old")
    beside = set[Path]()

    def look(phase: str) -> None:
        """What lies there while it runs, and stays when it is killed, is in a folder that the next run clears."""
        beside.update(set(tmp_path.iterdir()) - {out})

    pairs = Corpus(corpus.sources[:20], corpus.targets[:20], [])
    parity = export_bundle(checkpoint, out, target("fp32"), pairs, look)
    assert beside == {tmp_path / "bundle.partial"}
    assert (parity.sentences, parity.equal) == (20, 20)
    assert not (out / "old.txt").exists()
    assert Bundle.open(out).manifest.precision == "fp32"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_weights_that_may_saturate_are_not_written(
    monkeypatch: pytest.MonkeyPatch,
    checkpoint: Path,
    target: NewTarget,
    corpus: Corpus,
    tmp_path: Path,
) -> None:
    def write(*arguments: Any, **options: Any) -> None:
        write_graphs(*arguments, **options)
        if arguments[1] == "int8":
            arguments[3].flush()
            content = onnx.load(arguments[2] / "encoder.onnx")
            for tensor in content.graph.initializer:
                if tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) == 2:
                    tensor.raw_data = bytes([127]) * len(tensor.raw_data)
            onnx.save(content, arguments[2] / "encoder.onnx")

    monkeypatch.setattr("export.write.write_graphs", write)
    with pytest.raises(BundleError, match="two neighbouring weights add up to 254, and above 128"):
        export_bundle(
            checkpoint, tmp_path / "bundle", target("int8"), Corpus(corpus.sources[:9], corpus.targets[:9], [])
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("graph", ["encoder", "decoder"])
def test_a_changed_weight_is_refused_and_the_old_bundle_stays(
    changed: Callable[..., None], checkpoint: Path, target: NewTarget, corpus: Corpus, tmp_path: Path, graph: str
) -> None:
    pairs = Corpus(corpus.sources[:50], corpus.targets[:50], [])
    out = tmp_path / "bundle"
    changed(graph, 0.1)
    with pytest.raises(ParityError, match=r"was not written: fp32: \d+ of 50 sentences equal"):
        export_bundle(checkpoint, out, target("fp32"), pairs)
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    (out / "old.txt").write_text("old")
    with pytest.raises(ParityError):
        export_bundle(checkpoint, out, target("fp32"), pairs)
    assert [path.name for path in out.iterdir()] == ["old.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_int8_that_loses_bleu_is_refused(
    changed: Callable[..., None],
    checkpoint: Path,
    target: NewTarget,
    loaded: tuple[Transformer, Tokenizer],
    corpus: Corpus,
    samples: list[Sample],
    tmp_path: Path,
) -> None:
    """Against its own translations the checkpoint has a BLEU of 100; a bundle that decodes otherwise has less."""
    model, tokenizer = loaded
    own = [tokenizer.decode(ids) for ids in plain_pytorch.decode(model, samples[:60], 40)]
    changed("decoder", 0.5)
    with pytest.raises(ParityError, match=r"int8: .* checkpoint 100\.00"):
        export_bundle(checkpoint, tmp_path / "bundle", target("int8"), Corpus(corpus.sources[:60], own, []))
    assert list(tmp_path.iterdir()) == []


def test_int8_compared_on_sentences_that_nobody_chose(
    changed: Callable[..., None], checkpoint: Path, target: NewTarget, tmp_path: Path
) -> None:
    """A random model is at home nowhere: few of its translations stay, and yet they stay as probable."""
    parity = export_bundle(checkpoint, tmp_path / "bundle", target("int8"), None)
    assert parity.log_probability_loss is not None
    assert Bundle.open(tmp_path / "bundle").manifest.precision == "int8"
    changed("decoder", 0.5)
    with pytest.raises(ParityError, match=r"on sentences of its own kind \(--data FILE\), or make an fp32 bundle"):
        export_bundle(checkpoint, tmp_path / "other", target("int8"), None)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_who_chose_the_sentences_is_not_told_to_choose(target: NewTarget) -> None:
    assert cure(target("int8"), chosen=False).startswith("compare on sentences of its own kind (--data FILE), or make")
    assert cure(target("int8"), chosen=True).startswith("make an fp32 bundle (--bundle fp32")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"source": 161}, "max source tokens: 161 is above the checkpoint's 160 positions"),
        ({"target": 161}, "max target tokens: 161 is above the checkpoint's 160 positions"),
    ],
)
def test_limits_beyond_the_positions(
    checkpoint: Path, target: NewTarget, corpus: Corpus, tmp_path: Path, limits: dict[str, int], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        export_bundle(checkpoint, tmp_path / "bundle", target("fp32", **limits), corpus)
    assert list(tmp_path.iterdir()) == []


def test_heads_of_a_width_that_the_runtime_cannot_do(
    random_model: Callable[..., Transformer], checkpoint: Path, target: NewTarget, corpus: Corpus, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path / "checkpoint", random_model(1, 1, heads=8), checkpoint, {}, corpus)
    with pytest.raises(DataError, match="head_dim: 4 is not a multiple of 8, which the runtime needs"):
        export_bundle(tmp_path / "checkpoint", tmp_path / "bundle", target("fp32"), corpus)


def test_nothing_to_compare_is_no_parity(
    changed: Callable[..., None], checkpoint: Path, target: NewTarget, corpus: Corpus, tmp_path: Path
) -> None:
    changed("encoder", 0.1)
    with pytest.raises(DataError, match="no sentence to compare on: every source has more than 2 tokens"):
        export_bundle(checkpoint, tmp_path / "bundle", target("fp32", source=2), corpus)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("change", "passed"), [(0.0, True), (0.5, False)])
def test_without_references_a_bundle_must_agree_with_its_checkpoint(
    changed: Callable[..., None], checkpoint: Path, target: NewTarget, tmp_path: Path, change: float, passed: bool
) -> None:
    """On the sentences of the package, of which the English ones are meant."""
    changed("decoder", change)
    out = tmp_path / "bundle"
    if passed:
        parity = export_bundle(checkpoint, out, target("fp32"), None)
        assert (parity.sentences, parity.equal, parity.agreement, parity.bundle_bleu) == (40, 40, 100.0, None)
    else:
        with pytest.raises(ParityError, match=r"BLEU of one against the other \d+\.\d+$"):
            export_bundle(checkpoint, out, target("fp32"), None)


def test_targets_are_cut_to_the_positions(loaded: tuple[Transformer, Tokenizer]) -> None:
    samples = [Sample([5, 2], (1, 7), "a b c d"), Sample([6, 2], (1,))]
    examples = examples_of(samples, [[8], [9, 10]], loaded[1], 3)
    assert examples == [Example([5, 2], [1, 7, *loaded[1].encode_target("a b c d")][:3]), Example([6, 2], [1, 9, 10])]


def test_no_checkpoint(target: NewTarget, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a readable checkpoint"):
        export_bundle(tmp_path / "missing", tmp_path / "bundle", target("fp32"), corpus)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_server_would_take(checkpoint: Path, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="name"):
        export_bundle(
            checkpoint, tmp_path / "bundle", Target("../x", Languages.pair("en", "de"), "fp32", 128, 40), corpus
        )
    assert list(tmp_path.iterdir()) == []


def test_the_files_are_always_the_same(exported: Export, checkpoint: Path, tmp_path: Path) -> None:
    bundle = exported("fp32").bundle
    parameters, _ = open_checkpoint(checkpoint)
    with WeightsFile(tmp_path) as weights:
        write_graphs(parameters, "fp32", tmp_path, weights, {}, bundle.manifest.alignment.layer)
    for name in ("encoder.onnx", "decoder.onnx", "weights.bin", "place.onnx", "copy.onnx", "search.onnx"):
        assert (tmp_path / name).read_bytes() == (bundle.path / name).read_bytes()
