"""Names, addresses, numbers and placeholders that nobody has: what a translation copies."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

_FILE: Final = Path(__file__).with_name("words.toml")
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(listed.split()) for name, listed in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


def number(random: Random) -> str:
    """Make up a whole number, small ones more often; not 1, after which other words have another form."""
    return str(random.randint(2, 10 ** random.randint(1, 6)))


def copied(random: Random) -> str:
    """Make up a name, an e-mail address, a URL, a version, a placeholder, an order number, a path or a flag."""
    return random.choice(_KINDS)(random)


def emoji(random: Random) -> str:
    """Choose an emoji, which may stand twice."""
    return _word("emoji", random) * random.choice((1, 1, 1, 2))


def _word(kind: str, random: Random) -> str:
    return random.choice(_WORDS[kind])


def _name(random: Random) -> str:
    first = _word("first_names", random)
    return f"{first} {_word('last_names', random)}" if random.random() < 0.6 else first


def _city(random: Random) -> str:
    return _word("cities", random)


def _domain(random: Random) -> str:
    one, other = _word("words", random), _word("words", random)
    return random.choice((one, f"{one}-{other}", one + other)) + "." + _word("endings", random)


def _email(random: Random) -> str:
    first = _word("first_names", random).lower()
    last = _word("last_names", random).lower().replace("'", "")
    local = random.choice((f"{first}.{last}", f"{first}{random.randint(1, 99)}", _word("words", random)))
    return f"{local}@{_domain(random)}"


def _url(random: Random) -> str:
    one, other = _word("words", random), _word("words", random)
    path = random.choice(("", f"/{one}", f"/{one}/{other}?id={random.randint(1, 9999)}", f"/docs/{one}.html"))
    return random.choice(("https://", "https://www.", "http://", "www.")) + _domain(random) + path


def _version(random: Random) -> str:
    numbers = ".".join(str(random.randint(0, 30)) for _ in range(random.choice((2, 3, 3))))
    ending = random.choice(("-beta", "-rc1", "rc2", "-alpha.2")) if random.random() < 0.4 else ""
    return random.choice(("v", "")) + numbers + ending


def _placeholder(random: Random) -> str:
    return _word("placeholders", random).replace("*", _word("variables", random))


def _order(random: Random) -> str:
    digits = random.randint(3, 7)
    return random.choice(("#", "INV-", "AB", "ORD-", "X")) + str(random.randrange(10 ** (digits - 1), 10**digits))


def _hash(random: Random) -> str:
    return "".join(random.choices("0123456789abcdef", k=random.randint(6, 8)))


def _path(random: Random) -> str:
    return _word("folders", random) + _word("words", random) + _word("suffixes", random)


def _flag(random: Random) -> str:
    return _word("flags", random)


_KINDS: Final[tuple[Callable[[Random], str], ...]] = (
    *(_name, _name, _name, _placeholder, _placeholder),
    *(_city, _email, _url, _version, _order, _hash, _path, _flag),
)
