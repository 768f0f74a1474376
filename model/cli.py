"""The command `dragoman train`; its help and its argument errors need no torch."""

import argparse
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from dragoman.arguments import Parser, language
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_INTERRUPTED, EXIT_OK
from dragoman.invalid import describe
from model.options import TrainingOptions


def train(argv: list[str]) -> int:
    """Train a model from a parallel corpus.

    Returns:
        The exit code: 0, or 130 after Ctrl-C, after one line on standard error that says how to continue.

    Raises:
        DataError: a file, folder or option is unusable.
    """
    arguments = build_parser().parse_args(argv)
    try:
        options = TrainingOptions(**{k: v for k, v in vars(arguments).items() if k in TrainingOptions.model_fields})
        options.transformer((options.vocabulary_size,) * 2)  # finds contradictions before torch is loaded
    except ValidationError as error:
        raise DataError(describe(error, flags=True)) from error
    from model.train import Trainer

    try:
        progress = Trainer(
            arguments.train,
            arguments.dev,
            arguments.out,
            options,
            resume=arguments.resume,
            init=arguments.init,
            report=_say,
        ).run()
    except KeyboardInterrupt:
        print(f"dragoman train: interrupted; {_how_to_go_on(arguments.out)}", file=sys.stderr)
        return EXIT_INTERRUPTED
    print(f"best dev BLEU {progress.best_bleu:.2f}; checkpoint: {arguments.out / 'checkpoint'}")
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser("dragoman train", description="Train a Transformer from a parallel corpus.")
    add = parser.add_argument
    lines = "source<TAB>target lines, perhaps with <TAB>tag behind; .xz, .gz, .bz2 or plain"
    add("--train", type=Path, required=True, action="append", metavar="FILE", help=f"{lines}; may be given repeatedly")
    add("--dev", type=Path, required=True, metavar="FILE", help="like --train; used to choose the best weights")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the run; the result is DIR/checkpoint")
    add("--resume", action="store_true", help="continue the run in DIR; give the same options again")
    add("--init", type=Path, metavar="CHECKPOINT", help="start from these weights and this tokenizer (fine-tuning)")
    for name, field in TrainingOptions.model_fields.items():
        _add_option(parser, name, field)
    return parser


class _Assign(argparse.Action):
    """Collects the NAME=NUMBER values of a repeatable flag, in order, each name once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name, _, number = str(values).rpartition("=")
        given = getattr(namespace, self.dest, {})
        try:
            value = float(number)
        except ValueError:
            raise argparse.ArgumentError(self, f"must be {self.metavar}, is {values!r}") from None
        if not name:
            raise argparse.ArgumentError(self, f"must be {self.metavar}, is {values!r}")
        if name in given:
            raise argparse.ArgumentError(self, f"{name!r} is given twice")
        setattr(namespace, self.dest, given | {name: value})


_ASSIGNED = {"weight": "PATTERN=COPIES", "augment": "KIND=SHARE"}


def _add_option(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    """Add the flag of an option; without the flag, the result has no value for it."""
    default = "none" if field.default in ("", {}) else field.default
    how: dict[str, Any] = {"default": argparse.SUPPRESS, "help": f"{field.description} (default: {default})"}
    if field.annotation is bool:
        how["action"] = argparse.BooleanOptionalAction
    elif get_origin(field.annotation) is Literal:
        how["choices"] = get_args(field.annotation)
    elif field.annotation is str:
        how |= {"type": language, "metavar": "CODE"}
    elif get_origin(field.annotation) is dict:
        how |= {"action": _Assign, "metavar": _ASSIGNED[name]}
    else:
        is_whole = isinstance(field.default, int)
        how |= {"type": int if is_whole else float, "metavar": "N" if is_whole else "X"}
    parser.add_argument(f"--{name.replace('_', '-')}", **how)


def _how_to_go_on(out: Path) -> str:
    if (out / "state").exists():
        return f"the run is saved in {out}; the same command with --resume continues it"
    if (out / "tokenizer").exists():
        return "no step was saved; the same command with --resume starts again"
    return "no step was saved; the same command starts again"


def _say(message: str) -> None:
    print(message, flush=True)
