"""Searches for translations that hold given terms, beside greedy decoding and plain beams.

    python -m bench.terms --train train.tsv.xz --data test.tsv.xz [--markdown OUT] [--json OUT]

Terms are words of the references of --data that translate a word of the source, by a lexicon that is learned from
--train, and that the greedy translation lacks; a sentence with several terms may have others that it has. They stand
there as in the reference, inflection and all, so what they gain in BLEU is more than a glossary would; whether they are
there is no matter of that.

After these come terms that do not fit: each is a word of another reference, and stands in the reference in place of a
noun that translates a word of the source. As a glossary they may give way: then they take the place of aligned words.

All sentences are there at once, on one thread. Times are those of the processor, the least of all rounds.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.arguments import add_bundle, count, counts, input_file, make_parser, output_file
from bench.files import write_json, write_whole
from bench.load.texts import DataFileError, read_pairs
from bench.log import Log, log_with_time
from bench.terms.lexicon import learn
from bench.terms.measure import Found, Translator, Way
from bench.terms.report import as_dict, as_markdown
from bench.terms.tasks import tasks, unfit_tasks
from dragoman.arguments import Parser
from dragoman.bundle import Bundle
from dragoman.errors import BundleError
from dragoman.exit_codes import EXIT_OK

_GREEDY = Way(1, constrained=False)
_PLAIN = Way(4, constrained=False)
_GLOSSARY = Way(4, constrained=True, as_glossary=True)


def main(argv: list[str]) -> int:
    """Measure, and print a Markdown table.

    Returns:
        The exit code: 0.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument or a file is no good.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if min(arguments.beam_sizes) < 2:
        parser.error("argument --beam-sizes: a constrained search has at least 2 hypotheses")
    if (largest := max(*arguments.beam_sizes, _PLAIN.beam_size)) > arguments.slots:
        parser.error(f"argument --slots: a beam of {largest} hypotheses takes as many slots, not {arguments.slots}")
    try:
        found = list(_found(arguments, log_with_time()))
    except (DataFileError, BundleError) as error:
        parser.error(str(error))
    _report(found, arguments)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = make_parser("python -m bench.terms", __doc__)
    add = parser.add_argument
    add("--train", type=input_file, required=True, metavar="FILE", help="pairs that the lexicon is learned from")
    add("--data", type=input_file, required=True, metavar="FILE", help="pairs that are translated; .gz, .xz")
    add_bundle(parser)
    add("--terms", type=counts, default=[1, 2, 3], metavar="N,...", help="of a sentence (1,2,3)")
    add("--beam-sizes", type=counts, default=[4, 8], metavar="N,...", help="of constrained searches (4,8)")
    add("--sentences", type=count, default=300, metavar="N", help="at most, for each number of terms (%(default)s)")
    add("--slots", type=count, default=32, metavar="N", help="of the thread (%(default)s)")
    add("--rounds", type=count, default=3, metavar="N", help="measurements of each way (%(default)s)")
    add("--json", type=output_file, metavar="OUT", help="write all figures to this file")
    add("--markdown", type=output_file, metavar="OUT", help="write the table to this file")
    return parser


def _found(arguments: argparse.Namespace, log: Log) -> Iterator[Found]:
    pairs = list(zip(*read_pairs(arguments.data), strict=True))
    log("learning which words translate which")
    lexicon = learn(zip(*read_pairs(arguments.train), strict=True))
    translator = Translator(Bundle.open(Path(arguments.bundle)), arguments.slots)
    try:
        greedy = translator.greedy([source for source, _ in pairs])
        ways = [_GREEDY, _PLAIN, *(Way(size, constrained=True) for size in arguments.beam_sizes), _GLOSSARY]
        for terms in arguments.terms:
            chosen = tasks(pairs, greedy, lexicon, terms, arguments.sentences)
            log(f"{terms} terms: {len(chosen)} sentences")
            if chosen:
                yield from translator.measure(chosen, ways, arguments.rounds)
        unfit = unfit_tasks(pairs, greedy, lexicon, arguments.sentences)
        log(f"terms that do not fit: {len(unfit)} sentences")
        if unfit:
            yield from translator.measure(unfit, ways, arguments.rounds, fits=False)
    finally:
        translator.close()


def _report(found: Sequence[Found], arguments: argparse.Namespace) -> None:
    table = as_markdown(found)
    print(table)
    if arguments.markdown:
        write_whole(arguments.markdown, f"{table}\n")
    write_json(arguments.json, as_dict(found, vars(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
