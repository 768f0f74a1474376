import json
import lzma
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from bench.gpu import __main__ as gpu
from bench.gpu import rig as gpu_rig
from bench.gpu import stages as gpu_stages
from bench.gpu.stages import StepBytes, bleu, cycled, equal_share, slot_counts, step_bytes
from bench.load.texts import DataFileError
from bench.peers.contender import Sentences
from dragoman.bundle import Bundle

REPOSITORY = Path(__file__).parents[4]
BUNDLE = REPOSITORY / "models" / "en-de" / "bundle"
CHECKPOINT = REPOSITORY / "models" / "en-de" / "checkpoint"
PAIRS = REPOSITORY / "tests" / "data" / "en-de.tsv"
SENTENCES = Sentences([[5, 6, 2], [9, 2], [7, 8, 9, 10, 2]], [12, 9, 11])

without_cuda = pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="this onnxruntime can use a GPU"
)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(BUNDLE)


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_stages, "COPY_FLOATS", {"cpu": 2**16})
    monkeypatch.setattr(gpu_stages, "FEWEST_SENTENCES", 4)
    monkeypatch.setattr(gpu_stages, "SENTENCES_PER_SLOT", 2)


@without_cuda
def test_without_a_gpu_it_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main([]) == 2
    error = capsys.readouterr().err
    assert "CUDAExecutionProvider" in error
    assert error.count("\n") == 1


def test_a_cpu_can_always_be_used() -> None:
    assert gpu_stages.missing_device("cpu") is None


def test_a_provider_that_is_not_installed_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu_stages.PROVIDERS, "cpu", ["NoSuchExecutionProvider", "CPUExecutionProvider"])
    assert "this onnxruntime has no NoSuchExecutionProvider" in (gpu_stages.missing_device("cpu") or "")


def test_placement_names_the_provider_and_counts_copies(bundle: Bundle) -> None:
    placed = gpu_stages.placement(bundle, "cpu")
    assert set(placed) == {"encoder", "decoder", "place", "copy"}
    for graph in placed.values():
        assert (graph["first_provider"], graph["memcpy_nodes"]) == ("CPUExecutionProvider", 0)
    assert min(placed["encoder"]["nodes"], placed["decoder"]["nodes"]) > 10


def test_a_bundle_is_equal_to_itself_with_other_slots(bundle: Bundle) -> None:
    figures = gpu_stages.parity(bundle, bundle, "cpu", 2, SENTENCES, None)
    assert (figures["sentences"], figures["equal_share"]) == (3, 1.0)
    assert figures["bleu_int8_cpu"] is None


def test_share_of_equal_sentences() -> None:
    assert equal_share([[1, 2], [3], [], [4]], [[1, 2], [3, 3], [], [5]]) == 0.5


def test_bleu_of_the_references_is_100() -> None:
    pytest.importorskip("sacrebleu")
    texts = ["Ein Hund läuft über die Wiese.", "Zwei Kinder spielen im Schnee."]
    assert bleu(texts, texts) == pytest.approx(100.0)
    assert bleu(texts, None) is None


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (4, [1, 2, 4]), (1000, [2**power for power in range(10)])])
def test_slot_counts_double(most: int, counts: list[int]) -> None:
    assert slot_counts(most) == counts


def test_sentences_come_again_until_there_are_enough() -> None:
    portion = cycled(SENTENCES, slots=4)
    assert len(portion) == 8
    assert portion.sources == [*SENTENCES.sources, *SENTENCES.sources, *SENTENCES.sources[:2]]
    assert portion.limits[3] == SENTENCES.limits[0]


def test_bytes_of_a_step_follow_from_lengths(bundle: Bundle) -> None:
    # Steps see 1, 2 own positions beside 3 of the source, then 1 beside 5.
    read = step_bytes(bundle, [3, 5], [2, 1])
    positions = ((1 + 3) + (2 + 3) + (1 + 5)) / 3
    manifest = bundle.manifest
    assert read.row == pytest.approx(positions * manifest.decoder_layers * 2 * manifest.d_model * 4)
    assert read.weights == bundle.decoder.stat().st_size
    half = bundle.manifest.model_copy(update={"precision": "fp16"})
    assert gpu_stages.position_bytes(half) == gpu_stages.position_bytes(manifest) / 2


def test_floor_is_bytes_over_bandwidth() -> None:
    assert StepBytes(weights=1000, row=10.0).least_ms(slots=100, bytes_per_s=1e6) == pytest.approx(2.0)


def test_copy_is_measured_on_the_device() -> None:
    assert gpu_stages.copy_bytes_per_s("cpu") > 0


def test_speed_measures_both_sides_on_the_same_sentences(bundle: Bundle) -> None:
    seen: list[Sentences] = []

    def peer(sentences: Sentences) -> int:
        seen.append(sentences)
        return 100

    figures = gpu_stages.speed(bundle, "cpu", 2, SENTENCES, peer)
    assert figures["tokens_per_s"] > 0
    assert figures["peer_tokens_per_s"] > 0
    assert figures["step_ms"] > 0
    assert (figures["slots"], figures["sentences"]) == (2, 4)
    assert [len(sentences) for sentences in seen] == [4, 4, 4]


def test_speed_without_a_peer_says_nothing_of_one(bundle: Bundle) -> None:
    assert "peer_tokens_per_s" not in gpu_stages.speed(bundle, "cpu", 1, SENTENCES, None)


def test_a_part_that_fails_is_reported_and_does_not_end_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> dict[str, Any]:
        raise RuntimeError("no\nmemory")

    assert gpu.attempt("speed", fails) == {"error": "RuntimeError: no memory"}
    assert "speed: error RuntimeError: no memory" in capsys.readouterr().out


def test_pairs_are_read_also_compressed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.xz"
    path.write_bytes(lzma.compress(b"One.\tEins.\nbroken\n\tleer\nTwo.\tZwei.\nThree.\tDrei.\n"))
    assert gpu_rig.read_pairs(path, 2) == (["One.", "Two."], ["Eins.", "Zwei."])


@pytest.mark.parametrize("content", [None, b"no tab\n", b"\xff\t\xff\n"])
def test_no_pairs_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "pairs.tsv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"pairs\.tsv"):
        gpu_rig.read_pairs(path, 9)


def test_bad_data_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--device", "cpu", "--data", str(tmp_path / "none.tsv")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_all_parts_run_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rehearsal; the committed bundle stands for both that would be exported."""
    for precision in ("fp32", "fp16"):
        (tmp_path / f"bundle-{precision}").symlink_to(BUNDLE)
    out = tmp_path / "gpu.json"
    sizes = ["--sentences", "6", "--most-slots", "2", "--served-slots", "2", "--seconds", "0.5"]
    inputs = ["--checkpoint", str(CHECKPOINT), "--data", str(PAIRS), "--work", str(tmp_path), "--json", str(out)]
    assert gpu.main(["--device", "cpu", *sizes, *inputs]) == 0
    assert "all parts ran" in capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["parity"]["equal_share"] == 1.0
    assert report["floor"]["step_ms_at_slots"]["2"] > report["floor"]["step_ms_at_slots"]["1"] > 0
    assert report["speed"]["2"]["floor_ms"] == report["floor"]["step_ms_at_slots"]["2"]
    assert report["speed"]["2"]["tokens_per_s"] > 0
    assert report["served"]["completed"] > 0
    assert report["served"]["verify_different"] == 0
