import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.roofline import peaks as roofline_peaks
from bench.roofline.command import WARM_UP_ROUNDS, Operator, Profile, Shape, operator_rows, summarize, total_rows
from bench.roofline.costs import Array, Cost, Keys, cost
from dragoman.bundle import Bundle

BUNDLE = Path(__file__).parents[4] / "models" / "en-de" / "bundle"
KEYS = Keys(own=5.5, source=10)
PEAKS: Any = {"int8_product": 100.0, "fp32_product": 10.0, "copy": 20.0}


def floats(*shape: int) -> Array:
    return Array("float", shape)


def test_int8_product_counts_its_packed_weights_as_bytes() -> None:
    inputs = [Array("uint8", (32, 1, 256)), floats(), floats(768)]
    made = cost("MatMulIntegerToFloat", inputs, [floats(32, 1, 768)], KEYS)
    assert made == Cost(
        "MatMulIntegerToFloat 32x256x768",
        "products",
        "int8_product",
        multiply_adds=32 * 256 * 768,
        bytes=32 * 256 + 256 * 768 + 4 * 32 * 768,
    )


def test_fp32_product_has_weights_of_four_bytes() -> None:
    made = cost("MatMul", [floats(7, 256), floats(256, 100)], [floats(7, 100)], KEYS)
    assert (made.peak, made.multiply_adds) == ("fp32_product", 7 * 256 * 100)
    assert made.bytes == 4 * (7 * 256 + 256 * 100 + 7 * 100)


def test_own_attention_reads_valid_positions_and_writes_one() -> None:
    cache = floats(32, 4, 256, 64)
    inputs = [floats(32, 1, 768), cache, cache, Array("int32", (32,)), Array("int32", ())]
    made = cost("GroupQueryAttention", inputs, [floats(32, 1, 256), cache, cache], KEYS)
    assert (made.label, made.group) == ("GroupQueryAttention, own", "attentions")
    assert made.multiply_adds == 2 * 32 * 5.5 * 256
    assert made.bytes == 4 * (32 * 768 + 32 * 256 + 2 * 32 * 5.5 * 256 + 2 * 32 * 256)


def test_attention_to_the_source_writes_no_keys() -> None:
    memory = floats(32, 4, 128, 64)
    inputs = [floats(32, 1, 256), floats(32, 0, 256), floats(32, 0, 256), memory, memory, Array("int32", (32,))]
    made = cost("GroupQueryAttention", inputs, [floats(32, 1, 256)], KEYS)
    assert made.label == "GroupQueryAttention, source"
    assert made.multiply_adds == 2 * 32 * 10 * 256
    assert made.bytes == 4 * (2 * 32 * 256 + 2 * 32 * 10 * 256)


def test_attention_of_the_encoder_has_every_position_ask() -> None:
    made = cost("GroupQueryAttention", [floats(8, 10, 768)], [floats(8, 10, 256)], Keys(10, 10))
    assert made.multiply_adds == 2 * 8 * 10 * 10 * 256
    assert made.bytes == 4 * 8 * 10 * (768 + 256)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("Add", 3 * 4000), ("Gather", 2 * 4000), ("Slice", 2 * 4000), ("Reshape", 0), ("LayerNormalization", 3 * 4000)],
)
def test_other_operators_move_bytes(operator: str, expected: int) -> None:
    made = cost(operator, [floats(1000), floats(1000)], [floats(1000)], KEYS)
    assert (made.group, made.multiply_adds, made.bytes) == ("other", 0.0, expected)


def test_least_time_is_that_of_what_takes_longer() -> None:
    product = Cost("p", "products", "int8_product", multiply_adds=1000.0, bytes=20.0)
    assert product.least_s(PEAKS) == 10.0
    assert replace(product, bytes=400.0).least_s(PEAKS) == 20.0


def node(operator: str, us: int, shape: list[int]) -> dict[str, Any]:
    shapes = [{"float": shape}]
    arguments = {"op_name": operator, "input_type_shape": shapes, "output_type_shape": shapes}
    return {"cat": "Node", "name": f"{operator}_kernel_time", "dur": us, "args": arguments}


def test_summary_groups_alike_operators() -> None:
    shape = Shape(rows=1, source=1, target=1, runs=4)
    events: list[dict[str, Any]] = [{"cat": "Session", "name": "model_loading_uri", "dur": 9}]
    for run in range(shape.rounds):
        slow = 1000 if run < WARM_UP_ROUNDS else 0
        events += [node("Add", 10 + slow, [4]), node("Add", 20, [8]), node("Relu", 5, [8])]
        events.append({"cat": "Session", "name": "model_run", "dur": 99})
    operators = summarize(events, KEYS, shape)
    # Half a microsecond is added back to each.
    assert [(each.cost.label, each.calls, each.us) for each in operators] == [("Add", 2, 31.0), ("Relu", 1, 5.5)]
    assert operators[0].cost.bytes == 2 * 4 * (4 + 8)


def test_typical_run_leaves_out_what_was_disturbed() -> None:
    shape = Shape(rows=1, source=1, target=5, runs=40)
    rounds = [[9.0, 1.0, 2.0, 3.0, 4.0] for _ in range(shape.rounds)]
    rounds[0] = rounds[1] = [500.0] * 5
    for disturbed in rounds[3:7]:
        disturbed[2] = 900.0
    assert shape.typical([us for each in rounds for us in each]) == pytest.approx((9 + 1 + 2 + 3 + 4) / 5)


def test_rows_add_up() -> None:
    product = Cost("product", "products", "int8_product", multiply_adds=6e-3, bytes=0.0)
    other = Cost("Add", "other", "fp32_product", multiply_adds=0.0, bytes=4e-4)
    profile = Profile("decoder", wall_us=200.0, operators=[Operator(product, 2, 120.0), Operator(other, 1, 40.0)])
    assert [(row["part"], row["us"], row["share"]) for row in total_rows(profile, PEAKS)] == [
        ("products", 120.0, "60.0%"),
        ("attentions", 0, "0.0%"),
        ("other operators", 40.0, "20.0%"),
        ("outside operators", 40.0, "20.0%"),
        ("all", 200.0, "100.0%"),
    ]
    assert [row["least us"] for row in total_rows(profile, PEAKS)] == pytest.approx([60, 0, 20, 0, 80])
    first, second = operator_rows(profile, PEAKS)
    assert (first["share"], first["of peak"]) == ("60.0%", "50%")
    assert first["G/s"] * 1e9 == pytest.approx(50.0)
    assert (second["GB/s"] * 1e9, second["of peak"]) == (pytest.approx(10.0), "50%")


def test_sources_are_of_one_length_and_end() -> None:
    bundle = Bundle.open(BUNDLE)
    sources = Shape(rows=3, source=7, target=1, runs=1).sentences(bundle).sources
    assert [len(source) for source in sources] == [7, 7, 7]
    assert {source[-1] for source in sources} == {bundle.manifest.eos_id}


def test_command_measures_the_default_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(roofline_peaks, "REPEATS", 1)
    out = tmp_path / "roofline.json"
    sizes = ["--rows", "4", "--source", "6", "--target", "3", "--runs", "6"]
    assert main(["roofline", "--bundle", str(BUNDLE), *sizes, "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "| decoder | outside operators |" in text
    report = json.loads(out.read_text())
    assert min(report["peaks, G multiply-adds/s"].values()) > 0
    manifest = Bundle.open(BUNDLE).manifest
    decoder = [row for row in report["operators"] if row["graph"] == "decoder"]
    # Products of a step: those of the layers, known from the architecture, and the output's.
    width = manifest.d_model
    layer = (3 + 1 + 1 + 1) * width * width + 2 * width * 1024
    products = 4 * (manifest.decoder_layers * layer + width * manifest.vocabulary_size)
    attentions = 4 * manifest.decoder_layers * 2 * width * (2.0 + 6.0)
    assert sum(row["M multiply-adds"] for row in decoder) * 1e6 == pytest.approx(products + attentions)
    assert decoder[0]["us"] >= decoder[-1]["us"] > 0
    assert {row["part"]: row["us"] for row in report["whole"] if row["graph"] == "encoder"}["products"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "0"], "--rows: must be at least 1, not 0"),
        (["--source", "100000"], "--source: must be at most 128, not 100000"),
        (["--bundle", "nowhere"], "nowhere"),
    ],
)
def test_bad_arguments_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = arguments if "--bundle" in arguments else ["--bundle", str(BUNDLE), *arguments]
    with pytest.raises(SystemExit) as exit_info:
        main(["roofline", *arguments])
    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
