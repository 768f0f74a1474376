"""The command `dragoman train`."""

import argparse
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import ValidationError

from dragoman.errors import DataError
from model.options import TrainingOptions
from model.train import Trainer


def train(argv: list[str]) -> int:
    """Train a model from a parallel corpus; returns the exit code.

    Raises:
        DataError: a file, folder or option cannot be used.
    """
    parser = argparse.ArgumentParser(prog="dragoman train", description="Train a Transformer from a parallel corpus.")
    parser.add_argument(
        "--train", type=Path, required=True, metavar="FILE", help="source<TAB>target lines; .xz, .gz or plain"
    )
    parser.add_argument("--dev", type=Path, required=True, metavar="FILE", help="as --train; chooses the best weights")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the run; the result is DIR/checkpoint",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in DIR; give the same options")
    parser.add_argument(
        "--init", type=Path, metavar="CHECKPOINT", help="start from these weights and this tokenizer (fine-tuning)"
    )
    for name, field in TrainingOptions.model_fields.items():
        flag, text = f"--{name.replace('_', '-')}", f"{field.description} (default: {field.default})"
        if field.annotation is bool:
            parser.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=field.default, help=field.description
            )
        elif get_origin(field.annotation) is Literal:
            parser.add_argument(flag, choices=get_args(field.annotation), default=field.default, help=text)
        else:
            parser.add_argument(flag, type=_number(field.default), default=field.default, help=text)
    arguments = vars(parser.parse_args(argv))
    train_file, dev_file, out = (arguments.pop(name) for name in ("train", "dev", "out"))
    resume, init = arguments.pop("resume"), arguments.pop("init")
    try:
        progress = Trainer(train_file, dev_file, out, TrainingOptions(**arguments), resume=resume, init=init).run()
    except ValidationError as error:
        fault = error.errors()[0]
        raise DataError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}, not {fault['input']!r}") from error
    print(f"best dev BLEU {progress.best_bleu:.2f}; checkpoint: {out / 'checkpoint'}")
    return 0


def _number(default: object) -> type[int] | type[float]:
    return int if isinstance(default, int) else float
