"""API keys: generated at random, stored as hashes in the operator's file, and looked up from a call's metadata."""

import hashlib
import math
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from dragoman.invalid import requirement
from service.settings import SettingsError

_PREFIX: Final = "dragoman_"  # lets scanners of repositories and logs recognise a key
_KEY_BYTES: Final = 32


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ValueError("must be 1 to 64 letters, digits, _ and -")
    return name


def _hash(digits: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", digits):  # not quoted: it may be the key itself
        raise ValueError(f"must be 64 of the digits 0-9 and a-f, has {len(digits)} characters")
    return digits


Name = Annotated[str, AfterValidator(_checked)]


class KeyEntry(BaseModel):
    """The entry of one key in the file.

    Attributes:
        sha256: the hash of the key, in hexadecimal digits. A slow hash has no benefit here: the key is 256 random bits,
            not a password that can be guessed.
        requests_per_s: sustained calls per second; None: no limit.
        burst: calls at once after a pause; None: as many as in one second.
        concurrent_requests: concurrent calls; None: no limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    sha256: Annotated[str, AfterValidator(_hash)]
    requests_per_s: float | None = Field(None, ge=1e-6, le=1e6, allow_inf_nan=False)
    burst: int | None = Field(None, ge=1, le=1_000_000)
    concurrent_requests: int | None = Field(None, ge=1)

    @field_validator("burst")
    @classmethod
    def _goes_with_a_rate(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("requests_per_s") is None:
            raise ValueError("needs requests_per_s")
        return value

    @property
    def bucket_tokens(self) -> int:
        """How many calls at once the rate limit allows after a pause."""
        return self.burst or math.ceil(self.requests_per_s or 1)


_ENTRIES: Final = TypeAdapter(dict[Name, KeyEntry])
_FIELD: Final = re.compile("|".join(KeyEntry.model_fields))  # each field is a flag of the command


class KeyStore:
    """The keys from one reading of the file.

    A key is looked up by a hash of its hash, with a new salt in every process. So an attacker learns nothing from the
    time of a look-up: the attacker cannot choose guesses that share a prefix with the stored bytes.

    Attributes:
        entries: the entries, by the name of the key.
    """

    def __init__(self, entries: Mapping[str, KeyEntry]) -> None:
        self.entries = dict(entries)
        self._salt = secrets.token_bytes(_KEY_BYTES)
        self._names = {self._salted(bytes.fromhex(entry.sha256)): name for name, entry in self.entries.items()}

    def find(self, key: str) -> str | None:
        """Give the name of a key; None if the key is unknown."""
        return self._names.get(self._salted(_sha256(key).digest()))

    def _salted(self, digest: bytes) -> bytes:
        return hashlib.blake2b(digest, key=self._salt, digest_size=_KEY_BYTES).digest()


def generate() -> str:
    """Make a new key."""
    return _PREFIX + secrets.token_urlsafe(_KEY_BYTES)


def entry_of(key: str, **limits: Any) -> KeyEntry:
    """Make the entry of a key; the entry holds only the hash.

    Raises:
        SettingsError: a limit is invalid; the message names its flag.
    """
    try:
        return KeyEntry(sha256=_sha256(key).hexdigest(), **limits)
    except ValidationError as error:
        raise SettingsError(_FIELD.sub(lambda field: f"--{field[0].replace('_', '-')}", _describe(error))) from error


def line_of(name: str, entry: KeyEntry) -> str:
    """Write an entry as a line of the file.

    Raises:
        SettingsError: the name is invalid.
    """
    try:
        _ENTRIES.validate_python({name: entry})
    except ValidationError as error:
        raise SettingsError(_describe(error)) from error
    fields = entry.model_dump(exclude_none=True)
    return f"{name} = {{ {', '.join(f'{field} = {_toml(value)}' for field, value in fields.items())} }}"


def parse(content: bytes, path: str) -> KeyStore:
    """Read the file: TOML, the name of each key followed by its entry.

    Raises:
        SettingsError: the file is invalid, holds no key, or holds one key twice.
    """
    try:
        entries = _ENTRIES.validate_python(tomllib.loads(content.decode()))
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is not UTF-8, at byte {error.start}") from None
    except ValidationError as error:
        raise SettingsError(f"{path}: {_describe(error)}") from error
    except (ValueError, RecursionError) as error:  # TOML's errors name the line and quote no value
        raise SettingsError(f"{path}: not TOML: {error}") from error
    if not entries:
        # The file is probably being written; and a server that admits nobody need not run.
        raise SettingsError(f"{path}: there is no key in it")
    if twins := _twins(entries):
        raise SettingsError(f"{path}: {' and '.join(twins)} are the same key")
    return KeyStore(entries)


def _sha256(key: str) -> Any:
    return hashlib.sha256(key.encode(errors="surrogatepass"))


def _twins(entries: Mapping[str, KeyEntry]) -> tuple[str, str] | None:
    """Find two names of the same key."""
    names: dict[str, str] = {}
    for name, entry in entries.items():
        if (twin := names.setdefault(entry.sha256, name)) != name:
            return twin, name
    return None


def _toml(value: str | float) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _describe(error: ValidationError) -> str:
    """Describe the error in one line. Only numbers of limits are quoted: any other value may be a key."""
    return "; ".join(
        f"{_place(problem['loc'])}: {requirement(problem['msg'])}" + _given(problem["loc"], problem["input"])
        for problem in error.errors()
    )


def _given(location: Sequence[Any], value: Any) -> str:
    is_limit = bool(location) and location[-1] in KeyEntry.model_fields.keys() - {"sha256"}
    return f"; given: {value}" if is_limit and isinstance(value, int | float) else ""


def _place(location: Iterable[Any]) -> str:
    return ".".join(str(part)[:64] for part in location if part != "[key]")
