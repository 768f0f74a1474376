from random import Random

from hypothesis import given
from hypothesis import strategies as st

from model.augmentation import spelling


def test_without_stop() -> None:
    assert spelling.without_stop(("It rains.", "Es regnet.")) == ("It rains", "Es regnet")
    for pair in (("It rains.", "Es regnet"), ("Is it?", "Ist es?"), (".", "."), ("...", "Es.")):
        assert spelling.without_stop(pair) == pair


def test_cases_leave_what_programs_read() -> None:
    pair = ("Hello {Name}, the Site is https://X.org/a at /Tmp.", "Hallo {Name}, die große Seite ist https://X.org/a.")
    assert spelling.lower(pair) == ("hello {Name}, the site is https://X.org/a at /Tmp.", pair[1])
    assert spelling.title(pair)[0] == "Hello {Name}, The Site Is https://X.org/a At /Tmp."
    assert spelling.caps(pair) == (
        "HELLO {Name}, THE SITE IS https://X.org/a AT /Tmp.",
        "HALLO {Name}, DIE GROSSE SEITE IST https://X.org/a.",
    )


@given(seed=st.integers())
def test_an_error_is_made_in_one_word_that_the_target_lacks(seed: int) -> None:
    words = ["Please", "open", "Boston", "when", "the", "weather", "is", "bad"]
    source, target = spelling.typos((" ".join(words), "Bitte Boston öffnen"), Random(seed))
    assert target == "Bitte Boston öffnen"
    changed = [(old, new) for old, new in zip(words, source.split(), strict=True) if old != new]
    assert len(changed) <= 1
    for old, new in changed:
        assert old in {"Please", "open", "when", "weather"}
        assert new[0] == old[0]
        assert abs(len(new) - len(old)) <= 1


def test_two_errors_in_a_long_sentence() -> None:
    text = "these words are many more than twelve which makes another error much more likely"
    changed = [spelling.typos((text, ""), Random(seed))[0].split() for seed in range(50)]
    assert max(sum(a != b for a, b in zip(text.split(), each, strict=True)) for each in changed) == 2
    assert spelling.typos(("a bad 123 x", "y"), Random(1)) == ("a bad 123 x", "y")
