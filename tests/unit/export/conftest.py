"""A model of random weights, exported once in every precision, with the parity check over some sentences."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from dragoman.bundle import Bundle, Precision
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer
from export.parity import Parity
from export.samples import Sample
from export.write import Target, export_bundle
from model.checkpoint import load_checkpoint, save_checkpoint
from model.config import TransformerConfig
from model.corpus import Corpus, read_corpus
from model.subwords import train_tokenizer
from model.transformer import Transformer
from tests.made_once import made_once

PAIRS = Path(__file__).parents[2] / "data" / "en-de.tsv"
VOCABULARY = 400
SENTENCES = 120
PARITY = "parity.json"
# By trial: translations differ, some end by themselves, and the best two logits are never closer than 7e-5.
SEED = 5
CROSS_ATTENTION_GAIN = 3.0


class Exported(NamedTuple):
    """A bundle and what its parity check said."""

    bundle: Bundle
    parity: Parity


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    corpus = read_corpus(PAIRS)
    return Corpus(corpus.sources[:SENTENCES], corpus.targets[:SENTENCES], [])


@pytest.fixture(scope="session")
def random_model() -> Callable[..., Transformer]:
    def random_model(encoder_layers: int, decoder_layers: int, **fields: Any) -> Transformer:
        torch.manual_seed(SEED)
        sizes: dict[str, Any] = {
            "source_vocabulary_size": VOCABULARY,
            "target_vocabulary_size": VOCABULARY,
            "d_model": 32,
            "heads": 2,
            "d_ff": 64,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
            "max_positions": 160,
            "tie_output": False,  # else a random model repeats its last token for ever
        }
        model = Transformer(TransformerConfig(**sizes | fields)).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter += 0.05 * torch.randn_like(parameter)
                if "cross_attention" in name and parameter.dim() == 2:
                    parameter *= CROSS_ATTENTION_GAIN
        return model

    return random_model


@pytest.fixture(scope="session")
def checkpoint(random_model: Callable[..., Transformer], corpus: Corpus) -> Path:
    def make(folder: Path) -> None:
        train_tokenizer(corpus, folder / "tokenizer", vocabulary_size=VOCABULARY, joint=True)
        save_checkpoint(folder / "checkpoint", random_model(1, 2), folder / "tokenizer", {}, corpus)

    return made_once("checkpoint of the tests of export", make) / "checkpoint"


@pytest.fixture(scope="session")
def loaded(checkpoint: Path) -> tuple[Transformer, Tokenizer]:
    return load_checkpoint(checkpoint)


@pytest.fixture(scope="session")
def samples(loaded: tuple[Transformer, Tokenizer], corpus: Corpus) -> list[Sample]:
    """The sentences of the corpus with their references."""
    tokenizer = loaded[1]
    return [
        Sample([*tokenizer.encode(source), 2], (1,), reference)
        for source, reference in zip(corpus.sources, corpus.targets, strict=True)
    ]


@pytest.fixture(scope="session")
def target() -> Callable[..., Target]:
    def target(precision: Precision, *, source: int = 128, target: int = 40) -> Target:
        return Target("random", Languages.pair("en", "de"), precision, source, target)

    return target


@pytest.fixture(scope="session")
def exported(checkpoint: Path, target: Callable[..., Target], corpus: Corpus) -> Callable[[Precision], Exported]:
    """Exports in a precision, once."""

    @cache
    def exported(precision: Precision) -> Exported:
        def make(folder: Path) -> None:
            parity = export_bundle(checkpoint, folder / "bundle", target(precision), corpus)
            (folder / PARITY).write_text(json.dumps(asdict(parity)))

        folder = made_once(f"bundle of the tests of export, {precision}", make)
        return Exported(Bundle.open(folder / "bundle"), Parity(**json.loads((folder / PARITY).read_text())))

    return exported
