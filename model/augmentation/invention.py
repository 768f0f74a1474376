"""Invented names, addresses, numbers and placeholders, which a translation copies."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

_KNOWN: Final = 0.25  # the share of listed names: a model that reads them too often writes them in place of others
_FILE: Final = Path(__file__).with_name("words.toml")
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(listed.split()) for name, listed in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


def is_first_name(word: str) -> bool:
    """Tell whether a word is one of the first names in this module."""
    return word in _WORDS["first_names"]


def name(random: Random) -> str:
    """Make up the name of a person, a place, a company or a product."""
    return random.choice((_person, _person, _person, _city, _city, _company))(random)


def number(random: Random) -> str:
    """Make up a whole number, small ones more often; not 1, since it needs the singular of other words."""
    return str(random.randint(2, 10 ** random.randint(1, 6)))


def copied(random: Random) -> str:
    """Make up a name, an address, a version, a placeholder, a code, a date, a path, a flag or an identifier."""
    return random.choice(_KINDS)(random)


def emoji(random: Random) -> str:
    """Choose an emoji, sometimes doubled."""
    return _word("emoji", random) * random.choice((1, 1, 1, 2))


def _word(kind: str, random: Random) -> str:
    return random.choice(_WORDS[kind])


def _invented(random: Random) -> str:
    """Make up a capitalised word of two or three syllables that no text has, so that it can only be copied."""
    syllables = [
        _word("onsets", random) * (random.random() < 0.9)
        + _word("vowels", random)
        + _word("codas", random) * (random.random() < 0.5)
        for _ in range(random.choice((2, 2, 2, 3)))
    ]
    return "".join(syllables).capitalize()


def _spliced(random: Random) -> str:
    """Make up a name from the beginning of one and the end of another: spelled like a name, to be copied."""
    one, other = (_word(random.choice(("first_names", "last_names", "cities")), random) for _ in range(2))
    return one[: random.randint(2, len(one) - 1)] + other[random.randint(1, len(other) - 2) :].lower()


def _new(random: Random) -> str:
    return random.choice((_invented, _spliced))(random)


def _person(random: Random) -> str:
    first, last = (
        _word(kind, random) if random.random() < _KNOWN else _new(random) for kind in ("first_names", "last_names")
    )
    return f"{first} {last}" if random.random() < 0.5 else random.choice((first, first, last))


def _city(random: Random) -> str:
    return (
        _word("cities", random)
        if random.random() < _KNOWN
        else _new(random) + _word("places", random) * random.randint(0, 1)
    )


def _company(random: Random) -> str:
    if random.random() < _KNOWN:
        return _word("products", random)
    one, other = _word("words", random).capitalize(), _word("words", random).capitalize()
    own = random.choice((_new(random), f"{one}{other}", f"{one} {other}"))
    return own + random.choice(("", "", " GmbH", " AG", " Inc.", " Ltd", " SE"))


def _domain(random: Random) -> str:
    one, other = _word("words", random), _word("words", random)
    return random.choice((one, f"{one}-{other}", one + other)) + "." + _word("endings", random)


def _email(random: Random) -> str:
    first = _word("first_names", random).lower()
    last = _word("last_names", random).lower().replace("'", "")
    local = random.choice(
        (f"{first}.{last}", f"{first}{random.randint(1, 99)}", _word("words", random), _word("boxes", random))
    )
    return f"{local}@{_domain(random)}"


def _url(random: Random) -> str:
    one, other = _word("words", random), _word("words", random)
    path = random.choice(("", f"/{one}", f"/{one}/{other}?id={random.randint(1, 9999)}", f"/docs/{one}.html"))
    return random.choice(("https://", "https://www.", "http://", "www.", "")) + _domain(random) + path


def _version(random: Random) -> str:
    numbers = ".".join(str(random.randint(0, 30)) for _ in range(random.choice((2, 3, 3))))
    ending = random.choice(("-beta", "-rc1", "rc2", "-alpha.2")) if random.random() < 0.4 else ""
    return random.choice(("v", "")) + numbers + ending


def _placeholder(random: Random) -> str:
    return _word("placeholders", random).replace("*", _word("variables", random))


def _order(random: Random) -> str:
    digits = random.randint(3, 7)
    return random.choice(("#", "INV-", "AB", "ORD-", "X")) + str(random.randrange(10 ** (digits - 1), 10**digits))


def _date(random: Random) -> str:
    """Make up a date with slashes or dots, in which the day or the month comes first: it stays as it is."""
    first, second, year = random.randint(1, 12), random.randint(1, 31), random.randint(1950, 2049)
    return random.choice(
        (
            f"{first}/{second}/{year}",
            f"{first:02d}/{second:02d}/{year}",
            f"{second}.{first}.{year}",
            f"{second:02d}.{first:02d}.{year}",
        )
    )


def _voucher(random: Random) -> str:
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
    parts = ["".join(random.choices(letters, k=random.randint(3, 5))) for _ in range(random.randint(1, 3))]
    return random.choice((_word("words", random).upper() + str(random.randint(2, 99)), "-".join(parts), "".join(parts)))


def _identifier(random: Random) -> str:
    one, other = _word("variables", random), _word("words", random)
    return random.choice(
        (f"{other}_{one}", f"{other}-{random.randint(1, 20)}", f"{other}.{one}()", f"{one}_{other}", f"{other}/{one}")
    )


def _hash(random: Random) -> str:
    return "".join(random.choices("0123456789abcdef", k=random.randint(6, 8)))


def _phone(random: Random) -> str:
    groups = [_digits(random.randint(2, 4), random) for _ in range(random.randint(2, 4))]
    return random.choice((f"+{random.randint(1, 99)} ", "0")) + random.choice("  -/").join(groups)


def _account(random: Random) -> str:
    """Make up an account number in the form of an IBAN, unbroken or in groups of four."""
    whole = random.choice(("DE", "GB", "FR", "AT", "CH", "ES", "PL")) + _digits(random.randint(16, 22), random)
    return whole if random.random() < 0.5 else " ".join(whole[start : start + 4] for start in range(0, len(whole), 4))


def _digits(count: int, random: Random) -> str:
    return "".join(random.choices("0123456789", k=count))


def _path(random: Random) -> str:
    return _word("folders", random) + _word("words", random) + _word("suffixes", random)


def _flag(random: Random) -> str:
    return _word("flags", random)


_KINDS: Final[tuple[Callable[[Random], str], ...]] = (
    *(_person, _person, _person, _city, _city, _company, _placeholder, _placeholder, _email, _email, _url, _url),
    *(_date, _date, _voucher, _identifier, _version, _version, _order, _hash, _path, _flag, _phone, _account),
)
