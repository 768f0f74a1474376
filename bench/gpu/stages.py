"""What `bench.gpu` measures, a function each; every one runs on a CPU as well, so that it can be rehearsed there."""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime

from bench.load.run import run_load
from bench.load.settings import LoadSettings
from bench.peers.contender import Sentences
from bench.roofline.peaks import idle_graph
from bench.server_process import NOTHING_FREE, serving
from dragoman.bundle import COPY, DECODER, ENCODER, PLACE, Bundle, Manifest
from dragoman.tokenizer import Tokenizer
from service.engine import Engine
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.request import Segment
from service.sessions import PROVIDERS, open_graph

MEMCPY: Final = {"MemcpyToHost", "MemcpyFromHost"}
# Of a copy, in floats: large beside every cache, and on a GPU beside the time to launch it.
COPY_FLOATS: Final = {"cuda": 2**29, "cpu": 2**24}
COPY_REPEATS: Final = 10
SENTENCES_PER_SLOT, FEWEST_SENTENCES, ROUNDS = 8, 200, 2
VERIFIED_TEXTS: Final = 200

Translate = Callable[[Sentences], int]


def missing_device(device: str) -> str | None:
    """Why nothing can run on a device, in one line; None where it can."""
    provider = PROVIDERS[device][0]
    if provider not in onnxruntime.get_available_providers():
        return f"this onnxruntime has no {provider}: install the extra gpu in place of cpu"
    if _open(idle_graph(1, 1).SerializeToString(), device).get_providers()[0] != provider:
        return f"{provider} does not start: there is no NVIDIA GPU, or its driver or CUDA libraries do not fit"
    return None


def _open(graph: bytes, device: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # whether a provider started is asked, not read in the log
    return onnxruntime.InferenceSession(graph, options, providers=PROVIDERS[device])


def placement(bundle: Bundle, device: str) -> dict[str, Any]:
    """Whether all graphs run on the device throughout: their first provider, and copies between devices in them.

    Returns:
        For each graph `first_provider`, `memcpy_nodes` (0 is what is wanted) and the number of all nodes.
    """
    return {Path(name).stem: _placement(bundle, name, device) for name in (ENCODER, DECODER, PLACE, COPY)}


def _placement(bundle: Bundle, name: str, device: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        placed = Path(folder) / name
        session = open_graph(bundle, name, device, placed=placed)
        operators = Counter(node.op_type for node in onnx.load(placed).graph.node)
    return {
        "first_provider": session.get_providers()[0],
        "memcpy_nodes": sum(operators[name] for name in MEMCPY),
        "nodes": operators.total(),
    }


class Decoder:
    """An engine of one thread that decodes offline."""

    def __init__(self, bundle: Bundle, device: str, slots: int, *, resident: bool = True) -> None:
        """Load a bundle on a device, and keep the buffers there, which a CPU would not do by itself."""
        self._metrics = Metrics()
        mailbox = Mailbox(sys.maxsize)
        self._engine = Engine(bundle, mailbox, self._metrics, device=device, threads=1, slots=slots, resident=resident)

    def decode(self, sentences: Sentences) -> list[list[int]]:
        """Target ids of each sentence."""
        segments = [Segment(ids, limit) for ids, limit in zip(sentences.sources, sentences.limits, strict=True)]
        self._engine.decode(segments)
        return [segment.target_ids for segment in segments]

    @property
    def step_ms(self) -> float:
        """Milliseconds of a decode step, the mean so far."""
        total, count = (self._metrics.total(f"decode_step_duration_seconds_{part}") for part in ("sum", "count"))
        return total / max(count, 1.0) * 1e3


def parity(
    expected: Bundle, bundle: Bundle, device: str, slots: int, sentences: Sentences, references: Sequence[str] | None
) -> dict[str, Any]:
    """The tokens of a bundle on a device beside those of another on the CPU.

    Args:
        expected: the one on the CPU.
        bundle: the one on the device.
        device: cpu or cuda.
        slots: of both.
        sentences: what is translated.
        references: a translation of each, or None.

    Returns:
        The share of sentences with the very same tokens, and the BLEU of both where it can be computed.
    """
    decoders = Decoder(expected, "cpu", slots, resident=False), Decoder(bundle, device, slots)
    ours = [decoder.decode(sentences) for decoder in decoders]
    tokenizer = Tokenizer.open(bundle.path)
    bleus = [bleu([tokenizer.decode(ids) for ids in each], references) for each in ours]
    return {
        "sentences": len(sentences),
        "equal_share": equal_share(*ours),
        f"bleu_{expected.manifest.precision}_cpu": bleus[0],
        f"bleu_{bundle.manifest.precision}_{device}": bleus[1],
    }


def equal_share(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> float:
    """The share of sentences whose tokens are all equal."""
    return sum(list(a) == list(b) for a, b in zip(one, other, strict=True)) / len(one)


def bleu(translations: Sequence[str], references: Sequence[str] | None) -> float | None:
    """BLEU; None where there are no references, or sacrebleu is not installed."""
    try:
        import sacrebleu
    except ModuleNotFoundError:
        return None
    return None if references is None else float(sacrebleu.corpus_bleu(translations, [references]).score)


def slot_counts(most: int) -> list[int]:
    """1, 2, 4, ... up to `most`."""
    return [2**power for power in range(most.bit_length())]


def cycled(sentences: Sentences, slots: int) -> Sentences:
    """As many sentences as keep so many slots busy for a while, from the beginning again where they run out."""
    count = max(FEWEST_SENTENCES, SENTENCES_PER_SLOT * slots)
    return sentences.take([index % len(sentences) for index in range(count)])


def speed(bundle: Bundle, device: str, slots: int, sentences: Sentences, peer: Translate | None) -> dict[str, Any]:
    """Tokens a second at a number of slots, and those of a peer that decodes batches of as many; in turn, twice.

    Args:
        bundle: what is run.
        device: cpu or cuda.
        slots: of one engine thread.
        sentences: from which as many are taken as are needed.
        peer: translates all and returns the number of target tokens; None: there is none.

    Returns:
        Of each side the faster of two rounds, and the mean time of a decode step of ours.
    """
    portion, decoder = cycled(sentences, slots), Decoder(bundle, device, slots)
    sides: dict[str, Translate] = {"tokens_per_s": lambda each: sum(len(ids) + 1 for ids in decoder.decode(each))}
    if peer is not None:
        sides["peer_tokens_per_s"] = peer
    rounds = [{name: _rate(side, portion) for name, side in sides.items()} for _ in range(1 + ROUNDS)]
    fastest = {name: max(rates[name] for rates in rounds[1:]) for name in sides}  # the first warms up
    return {"slots": slots, "sentences": len(portion), **fastest, "step_ms": decoder.step_ms}


def _rate(translate: Translate, sentences: Sentences) -> float:
    start = time.perf_counter()
    tokens = translate(sentences)
    return tokens / (time.perf_counter() - start)


def copy_bytes_per_s(device: str) -> float:
    """Bytes a second, read and written, of one large operator that does next to nothing, on the device."""
    session = _open(idle_graph(1, 1).SerializeToString(), device)
    shape = [COPY_FLOATS[device], 1, 1]
    source, target = (onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, device, 0) for _ in range(2))
    binding = session.io_binding()
    binding.bind_ortvalue_input(session.get_inputs()[0].name, source)
    binding.bind_ortvalue_output(session.get_outputs()[0].name, target)
    times_s = []
    for _ in range(COPY_REPEATS):
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        times_s.append(time.perf_counter() - start)
    return 2 * 4 * COPY_FLOATS[device] / min(times_s)


@dataclass(frozen=True)
class StepBytes:
    """What a decode step must read.

    Attributes:
        weights: bytes of the decoder's weights.
        row: bytes of the valid keys and values of a row, its own ones and the source's, on average over steps.
    """

    weights: int
    row: float

    def least_ms(self, slots: int, bytes_per_s: float) -> float:
        """Milliseconds of a step at a bandwidth: no step of so many slots can be faster."""
        return (self.weights + slots * self.row) / bytes_per_s * 1e3


def step_bytes(bundle: Bundle, source_tokens: Sequence[int], target_tokens: Sequence[int]) -> StepBytes:
    """What the steps of these sentences read.

    Args:
        bundle: what is run.
        source_tokens: of each sentence, its end counted.
        target_tokens: of each, its end counted: it has as many steps.
    """
    steps = sum(target_tokens)
    positions = sum(
        target * (target + 1) / 2 + target * source for source, target in zip(source_tokens, target_tokens, strict=True)
    )
    return StepBytes(bundle.decoder.stat().st_size, positions / steps * position_bytes(bundle.manifest))


def position_bytes(manifest: Manifest) -> int:
    """Bytes of the keys and values of one position in all layers."""
    return manifest.decoder_layers * 2 * manifest.d_model * (2 if manifest.precision == "fp16" else 4)


def served(bundle: Bundle, device: str, slots: int, texts: list[str], seconds: float) -> dict[str, Any]:
    """`dragoman serve` on the device under a closed loop of twice its slots, every answer compared with that alone."""
    command = [sys.executable, "-m", "dragoman.cli", "serve", "--models", str(bundle.path), "--device", device]
    with serving([*command, "--threads", "1", "--slots", str(slots), *NOTHING_FREE]) as address:
        settings = LoadSettings(
            address,
            concurrency=2 * slots,
            duration_s=seconds,
            warmup_s=seconds / 5,
            verify_texts=VERIFIED_TEXTS,
        )
        return asyncio.run(run_load(settings, texts))
