"""The command `dragoman score`: reads lines of a text and its translation, writes a score or JSON object for each."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from dragoman.access import Access
from dragoman.answers import Score
from dragoman.arguments import Parser
from dragoman.commands import model_source
from dragoman.commands.lines import (
    CALL_TIMEOUT_S,
    EXIT_SOME_FAILED,
    Chunk,
    complain,
    each_chunk,
    in_calls,
)
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.exit_codes import EXIT_OK
from dragoman.loading import load

_COMMAND: Final = "score"
_TEXTS: Final = {"source_text": "the text", "target_text": "the translation"}


class Pair(NamedTuple):
    """A text, and a translation of it."""

    text: str
    translation: str


ScorePairs = Callable[[list[Pair]], list[Score]]


def score(arguments: list[str]) -> int:
    """Score the translations of standard input.

    Returns:
        0; 1 if some pairs could not be scored; all others were.
    """
    options, let_in = model_source.parse(build_parser(), arguments)
    with _server(options, let_in) if options.address else _in_process(options) as score_pairs:
        output = _Output(score_pairs, as_json=options.json)
        each_chunk(_COMMAND, sys.stdin.buffer, output.write)
    return EXIT_SOME_FAILED if output.failed else EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman score",
        description="Say how probable translations are. Standard input has lines of text<TAB>translation; for each, a "
        "line has the mean of the natural logarithms of the probabilities of the tokens. A line that cannot be scored "
        "gives an empty line, a line on standard error that names it, and exit code 1 at the end.",
    )
    model_source.add_arguments(parser)
    model_source.add_choice(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="write a JSON object per line: mean_log_probability, log_probability, tokens with theirs, ...",
    )
    return parser


@contextmanager
def _server(options: argparse.Namespace, let_in: Access) -> Iterator[ScorePairs]:
    with model_source.connected(options.address, let_in, CALL_TIMEOUT_S) as client:
        models = model_source.served(client, options.address)
        model, source, target = model_source.chosen(options)
        model = model_source.choose(models, model, source, target).name

        def scored(pairs: list[Pair]) -> list[Score]:
            texts, translations = [pair.text for pair in pairs], [pair.translation for pair in pairs]
            return client.score(
                texts,
                translations,
                model=model,
                source_language=source,
                target_language=target,
                priority="bulk",
                all_or_nothing=False,
            )

        yield lambda pairs: in_calls(scored, pairs, lambda error: failed(model, error))


@contextmanager
def _in_process(options: argparse.Namespace) -> Iterator[ScorePairs]:
    model, source, target = model_source.chosen(options)
    yield load("plugins.offline.in_process:scorer")(options.models, model=model, source=source, target=target)


def failed(model: str, error: DragomanError) -> Score:
    """Make the placeholder for a missing score."""
    return Score(model, 0.0, 0.0, (), 0, 0, error=error)


class _Output:
    """Scores lines, writes the scores to standard output, and errors to standard error.

    Attributes:
        failed: how many lines could not be scored.
    """

    def __init__(self, score_pairs: ScorePairs, *, as_json: bool) -> None:
        """Begin without a line.

        Args:
            score_pairs: returns a score for each pair.
            as_json: whether an output line is a JSON object.
        """
        self._score_pairs = score_pairs
        self._as_json = as_json
        self.failed = 0

    def write(self, chunk: Chunk) -> None:
        """Write an output line for each input line, in order."""
        read = [_read(line) for line in chunk.lines]
        pairs = [pair for pair in read if isinstance(pair, Pair)]
        scores = iter(self._score_pairs(pairs) if pairs else ())
        for number, (line, pair) in enumerate(zip(chunk.lines, read, strict=True), chunk.first):
            made = next(scores) if isinstance(pair, Pair) else failed("", pair)
            if made.error is not None:
                self.failed += 1
                complain(_COMMAND, f"line {number}: {_reason(made.error)}")
            written = json.dumps(_as_dict(line, made), ensure_ascii=False) if self._as_json else _as_line(made)
            sys.stdout.buffer.write(written.encode() + b"\n")
        sys.stdout.flush()


def _read(line: str) -> Pair | InvalidRequestError:
    fields = line.split("\t")
    if len(fields) != 2:
        return InvalidRequestError(f"must be a text, a tab and its translation, has {len(fields) - 1} tabs")
    return Pair(*fields)


def _as_line(made: Score) -> str:
    return f"{made.mean_log_probability:.6f}" if made.error is None else ""


def _as_dict(line: str, made: Score) -> dict[str, object]:
    text, _, translation = line.partition("\t")
    error, is_scored = made.error, made.error is None
    return {
        "text": text,
        "translation": translation,
        "mean_log_probability": made.mean_log_probability if is_scored else None,
        "log_probability": made.log_probability if is_scored else None,
        "tokens": [token._asdict() for token in made.tokens],
        "source_tokens": made.source_tokens,
        "target_tokens": made.target_tokens,
        "model": made.model,
        "error": error and {"reason": error.reason, "message": _reason(error)},
    }


def _reason(error: DragomanError) -> str:
    """Describe the error of a line, and name the text that caused it."""
    fields = [(violation.field.rpartition(".")[2], violation.description) for violation in error.violations]
    said = [f"{_TEXTS.get(field, field)} {description}" for field, description in fields]
    return "; ".join(said) or error.message
