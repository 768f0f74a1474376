"""The command `dragoman calibrate`: fits the quality estimates of a bundle to references, and writes them into it."""

import argparse
import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.arguments import Parser, language, output_file
from dragoman.errors import DataError
from export.cli import kind_of, run, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.bundle import Bundle
    from export.quality_fit import Bin
    from model.corpus import Corpus

ACCEPTED_CHRF: Final = 50.0  # sentence chrF from which a translation counts as accepted
_FEWEST: Final = 20  # the smallest number of accepted sentences, and of others


class Judged(NamedTuple):
    """The judged translations of a corpus.

    Attributes:
        features: [sentences, coefficients without the bias], in the order of `QualityWeights`.
        accepted: [sentences], whether a reader would accept the translation, judged by its reference.
        left_out: the number of rows whose text has several sentences, or none.
    """

    features: "NDArray[np.float64]"
    accepted: "NDArray[np.bool_]"
    left_out: int


def calibrate(argv: list[str]) -> int:
    """Calibrate the quality estimates of a bundle.

    Returns:
        The exit code: 0, or 130 after Ctrl-C.

    Raises:
        DragomanError: a file is unusable, or has too few sentences of either kind.
    """
    arguments = build_parser().parse_args(argv)
    if (kind := kind_of(arguments.bundle)) != "bundle":
        raise DataError(f"{arguments.bundle}: is a {kind}, not a bundle")
    return run("calibrate", lambda: _calibrate(arguments))


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman calibrate",
        description="Fit the quality estimates of a bundle to sentences with references, and write that into the "
        "bundle. A sentence counts as accepted where its translation has a chrF of 50 or more and lacks no number, "
        "code, name or placeholder that the reference keeps.",
    )
    add = parser.add_argument
    add("bundle", type=Path, help="folder of the bundle")
    add("--data", type=Path, required=True, metavar="FILE", help="source<TAB>target lines that the model has not seen")
    for side in ("source", "target"):
        which = "which of them to use, where the model has several"
        add(f"--{side}-language", type=language, metavar="CODE", help=which)
    add("--plot", type=output_file, metavar="FILE", help="draw the reliability diagram here, a PNG")
    return parser


def _calibrate(arguments: argparse.Namespace) -> None:
    from dragoman.bundle import FORMAT, Bundle
    from export.quality_fit import expected_error, fit, held_out_estimates, reliability
    from model.corpus import read_corpus

    if arguments.plot:
        from export.quality_plot import plot_reliability
    bundle = Bundle.open(arguments.bundle)
    corpus = read_corpus(arguments.data)
    say(f"translating {len(corpus)} sentences")
    judged = judge(bundle, corpus, arguments.source_language or "", arguments.target_language or "")
    accepted = int(judged.accepted.sum())
    if min(accepted, len(judged.accepted) - accepted) < _FEWEST:
        raise DataError(
            f"{arguments.data}: must have at least {_FEWEST} sentences whose translation is accepted, and as many "
            f"others, has {accepted} and {len(judged.accepted) - accepted}"
        )
    bins = reliability(held_out_estimates(judged.features, judged.accepted), judged.accepted)
    weights = fit(judged.features, judged.accepted)
    print(
        f"{len(judged.accepted)} sentences, {accepted} accepted; {judged.left_out} rows left out, of several sentences"
    )
    print("each half estimated by a fit to the other half:")
    print(table(bins))
    print(f"mean distance {expected_error(bins):.3f}")
    bundle.manifest.model_copy(update={"format_version": FORMAT, "quality": weights}).write(bundle.path)
    print(f"wrote quality into {bundle.path}")
    if arguments.plot:
        plot_reliability(bins, arguments.plot)


def judge(bundle: "Bundle", corpus: "Corpus", source: str, target: str) -> Judged:
    """Translate a corpus as a server does, and judge each translation by its reference.

    Args:
        bundle: the bundle that translates.
        corpus: the corpus, with references.
        source: source language of the corpus; "": the only one of the model.
        target: target language of the corpus; "": the only one of the model.

    Raises:
        DragomanError: the model does not translate between the languages.
    """
    import numpy as np
    from sacrebleu.metrics.chrf import CHRF

    from export.parity import SLOTS
    from plugins.offline.engine import OfflineEngine
    from plugins.offline.texts import translate_offline
    from plugins.quality.counts import count
    from plugins.quality.estimate import features
    from service.decode import FinishReason
    from service.options import Decoding, RequestOptions
    from service.text.translator import Translator

    languages = bundle.manifest.languages.told(source, target)
    options = RequestOptions(
        decoding=Decoding(wants_log_probability=True),
        mean_log_probability=True,
        source_language=languages[0],
        target_language=languages[1],
    )
    translator = Translator(bundle.manifest, bundle.tokenizer())
    with closing(OfflineEngine(bundle, slots=SLOTS)) as engine:
        results = translate_offline(translator, engine, corpus.sources, options)
    chrf, rows, accepted = CHRF(), [], []
    for text, reference, result in zip(corpus.sources, corpus.targets, results, strict=True):
        if result.segments != 1 or result.mean_log_probability is None:
            continue
        unfinished = result.finish_reason is not FinishReason.EOS
        counted = count(text, result.text, *languages, unfinished=unfinished, unknown_pieces=result.unknown_pieces)
        kept = count(text, reference, *languages)
        lacks_nothing = all(one <= other for one, other in zip(counted.lost, kept.lost, strict=True))
        rows.append(features(counted, result.mean_log_probability))
        accepted.append(lacks_nothing and chrf.sentence_score(result.text, [reference]).score >= ACCEPTED_CHRF)
    return Judged(np.array(rows), np.array(accepted, bool), len(results) - len(rows))


def table(bins: "Sequence[Bin]") -> str:
    """Format bins as a table, with the range that contains the expected share with a probability of 95 %."""
    lines = ["estimate    sentences  estimated  accepted"]
    for each in bins:
        if each.rows:
            spread = 1.96 * math.sqrt(each.estimated * (1 - each.estimated) / each.rows)
            shares = f"{each.estimated:9.3f} {each.accepted:9.3f}  (+-{spread:.3f} by chance)"
        else:
            shares = f"{'-':>9} {'-':>9}"
        lines.append(f"{each.start:.1f} to {each.stop:.1f}  {each.rows:9}  {shares}")
    return "\n".join(lines)
