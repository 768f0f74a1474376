"""CTranslate2 behind Dragoman's own gRPC server: everything but the engine is the same.

    python -m bench.peers.serve --bundle DIR --checkpoint DIR --ctranslate2 DIR --size 32 --wait-ms 2

The bundle gives the limits, languages and tokenizer that the servicer needs; its graphs are not loaded.
"""

import argparse
import asyncio
import sys
from functools import partial
from pathlib import Path

from bench.arguments import count, make_parser, not_negative
from bench.peers import ct2
from bench.peers.checkpoint import Checkpoint
from bench.peers.static_batcher import StaticBatcher
from bench.sentences import Sentences
from dragoman.bundle import Bundle
from dragoman.tokenizer import Tokenizer
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.registry.catalog import Pipeline, ServedModel
from service.server import serve
from service.settings import Settings, load
from service.telemetry.metrics import Metrics
from service.text.translator import Limits, Translator


def main(argv: list[str]) -> int:
    """Serve until SIGTERM; returns the exit code."""
    parser = make_parser("python -m bench.peers.serve", __doc__)
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle made from the same weights")
    add("--checkpoint", type=Path, required=True, help="folder of the checkpoint")
    add("--ctranslate2", type=Path, required=True, help="folder of the converted model")
    add("--precision", default="int8", choices=("int8", "fp32"), help="(%(default)s)")
    add("--size", type=count, required=True, help="segments of a batch at most")
    add("--wait-ms", type=not_negative, required=True, help="how long the first one waits for others")
    add("--inter-threads", type=count, default=1, help="batches that run at a time (%(default)s)")
    add("--intra-threads", type=count, default=1, help="threads of each (%(default)s)")
    add("--address", default="127.0.0.1:50051", help="(%(default)s)")
    add("--metrics-address", default="127.0.0.1:9464", help="(%(default)s)")
    arguments = parser.parse_args(argv)
    addresses = {"address": arguments.address, "metrics_address": arguments.metrics_address, "http_address": "none"}
    return serve(load({"models": arguments.bundle, **addresses}), partial(_load, arguments))


def _load(
    arguments: argparse.Namespace, bundle: Bundle, settings: Settings, metrics: Metrics, loop: asyncio.AbstractEventLoop
) -> ServedModel:
    """Load a model that CTranslate2 decodes, in the batches of a static batcher."""
    mailbox = Mailbox(settings.queue_source_tokens, metrics.of(bundle.manifest.name))
    mailbox.bind(loop)
    program = ct2.program(arguments.ctranslate2, Checkpoint.open(arguments.checkpoint), arguments.precision)
    threads = arguments.inter_threads
    contender = program.open({"inter_threads": threads, "intra_threads": arguments.intra_threads})
    # As the engine does, so that the first caller does not pay for first times.
    contender.translate(Sentences([[bundle.manifest.eos_id] * length for length in (3, 10, 30)], [4] * 3))
    batcher = StaticBatcher(
        mailbox, contender.translate, size=arguments.size, wait_s=arguments.wait_ms / 1e3, workers=threads
    )
    batcher.start()
    translator = Translator(bundle.manifest, Tokenizer.open(bundle.path), Limits.of(settings))
    intake = Intake(mailbox, metrics.of(bundle.manifest.name), limit_bytes=0, coalesce=False)
    return ServedModel(bundle.manifest, settings.slots, Pipeline(translator, mailbox, intake), batcher)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
