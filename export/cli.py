"""The commands `dragoman export` and `dragoman evaluate`."""

import argparse
import json
import logging
import time
import warnings
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from dragoman.bundle import MANIFEST, Bundle, Precision
from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer
from export.parity import SLOTS
from export.write import Target, export_bundle
from model.checkpoint import PARITY, PARITY_PAIRS, load_checkpoint
from model.data import Corpus, read_corpus
from model.evaluate import score, translate
from service.engine import Engine
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.translator import Translator


def export(argv: list[str]) -> int:
    """Turn a checkpoint into a bundle; returns the exit code.

    Raises:
        DragomanError: an argument or file cannot be used, or the bundle fails the parity check.
    """
    parser = argparse.ArgumentParser(prog="dragoman export", description="Turn a checkpoint into a bundle.")
    parser.add_argument("checkpoint", type=Path, help="folder of the checkpoint")
    parser.add_argument("--out", type=Path, required=True, metavar="BUNDLE", help="folder of the bundle")
    parser.add_argument("--precision", choices=get_args(Precision), default="int8", help="default: int8")
    parser.add_argument("--source-language", default="en", help="BCP-47 code (default: en)")
    parser.add_argument("--target-language", default="de", help="BCP-47 code (default: de)")
    parser.add_argument("--name", help="of the model (default: SOURCE-TARGET, such as en-de)")
    parser.add_argument("--max-source-tokens", type=int, default=128, help="limit of a segment (default: 128)")
    parser.add_argument("--max-target-tokens", type=int, default=256, help="limit of its translation (default: 256)")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help=f"source<TAB>target lines, of which {PARITY_PAIRS} are compared (default: CKPT/{PARITY})",
    )
    arguments = parser.parse_args(argv)
    pairs = read_corpus(arguments.data or arguments.checkpoint / PARITY)
    start_s = time.monotonic()
    _quiet_exporter()
    try:
        parity = export_bundle(
            arguments.checkpoint,
            arguments.out,
            Target(
                arguments.name or f"{arguments.source_language}-{arguments.target_language}",
                arguments.source_language,
                arguments.target_language,
                arguments.precision,
                arguments.max_source_tokens,
                arguments.max_target_tokens,
            ),
            Corpus(pairs.sources[:PARITY_PAIRS], pairs.targets[:PARITY_PAIRS], []),
        )
    except ValidationError as error:
        fault = error.errors()[0]
        raise DataError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}, not {fault['input']!r}") from error
    print(f"parity {parity}")
    print(f"wrote {arguments.out} in {time.monotonic() - start_s:.1f} s")
    return 0


def evaluate(argv: list[str]) -> int:
    """Score a checkpoint or a bundle on a corpus; returns the exit code.

    Raises:
        DragomanError: a file cannot be used.
    """
    parser = argparse.ArgumentParser(prog="dragoman evaluate", description="Greedy BLEU and chrF of a model.")
    parser.add_argument("model", type=Path, help="folder of a checkpoint (plain PyTorch) or bundle (the engine)")
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="source<TAB>target lines")
    parser.add_argument("--translations", type=Path, metavar="FILE", help="write the translations here, a line each")
    arguments = parser.parse_args(argv)
    corpus = read_corpus(arguments.data)
    start_s = time.monotonic()
    is_bundle = (arguments.model / MANIFEST).exists()
    translations = (_with_bundle if is_bundle else _with_checkpoint)(arguments.model, corpus.sources)
    seconds = time.monotonic() - start_s
    if arguments.translations:
        arguments.translations.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    result = score(translations, corpus.targets).as_dict()
    print(json.dumps({"model": str(arguments.model), **result, "seconds": round(seconds, 2)}, indent=2))
    return 0


def _with_checkpoint(folder: Path, texts: list[str]) -> list[str]:
    model, tokenizer = load_checkpoint(folder)
    return translate(model, tokenizer, texts)


def _with_bundle(folder: Path, texts: list[str]) -> list[str]:
    bundle = Bundle.open(folder)
    translator = Translator(bundle.manifest, Tokenizer.open(folder))
    mailbox = Mailbox(sum(map(len, texts)))  # a text has no more tokens than characters, or hardly
    engine = Engine(bundle, mailbox, Metrics(), device="cpu", threads=0, slots=SLOTS)
    return [result.text for result in translator.translate_offline(engine, texts)]


def _quiet_exporter() -> None:
    """Hide torch's remarks to its own developers; errors still come."""
    warnings.filterwarnings("ignore", module=r"torch\.|copyreg|export\.graphs")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
