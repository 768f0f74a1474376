"""Language codes as models write them, such as deu_Latn, de_DE and >>deu<<, and their BCP-47 codes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langcodes import Language, standardize_tag
from langcodes.tag_parser import LanguageTagError

from dragoman.language import is_code

# Codes of language groups (ISO 639-5), which a model for one language of a group may have in its place.
_GROUPS_WORDS: Final = """
aav afa alg alv apa aqa aql art ath auf aus awd azc bad bai bat ber bih bnt btk cai cau cba ccn ccs cdc cdd cel
cmc cpe cpf cpp crp csu cus day dmn dra egx esx euq fiu fox gem gme gmq gmw grk hmx hok hyx iir ijo inc ine ira
iro itc jpx kar kdo khi kro map mis mkh mno mul mun myn nah nai ngf nic nub omq omv oto paa phi plf poz pqe pqw
pra qwe roa sai sal sdv sem sgn sio sit sla smi son sqj ssa syd tai tbq trk tup tut tuw und urj wak wen xgn xnd
ypk zhx zle zls zlw znd zxx
"""
_GROUPS: Final = frozenset(_GROUPS_WORDS.split())
# Codes that the language registry maps to another language, or lacks.
_EXCEPTIONS: Final = {"tgl": "tl", "twi": "tw", "tl": "tl", "tw": "tw", "ns": "nso", "pbt": "ps", "quy": "qu"}
# Other codes of Chinese in each of its scripts.
_CHINESE: Final = {"zh-Hans": ("zh", "zh-CN", "zh-SG"), "zh-Hant": ("zh-TW", "zh-HK", "zh-MO")}


@dataclass(frozen=True)
class Code:
    """A language of a model.

    Attributes:
        tag: its BCP-47 code.
        aliases: other codes, including that of the model.
    """

    tag: str
    aliases: tuple[str, ...]


def known(codes: Iterable[str]) -> dict[str, Code]:
    """Find the languages of a model's codes; codes of no language are left out.

    Scripts and regions stay only where they distinguish languages of this model: deu_Latn alone becomes de, zho_Hans
    and zho_Hant become zh-Hans and zh-Hant.

    Args:
        codes: the codes of the model, without marks such as >> and <<.

    Returns:
        The languages by code, in the given order. Of several codes for the same language only the first is kept.
    """
    parsed = {code: language for code in codes if (language := _parse(code)) is not None}
    tags: dict[str, str] = {}
    for code, language in parsed.items():
        others = [other for other in parsed.values() if other.language == language.language]
        tag = _tag(language, others)
        if tag.lower() not in map(str.lower, tags.values()):
            tags[code] = tag
    chosen = {tag.lower() for tag in tags.values()}
    return {code: Code(tag, tuple(_aliases(code, tag, chosen))) for code, tag in tags.items()}


def is_language(code: str) -> bool:
    """Tell whether a model's code is that of a single language."""
    return _parse(code) is not None


def _parse(code: str) -> Language | None:
    head, _, tail = code.replace("_", "-").partition("-")
    text = "-".join(filter(None, [_EXCEPTIONS.get(head.lower(), head), tail]))
    if not is_code(text) or head.lower() in _GROUPS:
        return None
    try:
        is_exception = head.lower() in _EXCEPTIONS
        language = Language.get(text if is_exception else standardize_tag(text, macro=True), normalize=False)
    except LanguageTagError:
        return None
    if not language.is_valid():
        return None
    if language.language == "zh" and language.territory and not language.script:
        return language.update_dict({"script": language.maximize().script})
    return language


def _tag(language: Language, others: Sequence[Language]) -> str:
    """Choose the subtags that distinguish a language from its other varieties."""
    likely = Language.make(language=language.language).maximize().script
    is_likely = language.script in (None, likely) or (language.language, language.script) == ("ko", "Hang")
    several_scripts = len({other.script for other in others}) > 1
    script = language.script if several_scripts or not is_likely or language.language == "zh" else None
    several_regions = len({other.territory for other in others if other.script == language.script}) > 1
    region = language.territory if several_regions and language.territory != "XX" else None
    return Language.make(language=language.language, script=script, territory=region).to_tag()


def _aliases(code: str, tag: str, chosen: set[str]) -> Iterator[str]:
    if code.lower() != tag.lower():
        yield code
    language = tag.split("-", 1)[0]
    is_alone = sum(other.split("-", 1)[0] == language.lower() for other in chosen) == 1
    alone = (language,) if is_alone and language != tag and tag not in _CHINESE else ()
    yield from (name for name in (*alone, *_CHINESE.get(tag, ())) if name.lower() not in chosen and name != code)
