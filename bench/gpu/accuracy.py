"""Whether the graphs run on the device throughout, and what the device makes of sentences beside fp32 on the CPU."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx

from bench.bleu import bleu
from bench.decoding import Batch, Graphs
from bench.gpu.encoder import difference
from bench.gpu.models import open_bundle
from bench.gpu.setup import Figures, Task
from bench.load.texts import read_pairs
from bench.sentences import Sentences, equal_sentences
from dragoman.bundle import COPY, DECODER, ENCODER, MEMORY, PLACE, SEARCH, Bundle, target_limit
from dragoman.tokenizer import Tokenizer
from service.runtime.binding import encoder_feeds
from service.runtime.sessions import PROVIDERS, open_graph

MEMCPY: Final = {"MemcpyToHost", "MemcpyFromHost"}
_SLOTS: Final = 32
_LEAST_EQUAL: Final = 0.95  # of sentences: half precision turns a near tie now and then
_ENCODED: Final = 64


def placement(task: Task) -> Figures:
    """Return for each served graph its first provider, and the copies between devices in it, which should be 0."""
    bundle, device = open_bundle(task), task.setup.device
    rows = [_placement(bundle, name, device) for name in (ENCODER, DECODER, PLACE, COPY, SEARCH)]
    return {
        "rows": rows,
        "checks": {
            "the device's provider is first": all(row["first_provider"] == PROVIDERS[device][0] for row in rows),
            "no copies between devices": not any(row["copies"] for row in rows),
        },
    }


def _placement(bundle: Bundle, name: str, device: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        placed = Path(folder) / name
        session = open_graph(bundle, name, device, placed=placed)
        operators = Counter(node.op_type for node in onnx.load(placed, load_external_data=False).graph.node)
    return {
        "graph": Path(name).stem,
        "first_provider": session.get_providers()[0],
        "copies": sum(operators[name] for name in MEMCPY),
        "nodes": operators.total(),
    }


def parity(task: Task) -> Figures:
    """Compare the tokens and memories of the fp16 bundle on the device with those of the fp32 bundle on the CPU."""
    fp32, fp16 = (open_bundle(task, precision) for precision in ("fp32", "fp16"))
    texts, references = read_pairs(task.setup.data, task.setup.sentences)
    sentences = real_sentences(fp16, texts)
    expected = Batch(Graphs.on_host(fp32), _SLOTS).decode(sentences)
    actual = Batch(Graphs.resident(fp16, task.setup.device), _SLOTS).decode(sentences)
    share, tokenizer = equal_sentences(expected, actual) / len(sentences), Tokenizer.open(fp16.path)
    return {
        "sentences": len(sentences),
        "equal_share": share,
        "bleu_fp32_cpu": bleu([tokenizer.decode(ids) for ids in expected], references),
        f"bleu_fp16_{task.setup.device}": bleu([tokenizer.decode(ids) for ids in actual], references),
        **_encoders(fp32, fp16, task.setup.device, sentences.pick(_ENCODED)),
        "checks": {f"at least {_LEAST_EQUAL:.0%} of the sentences are equal": share >= _LEAST_EQUAL},
    }


def _encoders(fp32: Bundle, fp16: Bundle, device: str, sentences: Sentences) -> Figures:
    """Return how much the memories differ, see `encoder.difference`: in the mean, and at most."""
    feeds = encoder_feeds(sentences.sources, fp32.manifest.pad_id)
    sessions = open_graph(fp32, ENCODER, "cpu"), open_graph(fp16, ENCODER, device)
    [expected], [actual] = (session.run([MEMORY], feeds) for session in sessions)
    found = [
        difference(expected[row, : len(ids)], actual[row, : len(ids)]) for row, ids in enumerate(sentences.sources)
    ]
    return {"encoder_difference_mean": float(np.mean(found)), "encoder_difference_most": max(found)}


def real_sentences(bundle: Bundle, texts: Sequence[str]) -> Sentences:
    """Encode texts; one that is too long loses its beginning."""
    manifest, tokenizer = bundle.manifest, Tokenizer.open(bundle.path)
    sources = [[*tokenizer.encode(text), manifest.eos_id] for text in texts]
    return Sentences(
        [ids[-manifest.max_source_tokens :] for ids in sources],
        [target_limit(len(ids), manifest.max_target_tokens) for ids in sources],
    )
