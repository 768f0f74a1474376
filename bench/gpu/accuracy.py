"""Whether the graphs run on the device throughout, and what the device makes of sentences beside fp32 on the CPU."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnx

from bench.bleu import bleu
from bench.decoding import Batch, Graphs
from bench.frame import Figures
from bench.gpu.models import open_bundle
from bench.gpu.task import Task
from bench.sentences import Sentences, encoded, equal_sentences
from dragoman.bundle import COPY, DECODER, ENCODER, PLACE, SEARCH, Bundle, target_limit
from dragoman.tokenizer import Tokenizer
from model.corpus import read_corpus
from plugins.gpu import cuda
from plugins.gpu.sessions import open_graph

MEMCPY: Final = {"MemcpyToHost", "MemcpyFromHost"}
_SLOTS: Final = 32
_LEAST_EQUAL: Final = 0.95  # of sentences: half precision turns a near tie now and then


def placement(task: Task) -> Figures:
    """Return for each served graph its first provider, and the copies between devices in it, which should be 0."""
    bundle, device = open_bundle(task), task.setup.device
    provider = cuda.PROVIDER if device == "cuda" else "CPUExecutionProvider"
    rows = [_placement(bundle, name, device) for name in (ENCODER, DECODER, PLACE, COPY, SEARCH)]
    return {
        "rows": rows,
        "checks": {
            "the device's provider is first": all(row["first_provider"] == provider for row in rows),
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
    """Compare the tokens of the fp16 bundle on the device with those of the fp32 bundle on the CPU."""
    fp32, fp16 = (open_bundle(task, precision) for precision in ("fp32", "fp16"))
    corpus, most = read_corpus(task.setup.data), task.setup.sentences
    sentences = real_sentences(fp16, corpus.sources[:most])
    expected = Batch(Graphs.on_host(fp32), _SLOTS).decode(sentences)
    actual = Batch(Graphs.resident(fp16, task.setup.device), _SLOTS).decode(sentences)
    share, tokenizer = equal_sentences(expected, actual) / len(sentences), Tokenizer.open(fp16.path)
    return {
        "sentences": len(sentences),
        "equal_share": share,
        "bleu_fp32_cpu": bleu([tokenizer.decode(ids) for ids in expected], corpus.targets[:most]),
        f"bleu_fp16_{task.setup.device}": bleu([tokenizer.decode(ids) for ids in actual], corpus.targets[:most]),
        "checks": {f"at least {_LEAST_EQUAL:.0%} of the sentences are equal": share >= _LEAST_EQUAL},
    }


def real_sentences(bundle: Bundle, texts: Sequence[str]) -> Sentences:
    """Encode texts; one that is too long loses its beginning."""
    manifest, sources = bundle.manifest, encoded(bundle.path, texts)
    return Sentences(
        [ids[-manifest.max_source_tokens :] for ids in sources],
        [target_limit(len(ids), manifest.max_target_tokens) for ids in sources],
    )
