"""Small random models, and a tokenizer of this project's own sentence pairs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.tokenizer import Tokenizer
from model.config import TransformerConfig
from model.corpus import Corpus, read_corpus
from model.subwords import train_tokenizer
from model.transformer import Transformer

PAIRS = Path(__file__).parents[2] / "data" / "en-de.tsv"
SMALL = {
    "source_vocabulary_size": 17,
    "target_vocabulary_size": 17,
    "d_model": 16,
    "heads": 4,
    "d_ff": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "max_positions": 24,
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def build() -> Callable[..., Transformer]:
    """Makes a small model in which every weight matters: none is zero or one, as a new model's are."""

    def build(seed: int = 0, **fields: Any) -> Transformer:
        torch.manual_seed(seed)
        model = Transformer(TransformerConfig.model_validate(SMALL | fields)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        return model

    return build


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return read_corpus(PAIRS)


@pytest.fixture(scope="session")
def tokenizer_folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(corpus, folder, vocabulary_size=400, joint=True)
    return folder


@pytest.fixture(scope="session")
def tokenizer(tokenizer_folder: Path) -> Tokenizer:
    return Tokenizer.open(tokenizer_folder)
