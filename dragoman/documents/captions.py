"""Special text in subtitles that models do not know: sounds in brackets, and speech in capitals."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.documents.inline import Kind, Tag, Tagged, Token, has_letter, tags_of

_BRACKETS: Final = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
_SOUND: Final = re.compile(rf"\s*(?:{_BRACKETS.pattern})\s*")
_BLANKS: Final = re.compile(r"\s*")
_BEHIND_STOP: Final = re.compile(r"[.!?…][\"'”’»)]*\s+\W*\w")
_FIRST: Final = re.compile(r"\A\W*\w")


def is_sound(line: str) -> bool:
    """Tell whether a line is one sound in brackets."""
    return _SOUND.fullmatch(line) is not None


def read_caption(text: str, pattern: re.Pattern[str]) -> Tagged:
    """Read the text of a caption.

    A sound is a text of its own; its brackets stay. A sound in capitals stays unchanged: it is too short for a model to
    translate it in lower case.

    Args:
        text: the text of the caption.
        pattern: the pattern of its tags, see `Tagged.read`.
    """
    tags: list[Tag] = []
    for tag in sorted([*tags_of(text, pattern), *_sounds(text, pattern)]):
        done = tags[-1].stop if tags else 0
        if done <= tag.start:  # the tag is not inside a sound
            tags.append(_with_blanks(text, tag, done) if tag.kind is Kind.BREAK else tag)
    return Tagged.of(text, tags)


def is_in_capitals(tokens: Iterable[Token]) -> bool:
    """Tell whether a text has capital letters and no small letters."""
    return "".join(token.text for token in tokens).isupper()


def in_small_letters(tokens: Iterable[Token]) -> Iterator[Token]:
    """Write a text in small letters, except the first letter of each sentence."""
    begins = True
    for token in tokens:
        text = _BEHIND_STOP.sub(_upper, token.text.lower())
        if begins:
            text = _FIRST.sub(_upper, text)
        yield token._replace(text=text)
        begins = token.kind is Kind.BREAK or (begins and not has_letter(text))


def in_capitals(tokens: Iterable[Token]) -> Iterator[Token]:
    """Write a text in capitals."""
    for token in tokens:
        yield token._replace(text=token.text.upper())


def _sounds(text: str, pattern: re.Pattern[str]) -> Iterator[Tag]:
    """Find sounds: text in square brackets, and in round brackets at the beginning or end of the caption."""
    plain = pattern.sub(lambda found: " " * len(found[0]), text)
    begin, end = len(plain) - len(plain.lstrip()), len(plain.rstrip())
    for found in _BRACKETS.finditer(plain):
        start, stop = found.span()
        is_part = found[0][0] == "(" and start != begin and stop != end
        if is_part or not has_letter(found[0]):
            continue
        if found[0].isupper():
            yield Tag(start, stop, Kind.BREAK)
        else:
            yield Tag(start, start + 1, Kind.BREAK)
            yield Tag(stop - 1, stop, Kind.BREAK)


def _with_blanks(text: str, tag: Tag, done: int) -> Tag:
    """Extend a tag by the blanks around it.

    Args:
        text: the text with the tag.
        tag: the tag.
        done: the end of the previous tag.
    """
    behind = _BLANKS.match(text, tag.stop)
    return tag._replace(start=done + len(text[done : tag.start].rstrip()), stop=behind.end() if behind else tag.stop)


def _upper(found: re.Match[str]) -> str:
    return found[0].upper()
