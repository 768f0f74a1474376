"""A tokenizer of bytes and a few words, and the manifest of a model that has it."""

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sentencepiece import SentencePieceTrainer

from dragoman.bundle import Manifest, Provenance
from dragoman.tokenizer import JOINT, Tokenizer

# A busy machine is no failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

WORDS = ["good morning tom", "where is the station", "guten morgen tom", "wo ist der bahnhof", "schön 你好"]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Joint, and without normalisation: the decoded ids of a text are that text."""
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS * 10),
        model_writer=model,
        vocab_size=330,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / JOINT).write_bytes(model.getvalue())
    return Tokenizer.open(folder)


@pytest.fixture(scope="session")
def manifest(tokenizer: Tokenizer) -> Manifest:
    return Manifest(
        name="en-de",
        source_language="en",
        target_language="de",
        precision="fp32",
        pad_id=0,
        start_id=1,
        eos_id=2,
        unknown_id=3,
        vocabulary_size=tokenizer.vocabulary_sizes[0],
        d_model=64,
        heads=4,
        head_dim=16,
        encoder_layers=1,
        decoder_layers=1,
        max_source_tokens=24,
        max_target_tokens=32,
        parameters=1,
        provenance=Provenance(checkpoint_sha256="0" * 64),
        files={},
    )
