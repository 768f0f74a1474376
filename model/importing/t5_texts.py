"""The tokenizer of T5 and its relatives, and how languages are marked: by a prompt or a mark such as <2de>."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sentencepiece import SentencePieceProcessor

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks
from dragoman.tokenizer import JOINT, VOCABULARY
from model.importing import codes, languages, tokenizers
from model.importing.family import Texts, Wanted
from model.importing.source import CONFIG, Source

_SPM: Final = "spiece.model"
_HINT: Final = " (ByT5, which reads bytes, is not supported)"
# In MADLAD-400: a piece for each target language.
_MARK: Final = re.compile(r"^▁?<2([\w-]+)>$")
# In T5: names of tasks whose parameters contain a prompt.
_TASK: Final = re.compile(r"^translation_(\w+)_to_(\w+)$")

Ids = tuple[int, ...]
Sides = tuple[Sequence[str], Sequence[str]]  # codes of source and of target languages
Prompts = Mapping[tuple[str, str], Ids]  # by the codes of source and target


def read(source: Source, wanted: Wanted, rows: int, eos_id: int, forced_id: int | None) -> Texts:
    """Read the tokenizer and the languages.

    Args:
        source: the folder.
        wanted: the languages given by the user.
        rows: the number of rows of the model's embedding.
        eos_id: the model's end-of-sentence id, which must equal that of the tokenizer.
        forced_id: the forced first id of every translation, or None.

    Raises:
        DataError: there is no tokenizer, it does not fit, or the languages are unknown.
    """
    content = tokenizers.sentencepiece_file(source, _SPM, _HINT)
    file = source.folder / _SPM
    ours = tokenizers.processor(content, file)
    pieces: list[str] = ours.id_to_piece(list(range(ours.get_piece_size())))
    if eos_id >= len(pieces) or pieces[eos_id] != "</s>":
        raise DataError(f"{source.folder / CONFIG}: eos_token_id {eos_id} is not </s> in {_SPM}")
    control = [piece for id_, piece in enumerate(pieces) if ours.is_control(id_)]
    ids = {piece: id_ for id_, piece in enumerate(pieces)}
    unknown = pieces[ours.unk_id()]
    vocabulary = tokenizers.as_file(tokenizers.vocabulary_file(source, _SPM, ids, rows, control, unknown))
    tokenizers.check_fit(content, vocabulary, file)
    # The original model, in which text can contain marks.
    theirs = tokenizers.processor(source.bytes(_SPM), file)
    marks, sides, warnings = _marks(source, wanted, theirs, ids)
    forced = () if forced_id is None else (forced_id,)
    marks = {code: mark.model_copy(update={"target_prefix": forced}) for code, mark in marks.items()}
    found, left_out = languages.make(*sides, marks, wanted)
    return Texts({JOINT: content, VOCABULARY: vocabulary}, ours.unk_id(), found, [*warnings, *left_out])


def _marks(
    source: Source, wanted: Wanted, processor: SentencePieceProcessor, ids: Mapping[str, int]
) -> tuple[dict[str, LanguageMarks], Sides, list[str]]:
    """Find the marks of each language, the languages of both sides, and warnings."""
    tagged = {found[1]: piece for piece in ids if (found := _MARK.match(piece))}
    if tagged:
        added = tokenizers.added_tokens(source)
        marks = {
            code: LanguageMarks(
                aliases=(piece.lstrip("▁"),),
                target_tag=(ids[piece],) if piece in added else _alone(processor, piece.lstrip("▁")),
            )
            for code, piece in tagged.items()
        }
        return marks, (list(tagged), list(tagged)), []
    prompts = _prompts(source, processor)
    if prompts:
        return _of_prompts(source, wanted, prompts)
    return _of_user(source, wanted, processor)


def _alone(processor: SentencePieceProcessor, text: str) -> Ids:
    """Find the ids of a text that is followed by a blank and another text."""
    other: list[int] = processor.encode("a")
    both: list[int] = processor.encode(f"{text} a")
    if not other or both[-len(other) :] != other:
        raise DataError(f"{_SPM}: the pieces of {text!r:.60} depend on the text behind it")
    return tuple(both[: -len(other)])


def _prompts(source: Source, processor: SentencePieceProcessor) -> dict[tuple[str, str], Ids]:
    """Read the prompts of translation tasks."""
    tasks = source.config.get("task_specific_params")
    found = {}
    for name, parameters in tasks.items() if isinstance(tasks, dict) else ():
        languages_of = _TASK.match(name)
        prefix = parameters.get("prefix") if isinstance(parameters, dict) else None
        if languages_of and isinstance(prefix, str):
            found[languages_of[1], languages_of[2]] = _prompt(source, processor, prefix)
    return found


def _prompt(source: Source, processor: SentencePieceProcessor, prefix: str) -> Ids:
    if not prefix.strip():
        return ()
    if not prefix[-1].isspace():
        raise DataError(f"{source.folder / CONFIG}: the prompt {prefix!r:.60} must end with a blank")
    return _alone(processor, prefix.strip())


def _of_prompts(source: Source, wanted: Wanted, prompts: Prompts) -> tuple[dict[str, LanguageMarks], Sides, list[str]]:
    """Divide prompts into a part for the source and a part for the target."""
    known = codes.known(dict.fromkeys(code for pair in prompts for code in pair))
    there = [pair for pair in prompts if all(code in known for code in pair)]
    sources = languages.restrict(list(dict.fromkeys(s for s, _ in there)), known, wanted.sources, wanted.languages)
    targets = languages.restrict(list(dict.fromkeys(t for _, t in there)), known, wanted.targets, wanted.languages)
    chosen = {pair: prompts[pair] for pair in there if pair[0] in sources and pair[1] in targets}
    prefixes = {code: _common([ids for (s, _), ids in chosen.items() if s == code]) for code in sources}
    tags = {t: ids[len(prefixes[s]) :] for (s, t), ids in chosen.items()}
    for pair in ((s, t) for s in sources for t in targets if s != t):
        if pair not in chosen or prefixes[pair[0]] + tags[pair[1]] != chosen[pair]:
            told = ", ".join(f"{s} to {t}" for s, t in prompts)
            raise DataError(
                f"{source.folder / CONFIG}: has prompts for {told} only; choose those whose sources go with all "
                "targets, by --source-language and --target-language"
            )
    marks = {
        code: LanguageMarks(source_prefix=prefixes.get(code, ()), target_tag=tags.get(code, ()))
        for code in dict.fromkeys([*sources, *targets])
    }
    return marks, (sources, targets), []


def _common(many: Sequence[Ids]) -> Ids:
    """Find the common first ids."""
    shortest = min(many, key=len, default=())
    return next(
        (shortest[:place] for place, id_ in enumerate(shortest) if any(ids[place] != id_ for ids in many)), shortest
    )


def _of_user(
    source: Source, wanted: Wanted, processor: SentencePieceProcessor
) -> tuple[dict[str, LanguageMarks], Sides, list[str]]:
    """Use the user's languages for a model of one pair, whose prompt is `prefix` of config.json, if there is one."""
    if not (len(wanted.sources) == len(wanted.targets) == 1):
        raise DataError(
            f"{source.folder}: does not say its languages: no prompts in task_specific_params of {CONFIG}, and no "
            f"pieces such as <2de> in {_SPM}; give --source-language and --target-language, one each"
        )
    prefix = source.config.get("prefix") or ""
    warnings = [] if prefix else [f"{CONFIG} has no prompt (prefix): sources are read as they are"]
    marks = {wanted.sources[0]: LanguageMarks(source_prefix=_prompt(source, processor, str(prefix)))}
    marks.setdefault(wanted.targets[0], LanguageMarks())
    return marks, (wanted.sources, wanted.targets), warnings
