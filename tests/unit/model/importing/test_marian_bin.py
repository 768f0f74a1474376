"""Marian's binary files: what was written is read, and anything else is refused with one error."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.importing.marian_bin import MarianBin
from tests import marian_bin
from tests.marian_bin import FLOAT32, INTGEMM8, packed

DRAW = np.random.default_rng(0)
WEIGHTS = {
    "Wemb": DRAW.normal(size=(9, 4)),
    "decoder_l1_rnn_W": DRAW.normal(size=(4, 4)),
    "encoder_l1_ffn_W1": DRAW.normal(size=(4, 6)),
    "encoder_l1_ffn_b1": DRAW.normal(size=(1, 6)),
}
FACTORS = {"encoder_l1_ffn_W1": 21.5, "Wemb": 12.0}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return marian_bin.write(tmp_path / "model.bin", WEIGHTS, {"type": "transformer"}, FACTORS)


def test_what_was_written_is_read(file: Path) -> None:
    content = MarianBin(file)
    assert list(content.names) == [marian_bin.SETTINGS, *WEIGHTS]
    assert content.read(marian_bin.SETTINGS).tobytes() == b"type: transformer\n\0"
    for name, values in WEIGHTS.items():
        read = content.read(name)
        assert content.header(name) == (values.shape, np.float32) == (read.shape, read.dtype)
        # In bytes a number is half a level off at most.
        off = np.abs(values).max() / 127 / 2 if marian_bin.is_quantized(name) else 0
        np.testing.assert_allclose(read, values, rtol=1e-6, atol=1.001 * off)
        assert not (marian_bin.is_quantized(name) and np.allclose(read, values, atol=off / 10))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\2" + bytes(30), "its format is version 2, known is 1"),
        (packed([("W", 0x4102, (2, 2), bytes(99))]), "W is of type 0x4102; supported are fp32, int8 and intgemm8"),
        (packed([("W", FLOAT32, (1,) * 5, bytes(99))]), "W has 5 dimensions"),
        (packed([("W", FLOAT32, (9, 99), bytes(99))]), "W has 256 bytes, too few for its shape"),
        (packed([("W", FLOAT32, (-1, -1), bytes(99))]), "too few for its shape"),
        (packed([("W", INTGEMM8, (2, 2), bytes(99))]), r"W has the shape \(2, 2\) and the scale 0.0"),
        (packed([("W", INTGEMM8, (4,), bytes(4) + np.float32(1).tobytes())]), r"W has the shape \(4,\)"),
        (packed([("\udcff", FLOAT32, (1,), bytes(4))], errors="surrogateescape"), "utf-8"),
    ],
)
def test_refuses(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        MarianBin(tmp_path / "model.bin")


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Cut off anywhere, or with other numbers in its headers."""
    file = tmp_path_factory.mktemp("damaged") / "model.bin"
    content = bytearray(marian_bin.write(file, WEIGHTS, {"type": "transformer"}, FACTORS).read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, 600)) // 4 * 4
        content[at : at + 4] = data.draw(st.sampled_from([b"\xff" * 4, bytes(4), b"\1\0\0\0", b"\0\0\0\x7f"]))
    file.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    try:
        read = MarianBin(file)
    except ValueError:
        return
    for name in read.names:
        assert read.read(name).shape == read.header(name)[0]
