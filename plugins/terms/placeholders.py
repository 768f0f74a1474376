"""Parts of plain text that are not translated: variables of programs, addresses, emoji."""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.scripts import UNSPACED

# Every part is bounded, or cannot begin where another match continues, so a search takes linear time on any text.
_NUMBER: Final = r"(?:\*|\d{1,6})?"
_CONVERSION: Final = rf"[-+#0]{{0,5}}{_NUMBER}(?:\.{_NUMBER})?(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcCsSpn@]"
_NAME: Final = r"(?<!\d)(?:%[^\W\d]\w{1,63}%|%%[^\W\d]\w{1,63}%%|##[^\W\d]\w{1,63}##)"


def _nested(depth: int) -> str:
    """Make the pattern of nested braces."""
    return r"\{[^{}]{0,500}\}" if depth == 1 else rf"\{{(?:[^{{}}]|{_nested(depth - 1)}){{0,1000}}\}}"


# ICU's messages have nested braces: {n, plural, one {{who, select, other {{name} has # file}}} other {# files}}.
_ICU: Final = (
    rf"\{{\s{{0,3}}\w{{1,64}}\s{{0,3}},\s{{0,3}}\w{{1,32}}\s{{0,3}}(?:\}}|,(?:[^{{}}]|{_nested(4)}){{0,2000}}\}})"
)

# Addresses include letters of languages that put blanks between words, but no Chinese, Japanese or Thai text.
_FAR_EAST: Final = rf"{UNSPACED}\u3000-\u303f\uff00-\uffef"  # with their punctuation
_IN_ADDRESS: Final = rf"[^\s<>\"'`“”‘’«»(){{}}\[\]{_FAR_EAST}]"
_ADDRESS: Final = rf"(?:{_IN_ADDRESS}|\({_IN_ADDRESS}{{0,200}}\)|\{{\w{{0,64}}\}}){{1,4000}}(?<![.,;:!?…])"

_MODIFIERS: Final = "\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
_PICTURE: Final = (
    r"(?:[\u231a\u231b\u23e9-\u23f3\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff]"
    rf"[{_MODIFIERS}]{{0,16}})"
)
_KEYCAP: Final = r"(?:[0-9#*]\ufe0f?\u20e3)"

# Web and e-mail addresses.
_ADDRESSES: Final = (
    rf"(?<![A-Za-z0-9_])(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}://|www\.|mailto:){_ADDRESS}",
    # example.com/account, but not "Mr.Smith/Jones"
    rf"(?<![\w.@/-])(?:[a-z0-9-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}/{_ADDRESS}",
    r"(?<![\w.+-])[\w.+-]{1,64}@[^\W_](?:[\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?!\w)",
)
_SUFFIXES: Final = (
    "bat|cfg|conf|config|cpp|cs|css|csv|dll|docx?|exe|gif|html?|ini|java|jpe?g|json|js|md|mp[34]|pdf|php|png|pptx?|ps1|py|"
    "rs|sh|sql|svg|toml|tsv?|txt|xlsx?|xml|ya?ml|zip"
)
# Words that may follow a dash: this is no option --and that is one: --verbose.
_DASHED: Final = (
    "a|aber|also|and|as|but|das|denn|der|die|er|es|he|i|ich|in|it|oder|or|she|sie|so|that|the|they|und|was|we|which|"
    "who|wie|wir|you"
)
# Names in programs, of users, of topics and of files: max_size, MAX_SIZE, @ann, #travel, report.pdf, and ____, but
# not Node.js: German joins the name of a product to the next noun. And codes: SAVE20, account numbers, hashes; dates
# such as 13.06.2026, of which models repeat or drop parts; code: `a b`, localStorage, getName(), --verbose. Paths are
# left to the models, which copy them well.
_IDENTIFIERS: Final = (
    r"(?<![\w@])[A-Za-z0-9]{1,64}(?:_[A-Za-z0-9]{1,64}){1,16}(?!\w)",
    r"(?<!\w)_{3,}(?!\w)",
    r"(?<![\w@.])@[A-Za-z_]\w{0,63}(?![\w@])",
    r"(?<![\w&])#[a-z]\w{1,63}(?!\w)",
    r"(?<![\w.,-])(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z\d]{5,64}(?![\w-])",
    r"(?<![\w.,+-])\d{12,64}(?![\w-]|[.,]\d)",
    r"(?<![\w.,-])\d{1,2}\.\d{1,2}\.\d{4}(?![\w-]|[.,]\d)",
    r"(?<![\w./+-])(?=(?:[A-Za-z\d]{0,40}?\d[A-Za-z]){3})[A-Za-z\d]{12,200}(?![\w-])",
    r"(?<![\w./+-])(?=[\d:-]*[A-Fa-f])(?=[A-Fa-f:-]*\d)[\dA-Fa-f]{1,32}(?:[:-][\dA-Fa-f]{1,32}){3,8}(?![\w-])",
    r"(?<![\w`])`(?![\s`])[^`\n]{1,100}(?<!\s)`(?![\w`])",
    r"(?<![\w.@/-])[a-z]{2,64}[A-Z][A-Za-z]{1,64}(?![\w(.-])",
    r"(?<![\w.@/-])[A-Za-z][\w.]{1,64}\(\)(?![\w-])",
    rf"(?<!\S)(?:--(?!(?:{_DASHED})\b)[a-z][a-z-]{{1,64}}|-[b-zB-HJ-Z])(?![\w-])",
    rf"(?<![\w.@/-])(?![A-Z]\w{{0,63}}\.js)[A-Za-z0-9-]{{1,64}}\.(?:{_SUFFIXES})(?![\w(.-])",
)
_PATTERNS: Final = (
    *_ADDRESSES,
    # {{x}}, {{{x}}}, {% x %}, ${x}, #{x}, %{x}
    r"\{\{\{[^{}\n]{1,100}\}\}\}|\{\{[^{}\n]{1,100}\}\}|\{%[^%{}\n]{1,100}%\}|[$#%]\{[^{}\n]{1,100}\}",
    # {n, plural, ...}, and then {}, {0}, {name}, {price:.2f}
    rf"{_ICU}|\{{[ \u00a0]?[^\s{{}}]{{0,100}}[ \u00a0]?\}}",
    # %name%, but not %dx%d, which is two conversions; %%name%%, ##name##
    rf"{_NAME}(?![A-Za-z@%]|[-+#.]?\d)",
    # %%, %s, %d and %@, even directly after a digit
    r"%%|%[ds@](?!\w)",
    # %(count)d, %1$s, %-10.2f; of Qt %1 and %n; or else a name that letters follow
    rf"(?<!\d)%(?:\([\w.]{{1,64}}\){_CONVERSION}|\d{{1,2}}\${_CONVERSION}|{_CONVERSION}|L?\d{{1,2}})|{_NAME}",
    # An element without content.
    r"<[A-Za-z][\w:.-]{0,63}(?:\s[^<>\n]{0,500})?/>",
    # Adjacent emoji.
    rf"(?:{_PICTURE}(?:\u200d{_PICTURE}){{0,16}}|{_KEYCAP})+",
)


def _grouped(separator: str, point: str) -> str:
    """Make the pattern of numbers of two groups of digits or more, which models often shorten: 2.500.000,00."""
    address = r"(?:(?:1?\d?\d|2[0-4]\d|25[0-5])\.){3}[12]\d\d(?!\d)"  # 192.168.100.200
    return rf"(?<![\w.,])(?!{address})\d{{1,3}}(?:[{separator}]\d{{3}}){{2,8}}(?:[{point}]\d{{1,8}})?(?!\w|[.,]\d)"


GROUPED: Final = {".": _grouped(".", ","), ",": _grouped(",", ".")}
_NAMES: Final = "|".join((*_ADDRESSES, *_IDENTIFIERS))
_LITERAL: Final = {"": re.compile(_NAMES)} | {each: re.compile(f"{_NAMES}|{GROUPED[each]}") for each in GROUPED}
_PLACEHOLDER: Final = re.compile("|".join(_PATTERNS))


def find_literals(text: str, separator: str = "") -> Iterator[tuple[int, int]]:
    """Yield the spans [start, stop) of addresses, names in programs, of users, topics and files, and ____, in order.

    Args:
        separator: that of the groups of digits of numbers, which are found, too: "." or ","; "": they are not.
    """
    for found in _LITERAL[separator].finditer(text):
        yield found.span()


def find(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans [start, stop) of placeholders, in order and not nested."""
    for found in _PLACEHOLDER.finditer(text):
        yield found.span()
