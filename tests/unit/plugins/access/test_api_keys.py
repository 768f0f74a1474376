import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.access import api_keys
from service.settings import SettingsError

DIGEST = hashlib.sha256(b"k").hexdigest()
limits = st.fixed_dictionaries(
    {},
    optional={
        "requests_per_s": st.floats(1e-3, 1e6),
        "concurrent_requests": st.integers(1, 10**6),
    },
)


@given(st.dictionaries(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True), limits, min_size=1, max_size=5))
def test_keys_are_found_by_the_lines_made_for_them(owners: dict[str, dict[str, float]]) -> None:
    keys = {name: api_keys.generate() for name in owners}
    lines = [api_keys.line_of(name, api_keys.entry_of(keys[name], **owners[name])) for name in owners]
    ring = api_keys.parse("\n".join(lines).encode(), "keys.toml")
    assert {name: ring.find(key) for name, key in keys.items()} == {name: name for name in owners}
    for name, given_limits in owners.items():
        assert ring.entries[name].model_dump(include=set(given_limits)) == given_limits
    assert not any(key in line for key in keys.values() for line in lines)


@given(st.text())
def test_nothing_else_is_a_key(guess: str) -> None:
    ring = api_keys.parse(f'a = {{ sha256 = "{DIGEST}" }}'.encode(), "keys.toml")
    assert ring.find("k") == "a"
    assert ring.find(guess) == ("a" if guess == "k" else None)


def test_keys_are_long_and_never_the_same() -> None:
    keys = {api_keys.generate() for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) == len("dragoman_") + 43 for key in keys)  # 43 characters of 6 bits: 256 bits


def test_the_burst_is_that_of_a_second_unless_given() -> None:
    entries = [{"requests_per_s": 2.5}, {"requests_per_s": 0.1}, {"requests_per_s": 2.5, "burst": 9}]
    assert [api_keys.entry_of("k", **entry).bucket_tokens for entry in entries] == [3, 1, 9]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "there is no key in it"),
        (b"# none yet\n", "there is no key in it"),
        (b"a = {", "not TOML"),
        (b"a = " + b"[" * 10_000, "not TOML"),
        (b"# \xff", "is not UTF-8, at byte 2"),
        (b"a = 1", "a: must have named fields"),
        (b"a = {}", "a.sha256: Field required"),
        (b'a = { sha256 = "dragoman_secret" }', "a.sha256: must be 64 of the digits 0-9 and a-f, has 15 characters"),
        (b"a = { sha256 = 5318008 }", "a.sha256: must be a valid string"),
        (f'a = {{ sha256 = "{DIGEST}", rate = 1 }}'.encode(), "a.rate: is no known field"),
        (f'a = {{ sha256 = "{DIGEST}", burst = 1 }}'.encode(), "a.burst: needs requests_per_s"),
        (f'a = {{ sha256 = "{DIGEST}", requests_per_s = 0 }}'.encode(), "a.requests_per_s: "),
        (f'a = {{ sha256 = "{DIGEST}", requests_per_s = nan }}'.encode(), "a.requests_per_s: "),
        (f'a = {{ sha256 = "{DIGEST}", concurrent_requests = 0 }}'.encode(), "equal to 1; given: 0"),
        (f'a = {{ sha256 = "{DIGEST}", requests_per_s = true }}'.encode(), "a.requests_per_s: "),
        (f'a = {{ sha256 = "{DIGEST}", concurrent_requests = "3" }}'.encode(), "a.concurrent_requests: "),
        (f'"a b" = {{ sha256 = "{DIGEST}" }}'.encode(), "a b: "),
        (f'a = {{ sha256 = "{DIGEST}" }}\na = {{ sha256 = "{DIGEST}" }}'.encode(), "not TOML"),
        (f'a = {{ sha256 = "{DIGEST}" }}\nb = {{ sha256 = "{DIGEST}" }}'.encode(), "a and b are the same key"),
    ],
)
def test_a_wrong_file_is_one_error_that_shows_no_key(content: bytes, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        api_keys.parse(content, "keys.toml")
    assert str(caught.value).startswith("keys.toml: ")
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "5318008" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, "a.b"])
def test_a_name_is_short_and_plain(name: str) -> None:
    with pytest.raises(SettingsError):
        api_keys.line_of(name, api_keys.entry_of("k"))
