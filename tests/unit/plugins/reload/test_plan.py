from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import AlignmentHeads, Manifest, Provenance
from dragoman.errors import BundleError
from dragoman.language_marks import Languages
from plugins.reload.plan import Origin, gone, plan
from service.registry.folders import check_names, one_name

A, B, C = (Path("models") / name for name in "abc")


def manifest(name: str, version: int = 1) -> Manifest:
    return Manifest(
        name=name,
        languages=Languages.pair("en", "de"),
        precision="int8",
        pad_id=0,
        start_id=1,
        eos_id=2,
        unknown_id=3,
        vocabulary_size=8,
        d_model=8,
        heads=2,
        head_dim=4,
        encoder_layers=1,
        decoder_layers=1,
        max_source_tokens=8,
        max_target_tokens=8,
        alignment=AlignmentHeads(layer=0, heads=(0,)),
        parameters=1,
        provenance=Provenance(checkpoint_sha256="0" * 64),
        files={"encoder.onnx": str(version)},
    )


SERVED = {"x": Origin(A, manifest("x"))}


def test_what_is_served_as_it_lies_there_is_left_alone() -> None:
    todo = plan(SERVED, {A: manifest("x")})
    assert (todo.refuse, todo.load, todo.origins) == ({}, [], {"x": A})


@pytest.mark.parametrize(
    ("found", "load"),
    [
        ({A: manifest("x", 2)}, [A]),
        ({A: manifest("x"), B: manifest("y")}, [B]),
        ({B: manifest("x", 2)}, [B]),
        ({A: manifest("y")}, [A]),
    ],
)
def test_what_is_new_or_different_is_loaded(found: dict[Path, Manifest], load: list[Path]) -> None:
    todo = plan(SERVED, found)
    assert (todo.refuse, todo.load) == ({}, load)


def test_a_bundle_that_moved_needs_no_load() -> None:
    assert plan(SERVED, {B: manifest("x")}) == ({}, [], {"x": B})


def test_of_two_bundles_of_a_name_the_one_that_is_served_goes_on_being() -> None:
    todo = plan(SERVED, {A: manifest("x", 2), B: manifest("x", 3)})
    assert (todo.load, todo.origins) == ([A], {"x": A})
    assert todo.refuse == {B: one_name("x", [A, B])}


def test_what_is_said_of_two_bundles_of_a_name_says_where_they_are_and_what_to_do() -> None:
    expected = (
        "2 bundles are called 'x': models/a, models/b; export one of them with another --name, or give .* --models"
    )
    with pytest.raises(BundleError, match=expected):
        check_names({B: manifest("x", 2), C: manifest("y"), A: manifest("x", 3)})
    check_names({A: manifest("x"), B: manifest("y")})


def test_of_two_new_bundles_of_a_name_none_is_loaded() -> None:
    todo = plan(SERVED, {B: manifest("x", 2), C: manifest("x", 3)})
    assert (todo.load, todo.origins, todo.refuse.keys()) == ([], {}, {B, C})
    assert gone(SERVED, {B: manifest("x", 2), C: manifest("x", 3)}, todo.refuse) == set()


def test_a_model_is_gone_when_nothing_of_it_is_left() -> None:
    assert gone(SERVED, {}, []) == {"x"}
    assert gone(SERVED, {B: manifest("y")}, []) == {"x"}
    assert gone(SERVED, {A: manifest("y")}, []) == {"x"}  # renamed where it lies


def test_a_model_whose_bundle_was_refused_is_not_gone() -> None:
    assert gone(SERVED, {}, [A]) == set()
    assert gone(SERVED, {B: manifest("y")}, {A: "why"}) == set()


names = st.sampled_from("xyz")
manifests = st.builds(manifest, names, st.integers(1, 2))
found_ = st.dictionaries(st.sampled_from([A, B, C]), manifests)


@st.composite
def served_(draw: st.DrawFn) -> dict[str, Origin]:
    paths, count = draw(st.permutations([A, B, C])), draw(st.integers(0, 3))
    return {
        name: Origin(path, manifest(name, draw(st.integers(1, 2))))
        for name, path in list(zip("xyz", paths, strict=True))[:count]
    }


@given(served_(), found_)
def test_every_bundle_is_refused_loaded_or_served_already(
    served: dict[str, Origin], found: dict[Path, Manifest]
) -> None:
    todo = plan(served, found)
    assert set(todo.load) <= set(todo.origins.values())
    assert todo.refuse.keys() | set(todo.origins.values()) == found.keys()
    assert todo.refuse.keys().isdisjoint(todo.origins.values())
    for name, path in todo.origins.items():
        assert found[path].name == name
        assert (path in todo.load) == (name not in served or served[name].manifest != found[path])


@given(served_(), found_)
def test_once_done_there_is_nothing_to_do(served: dict[str, Origin], found: dict[Path, Manifest]) -> None:
    todo = plan(served, found)
    staying = served.keys() - gone(served, found, todo.refuse)
    after = {name: served[name] for name in staying}
    after |= {name: Origin(path, found[path]) for name, path in todo.origins.items()}
    again = plan(after, found)
    assert again.load == []
    assert again.refuse.keys() == todo.refuse.keys()
    assert gone(after, found, again.refuse) == set()
