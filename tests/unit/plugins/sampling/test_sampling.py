"""Drawn tokens have the probabilities that the options say, and are within the bounds that they set."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from plugins.sampling.sampling import draw, draws
from service.options import MAX_TEMPERATURE, MIN_TEMPERATURE, Sampling

DRAWS = 8_000
# Some equal, some out of reach, and one that the model never says.
LOGITS = np.array([1.0, 0.5, 2.0, -1.0, 2.0, 0.0, 0.5, -30.0, 1.5, -1e9], np.float32)

logits_ = arrays(np.float32, st.integers(1, 40), elements=st.sampled_from([-1e9, -3.0, -0.5, 0.0, 0.25, 1.0, 2.0, 7.5]))
temperatures = st.floats(MIN_TEMPERATURE, MAX_TEMPERATURE)
tops = st.floats(1e-6, 1.0)
chances = st.floats(0, 1, exclude_max=True)
samplings = st.builds(Sampling, seed=st.just(0), temperature=temperatures, top_k=st.integers(0, 50), top_p=tops)


def in_order(logits: NDArray[np.float32]) -> list[int]:
    """Ids by descending logit, of equals the smaller first."""
    return sorted(range(len(logits)), key=lambda token: (-logits[token], token))


def probabilities(logits: NDArray[np.float32], sampling: Sampling) -> dict[int, float]:
    """What is kept, in plain Python; the filters follow each other as in `generate`."""
    best = max(map(float, logits))
    weights = {token: math.exp((float(logits[token]) - best) / sampling.temperature) for token in in_order(logits)}
    kept = list(weights)[: sampling.top_k or None]
    total = sum(weights[token] for token in kept)
    nucleus, reached = [], 0.0
    for token in kept:
        if reached >= sampling.top_p * total and sampling.top_p < 1:
            break
        nucleus.append(token)
        reached += weights[token]
    return {token: weights[token] / reached for token in nucleus}


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(1),
        Sampling(2, temperature=0.5),
        Sampling(3, temperature=3.0),
        Sampling(4, top_k=3),
        Sampling(5, top_k=5, temperature=2.0),
        Sampling(6, top_p=0.75),
        Sampling(7, temperature=1.7, top_k=6, top_p=0.9),
    ],
)
def test_tokens_are_drawn_as_often_as_they_are_probable(sampling: Sampling) -> None:
    chances = draws(sampling)
    drawn = [draw(LOGITS, sampling, chances.random()) for _ in range(DRAWS)]
    expected = probabilities(LOGITS, sampling)
    assert set(drawn) <= expected.keys()
    for token, probability in expected.items():
        # Five standard deviations; the seeds are fixed.
        error = 5 * math.sqrt(probability * (1 - probability) / DRAWS)
        assert drawn.count(token) / DRAWS == pytest.approx(probability, abs=error)


@given(logits=logits_, sampling=samplings, chance=chances)
def test_a_token_is_where_its_probability_lies_on_the_range_of_chances(logits, sampling: Sampling, chance) -> None:
    token = draw(logits, sampling, chance)
    # Where tokens have exactly `top_p` together, rounding may keep one more.
    kept = [sampling.top_p, min(1.0, sampling.top_p + 1e-9)]
    ranges = [place_of(token, logits, sampling._replace(top_p=top_p)) for top_p in kept]
    assert any(start - 1e-6 <= chance <= stop + 1e-6 for start, stop in ranges)


def place_of(token: int, logits: np.ndarray, sampling: Sampling) -> tuple[float, float]:
    begin = 0.0
    for each, probability in probabilities(logits, sampling).items():
        if each == token:
            return begin, begin + probability
        begin += probability
    return math.inf, -math.inf


def test_what_is_drawn_does_not_change_what_is_kept() -> None:
    """All five are kept, the three last of which are looked at for a larger chance alone."""
    logits = np.log(np.array([0.45, 0.25, 0.1, 0.1, 0.1], np.float32))
    for chance, token in ((0.44, 0), (0.46, 1), (0.49, 1), (0.69, 1), (0.71, 2), (0.99, 4)):
        assert draw(logits, Sampling(0, top_p=0.95), chance) == token


@given(logits=logits_, temperature=temperatures, top_p=tops, chance=chances)
def test_one_token_to_draw_from_is_the_greedy_one(logits, temperature: float, top_p: float, chance: float) -> None:
    sampling = Sampling(0, temperature=temperature, top_k=1, top_p=top_p)
    assert draw(logits, sampling, chance) == logits.argmax()


@given(logits=logits_, sampling=samplings, chance=chances)
def test_a_token_is_among_the_best_and_within_the_mass(logits, sampling: Sampling, chance: float) -> None:
    token = draw(logits, sampling, chance)
    order = in_order(logits)
    assert order.index(token) < (sampling.top_k or len(logits))
    weights = np.exp((logits.astype(np.float64) - logits.max()) / sampling.temperature)[order[: sampling.top_k or None]]
    before = weights[: order.index(token)].sum()
    assert before <= sampling.top_p * weights.sum() * (1 + 1e-9)


@given(logits=logits_, chance=st.floats(0, 0.999999))
def test_the_lowest_temperature_is_greedy_where_one_token_is_best(logits, chance: float) -> None:
    token = draw(logits, Sampling(0, temperature=MIN_TEMPERATURE), chance)
    assert logits[token] == logits.max()


@given(logits=logits_, sampling=samplings)
def test_no_chance_is_too_small_or_too_large(logits, sampling: Sampling) -> None:
    assert draw(logits, sampling, 0.0) == logits.argmax()
    assert logits[draw(logits, sampling, math.nextafter(1, 0))] > -1e9 or logits.max() == -1e9


def test_draws_depend_on_the_seed_and_on_the_segment_alone() -> None:
    firsts = {draws(Sampling(seed, segment=segment)).random() for seed in (0, 1, 2**32 - 1) for segment in range(3)}
    assert len(firsts) == 9
    assert draws(Sampling(7, 0.5, 3, 0.5, segment=2)).random() == draws(Sampling(7, segment=2)).random()
    # The same in every version of Python: seeds that were told stay good.
    assert draws(Sampling(7)).random() == random.Random(7).random() == 0.32383276483316237
