"""Models of Marian in NumPy, one sentence at a time: in fp32, or in bytes as Firefox multiplies.

Written from Marian's sources (src/models/transformer.h, src/rnn/cells.h, src/tensors/cpu/intgemm_interface.h), by
Marian's names of weights; shares nothing with `model/`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.marian_bin import is_quantized

Array = NDArray[Any]
EOS, UNKNOWN = 0, 1
_EPSILON = np.float32(1e-6)


def exact(inputs: Array, levels: Array) -> Array:
    """Multiply whole numbers [rows, inputs] and [inputs, outputs]; sums below 2^53 are exact."""
    return (inputs.astype(np.float64) @ levels.astype(np.float64)).astype(np.int64)


def saturating(inputs: Array, levels: Array) -> Array:
    """Multiply as processors without VNNI do: the sum of each two neighbouring inputs is clipped to 16 bits."""
    unsigned, levels = inputs.astype(np.int32), levels.astype(np.int32)
    products = unsigned[:, 0::2, None] * levels[0::2] + unsigned[:, 1::2, None] * levels[1::2]
    return products.clip(-(2**15), 2**15 - 1).sum(axis=1)  # type: ignore[no-any-return]


class Student:
    """The network as Marian computes it.

    Attributes:
        largest: of each matrix, the largest absolute input of each product so far.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        settings: Mapping[str, Any],
        factors: Mapping[str, float] | None = None,
        product: Callable[[Array, Array], Array] = exact,
    ) -> None:
        """Take weights.

        Args:
            weights: in fp32.
            settings: what the model says of itself.
            factors: by which the inputs of each matrix are multiplied before they are rounded; without, all is fp32.
            product: of whole numbers.
        """
        self.settings, self.factors, self.product = settings, factors, product
        self.recurs = settings["transformer-decoder-autoreg"] == "rnn"
        self.largest: dict[str, list[float]] = defaultdict(list)
        self.weights = dict(weights)
        if factors is not None:
            self.scales = {name: np.float32(127 / np.abs(w).max()) for name, w in weights.items() if is_quantized(name)}
            self.levels = {
                name: np.clip(np.rint(weights[name] * scale), -127, 127) for name, scale in self.scales.items()
            }
            self.weights |= {
                name: (self.levels[name] / scale).astype(np.float32) for name, scale in self.scales.items()
            }
        self.source, self.target = ("Wemb", "Wemb") if "Wemb" in weights else ("encoder_Wemb", "decoder_Wemb")

    def multiply(self, states: Array, name: str, bias: Array | float = 0.0) -> Array:
        """Multiply states [rows, inputs] by a matrix; that of the target's embeddings is [outputs, inputs]."""
        self.largest[name].append(float(np.abs(states).max()))
        if self.factors is None:
            matrix = self.weights[name]
            return states @ (matrix.T if name == self.target else matrix) + bias  # type: ignore[no-any-return]
        levels, factor = self.levels[name], np.float32(self.factors[name])
        levels = levels.T if name == self.target else levels
        unit = np.float32(1) / (factor * self.scales[name])
        # Inputs are 127 more than they should be; the bias makes up for it. Roundings are those of Firefox's engine.
        shift, plus = levels.sum(axis=0).astype(np.float32), np.float32(127)
        total = self.product(np.clip(np.rint(states * factor), -127, 127) + 127, levels).astype(np.float32)
        return total * unit + (bias - shift * (plus * unit))  # type: ignore[no-any-return]

    def affine(self, states: Array, name: str, part: str) -> Array:
        """Compute x W + b."""
        return self.multiply(states, f"{name}_W{part}", self.weights[f"{name}_b{part}"])

    def norm(self, states: Array, name: str) -> Array:
        """Normalize over the width."""
        centred = states - states.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)
        return self.weights[f"{name}_ln_scale"] * centred / deviation + self.weights[f"{name}_ln_bias"]  # type: ignore[no-any-return]

    def embed(self, rows: Array, first: int = 0) -> Array:
        """Scale rows of embeddings, and add positions from `first` on: all sines, then all cosines."""
        half = rows.shape[1] // 2
        frequencies = np.exp(np.arange(half) * -(np.log(10000.0) / (half - 1)))
        angles = np.arange(first, first + len(rows))[:, None] * frequencies
        positions = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        return (np.sqrt(rows.shape[1]) * rows + positions).astype(np.float32)

    def attend(self, states: Array, keys: Array, values: Array, name: str) -> Array:
        """Attend with all heads, and project."""
        heads, parts = self.settings["transformer-heads"], []
        query = self.affine(states, name, "q")
        for q, k, v in zip(*(np.split(each, heads, axis=-1) for each in (query, keys, values)), strict=True):
            scores = q @ k.T / np.sqrt(np.float32(q.shape[-1]))
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            parts.append(weights / weights.sum(axis=-1, keepdims=True) @ v)
        return self.affine(np.concatenate(parts, axis=-1), name, "o")

    def feed_forward(self, states: Array, name: str) -> Array:
        """Two products with a ReLU between, residual and norm."""
        update = self.affine(np.maximum(self.affine(states, f"{name}_ffn", "1"), 0), f"{name}_ffn", "2")
        return self.norm(states + update, f"{name}_ffn_ffn")

    def encode(self, source: Sequence[int]) -> list[tuple[Array, Array]]:
        """Encode ids that end with EOS: keys and values of every decoder layer."""
        states = self.embed(self.weights[self.source][list(source)])
        for number in range(1, self.settings["enc-depth"] + 1):
            own = f"encoder_l{number}_self"
            keys, values = self.affine(states, own, "k"), self.affine(states, own, "v")
            states = self.norm(states + self.attend(states, keys, values, own), f"{own}_Wo")
            states = self.feed_forward(states, f"encoder_l{number}")
        names = [f"decoder_l{number}_context" for number in range(1, self.settings["dec-depth"] + 1)]
        return [(self.affine(states, name, "k"), self.affine(states, name, "v")) for name in names]

    def translate(self, source: Sequence[int], limit: int, candidates: Collection[int] | None = None) -> list[int]:
        """Decode greedily, at most `limit` ids, of the candidates if there are any; without EOS."""
        memory, cells, found = self.encode(source), self.new_cells(), list[int]()
        rows = self.weights[self.target]
        barred = np.zeros(len(rows), bool) if candidates is None else ~np.isin(np.arange(len(rows)), list(candidates))
        barred[UNKNOWN] = True
        while len(found) < limit:
            last = rows[found[-1:]] if found else np.zeros_like(rows[:1])
            logits = self.step(self.embed(last, len(found)), memory, cells)
            if (id_ := int(np.where(barred, -np.inf, logits).argmax())) == EOS:
                break
            found.append(id_)
        return found

    def new_cells(self) -> list[Array]:
        """Make what the decoder keeps of the target, layer by layer: a state, or keys and values of no position."""
        width = self.settings["dim-emb"]
        shape = (1, width) if self.recurs else (2, 0, width)
        return [np.zeros(shape, np.float32) for _ in range(self.settings["dec-depth"])]

    def step(self, states: Array, memory: Sequence[tuple[Array, Array]], cells: list[Array]) -> Array:
        """Compute the logits that follow one position; the cells, one a layer, go on."""
        for number, (keys, values) in enumerate(memory, start=1):
            name = f"decoder_l{number}"
            if self.recurs:
                forget = 1 / (1 + np.exp(-self.affine(states, f"{name}_rnn", "f")))
                cell = forget * cells[number - 1] + (1 - forget) * self.multiply(states, f"{name}_rnn_W")
                states = self.norm(states + np.maximum(cell, 0), f"{name}_rnn_ffn")
            else:
                own = f"{name}_self"
                new = np.stack([self.affine(states, own, "k"), self.affine(states, own, "v")])
                cell = np.concatenate([cells[number - 1], new], axis=1)
                states = self.norm(states + self.attend(states, *cell, own), f"{own}_Wo")
            cells[number - 1] = cell
            update = self.attend(states, keys, values, f"{name}_context")
            states = self.feed_forward(self.norm(states + update, f"{name}_context_Wo"), name)
        return self.multiply(states, self.target, self.weights["decoder_ff_logit_out_b"])[0]  # type: ignore[no-any-return]


def input_factors(student: Student, sources: Sequence[Sequence[int]], limit: int) -> dict[str, float]:
    """Measure by which factor the inputs of each matrix fill a byte, as the training pipeline of Firefox does."""
    for source in sources:
        student.translate(source, limit)
    return {name: float(127 / (np.mean(found) + 1.1 * np.std(found))) for name, found in student.largest.items()}
