"""Which kernels onnxruntime runs, as it tells itself: of attention, node by node, and the device of every operator."""

import ctypes
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import onnxruntime

from bench.decoding import Batch, Graphs
from bench.gpu.models import open_bundle
from bench.gpu.setup import Figures, Task
from bench.sentences import random_sentences
from dragoman.bundle import DECODER, ENCODER, MEMORY
from service.runtime.binding import encoder_feeds
from service.runtime.sessions import PROVIDERS, open_graph

ROWS, TOKENS, TARGET_TOKENS = 4, 12, 5
_MOST_LINES: Final = 60


def kernels(task: Task) -> Figures:
    """Run the encoder once and the decoder a few steps, without CUDA graphs.

    Returns:
        `attention`: the lines that onnxruntime prints of each attention node; `rows`: the operators of both graphs.
    """
    os.environ["ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO"] = "1"  # read as sessions open
    bundle, device = open_bundle(task), task.setup.device
    sentences = random_sentences(bundle.manifest, [TOKENS] * ROWS, [TARGET_TOKENS] * ROWS)
    with tempfile.TemporaryDirectory() as name, printed() as lines:
        folder = Path(name)
        encoder = open_graph(bundle, ENCODER, device, profile=folder / "encoder")
        encoder.run([MEMORY], encoder_feeds(sentences.sources, bundle.manifest.pad_id))
        decoder = open_graph(bundle, DECODER, device, profile=folder / "decoder")
        graphs = Graphs.resident(bundle, device, capture=False, session=decoder)
        Batch(graphs.endless(), ROWS).decode(sentences)
        profiles = {"encoder": _events(encoder), "decoder": _events(decoder)}
    rows = [row for graph, events in profiles.items() for row in operators(graph, events)]
    elsewhere = [row for row in rows if row["device"] != PROVIDERS[device][0] and row["graph"] == "decoder"]
    return {
        "attention": list(dict.fromkeys(line for line in lines if "Operator=" in line))[:_MOST_LINES],
        "rows": rows,
        "checks": {"every operator of the decoder runs on the device": not elsewhere},
    }


def _events(session: onnxruntime.InferenceSession) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text())
    return events


def operators(graph: str, events: Iterable[dict[str, Any]]) -> list[Figures]:
    """List the operators of a graph by type and device, with nodes, runs and microseconds of each; the longest first.

    Args:
        events: of onnxruntime's profiler. Where it was built to follow the GPU, a row has the `kernels` too.
    """
    nodes: dict[tuple[str, str], set[str]] = defaultdict(set)
    us: dict[tuple[str, str], int] = defaultdict(int)
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    last = "", ""
    for event in events:
        arguments = event.get("args", {})
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            last = arguments["op_name"], arguments["provider"]
            nodes[last].add(event["name"])
            us[last] += event["dur"]
        elif event["cat"] == "Kernel":
            seen[last].add(event["name"])
    return [
        {
            "graph": graph,
            "operator": key[0],
            "device": key[1],
            "nodes": len(nodes[key]),
            "us": us[key],
            **({"kernels": ", ".join(sorted(seen[key]))} if seen[key] else {}),
        }
        for key in sorted(us, key=lambda key: -us[key])
    ]


@contextmanager
def printed() -> Iterator[list[str]]:
    """Collect the lines that this process prints in the block, libraries in C++ too; they are there after the block."""
    c_library, lines = ctypes.CDLL(None), list[str]()
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            c_library.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()
