"""A tokenizer of bytes and a few words, the manifest of a model that has it, and a server of it without an engine."""

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest
from sentencepiece import SentencePieceTrainer

from dragoman import AsyncClient
from dragoman.bundle import AlignmentHeads, Manifest, Provenance
from dragoman.language_marks import Languages
from dragoman.tokenizer import JOINT, Tokenizer
from dragoman.v1.translation_pb2_grpc import TranslationStub
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.queue.mailbox import Mailbox
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.rpc.translation import Translation
from service.settings import Settings
from service.telemetry.access_log import AccessLog
from service.telemetry.metrics import Metrics
from service.text.translator import Translator
from tests.grpc_server import grpc_server
from tests.unit.service.played import intake_of
from tests.unit.service.played_engine import PATIENCE_S, PlayedEngine, Records, ServedEngine

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
        languages=Languages.pair("en", "de"),
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
        alignment=AlignmentHeads(layer=0, heads=(0,)),
        parameters=1,
        provenance=Provenance(checkpoint_sha256="0" * 64),
        files={},
    )


@pytest.fixture
def server_settings(request: pytest.FixtureRequest) -> Settings:
    """Of `served`; others than the default by indirect parameters."""
    return Settings(**getattr(request, "param", {}))


@pytest.fixture
async def closed_played(server_settings: Settings) -> PlayedEngine:
    """Handlers that have no models."""
    metrics, mailbox, gate = Metrics(), Mailbox(server_settings.queue_source_tokens), Gate()
    mailbox.register_worker()
    mailbox.bind(asyncio.get_running_loop())
    records = Records()
    access_log = AccessLog(metrics, tracer=records)
    handlers = TranslationHandlers(gate, server_settings, metrics, access_log=access_log)
    return PlayedEngine(handlers, gate, mailbox, metrics, records)


@pytest.fixture
def played(closed_played: PlayedEngine, manifest: Manifest, tokenizer: Tokenizer) -> PlayedEngine:
    """Handlers that take calls."""
    model = ServedModel(
        manifest, 32, Pipeline(Translator(manifest, tokenizer), closed_played.mailbox, intake_of(closed_played.mailbox))
    )
    closed_played.gate.open(Catalog([model]))
    return closed_played


@pytest.fixture
async def closed_served(closed_played: PlayedEngine, server_settings: Settings) -> AsyncIterator[ServedEngine]:
    """A server that has not loaded its models."""
    service = Translation(closed_played.handlers, server_settings.max_request_bytes)
    async with (
        grpc_server(service.add_to) as address,
        AsyncClient(address, timeout_s=PATIENCE_S, retries=0) as client,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield ServedEngine(**vars(closed_played), client=client, stub=TranslationStub(channel))


@pytest.fixture
def served(played: PlayedEngine, closed_served: ServedEngine) -> ServedEngine:
    """A server that takes calls."""
    return closed_served
