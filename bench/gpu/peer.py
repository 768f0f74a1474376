"""CTranslate2 on a GPU, in fp16: what `bench.gpu` measures beside the engine."""

from pathlib import Path

import ctranslate2

from bench.peers.checkpoint import Checkpoint
from bench.peers.contender import Sentences
from bench.peers.convert import convert, vocabulary

# A CPU has no arithmetic in fp16 there.
_COMPUTE_TYPES = {"cuda": "float16", "cpu": "float32"}


class Peer:
    """A loaded model that decodes closed batches greedily."""

    def __init__(self, model: Path, checkpoint: Checkpoint, device: str) -> None:
        """Load a converted model.

        Args:
            model: folder that `convert` wrote.
            checkpoint: from which it was made.
            device: cpu or cuda.
        """
        source, _ = checkpoint.tokenizer_files()
        self._pieces = vocabulary(source)
        self._translator = ctranslate2.Translator(str(model), device=device, compute_type=_COMPUTE_TYPES[device])

    def translate(self, sentences: Sentences, batch: int) -> int:
        """Translates all sentences in batches; returns the number of target tokens, the ends counted."""
        results = self._translator.translate_batch(
            [[self._pieces[index] for index in ids] for ids in sentences.sources],
            beam_size=1,
            max_batch_size=batch,
            max_decoding_length=max(sentences.limits),
        )
        return sum(len(result.hypotheses[0]) + 1 for result in results)


def open_peer(folder: Path, model: Path, device: str) -> Peer | None:
    """The peer on a device; None where it sees none of that kind.

    Args:
        folder: of the checkpoint.
        model: folder of the converted model, made if it is not there.
        device: cpu or cuda.
    """
    if device == "cuda" and not ctranslate2.get_cuda_device_count():
        return None
    checkpoint = Checkpoint.open(folder)
    return Peer(model if model.exists() else convert(checkpoint, model), checkpoint, device)
