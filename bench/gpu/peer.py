"""CTranslate2 on a GPU, in fp16, in a process of its own: where its libraries do not fit, only its figures are lost."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from bench.sentences import Sentences
from dragoman.tokenizer import JOINT, SOURCE

# A CPU has no arithmetic in fp16 there.
_COMPUTE_TYPES: Final = {"cuda": "float16", "cpu": "float32"}


class Peer:
    """A loaded model that decodes closed batches greedily."""

    def __init__(self, model: Path, tokenizer: Path, device: str) -> None:
        """Start the process; the model is loaded as it is first used."""
        # Not forked: this process has a GPU's context, which a child cannot use.
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._model = model, tokenizer, device

    def tokens_per_s(self, sentences: Sentences, batch: int, timeout_s: float) -> float:
        """Translate all sentences, in batches; gives the target tokens a second, the ends counted.

        Raises:
            Exception: whatever CTranslate2 raises; BrokenProcessPool if it crashed, TimeoutError if it took too long.
        """
        found = self._pool.submit(_tokens_per_s, self._model, sentences, batch)
        return found.result(timeout_s)

    def close(self) -> None:
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown()


_loaded: dict[tuple[Path, Path, str], tuple[Any, list[str]]] = {}  # of the peer's process


def _tokens_per_s(model: tuple[Path, Path, str], sentences: Sentences, batch: int) -> float:
    translator, pieces = _loaded.get(model) or _loaded.setdefault(model, _load(*model))
    sources = [[pieces[index] for index in ids] for ids in sentences.sources]
    limit = max(sentences.limits)
    start = time.perf_counter()
    results = translator.translate_batch(sources, beam_size=1, max_batch_size=batch, max_decoding_length=limit)
    seconds = time.perf_counter() - start
    lengths = [len(result.hypotheses[0]) for result in results]
    return sum(length + (length < limit) for length in lengths) / seconds


def _load(model: Path, tokenizer: Path, device: str) -> tuple[Any, list[str]]:
    import ctranslate2

    from bench.peers.convert import vocabulary

    source = tokenizer / JOINT
    pieces = vocabulary(source if source.exists() else tokenizer / SOURCE)
    return ctranslate2.Translator(str(model), device=device, compute_type=_COMPUTE_TYPES[device]), pieces
