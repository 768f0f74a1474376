"""The output layer over candidates: the numbers of the whole one, for the candidates of each segment alone."""

from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from dragoman.bundle import SHORTLIST, Bundle, sha256
from dragoman.errors import BundleError
from dragoman.language_marks import Languages
from dragoman.shortlist import Shortlist
from export.parameters import open_checkpoint
from export.write import Target, manifest_of, shortlisted, write_bundle
from model.importing.marian_bin import MarianBin
from model.importing.run import import_folder
from plugins.offline.engine import OfflineEngine
from service.constraints import Constraints
from service.decode import Decode
from service.engine.graphs import open_graphs
from service.engine.runner import Runner
from service.engine.step import Move
from service.options import SCORING, Decoding
from tests import marian_bin, synthetic
from tests.hugging_face_files import sentences
from tests.marian_bin import Files, shortlist
from tests.peers.student import EOS, Student

pytestmark = pytest.mark.torch

SOURCES = [[5, 2], [2], [*range(10, 30), 2], [5, 77, 300, 2]]
LIMIT = 12


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    from tests import synthetic_model  # here: it imports torch

    return synthetic_model.make_checkpoint(listed=True, **synthetic_model.RECURRENT)


@pytest.fixture(scope="module", params=["fp32", "int8"])
def bundle(request: pytest.FixtureRequest, checkpoint: Path) -> Bundle:
    from tests import synthetic_model

    return synthetic_model.make_bundle(checkpoint, request.param).bundle


def candidates(bundle: Bundle, source: list[int], given: tuple[int, ...] = ()) -> list[int]:
    found = Shortlist(bundle.read(SHORTLIST), bundle.path / SHORTLIST)
    return found.candidates(source, bundle.manifest.vocabulary_size, joint=True, given=given).tolist()


def runner(bundle: Bundle, *, shortlist: bool) -> Runner:
    filled = Runner(bundle.manifest, *open_graphs(bundle, "cpu", shortlist=shortlist), len(SOURCES))
    for slot, (source, memory) in enumerate(zip(SOURCES, filled.encode(SOURCES), strict=True)):
        assert memory is not None
        filled.fill(slot, Decode(source, LIMIT), memory)
    return filled


def test_logits_are_those_of_the_whole_layer_and_no_others_are_possible(bundle: Bundle) -> None:
    whole, narrow = runner(bundle, shortlist=False), runner(bundle, shortlist=True)
    whole.run(len(SOURCES))
    ids = narrow.run(len(SOURCES))
    for slot, source in enumerate(SOURCES):
        listed = candidates(bundle, source)
        expected, actual = whole.table.logits_of(slot), narrow.table.logits_of(slot)
        assert 0 < len(listed) < len(expected)
        if bundle.manifest.precision == "int8":
            np.testing.assert_array_equal(actual[listed], expected[listed])
        else:
            np.testing.assert_allclose(actual[listed], expected[listed], atol=1e-5)
        assert np.isneginf(np.delete(actual, listed)).all()
        assert ids[slot] == actual.argmax()


def test_a_slot_that_moves_takes_its_candidates_along(bundle: Bundle) -> None:
    moved, stayed = runner(bundle, shortlist=True), runner(bundle, shortlist=True)
    for each in (moved, stayed):
        each.run(len(SOURCES))
    moved.apply([Move(3, 1)])
    for each in (moved, stayed):
        each.run(len(SOURCES))
    np.testing.assert_array_equal(moved.table.logits_of(1), stayed.table.logits_of(3))


def decoded(bundle: Bundle, *decodes: Decode, shortlist: bool = True) -> list[list[int]]:
    engine = OfflineEngine(bundle, threads=1, slots=4, shortlist=shortlist)
    engine.decode(decodes)
    engine.close()
    return [decode.target_ids for decode in decodes]


def test_without_it_the_whole_vocabulary_is_chosen_from(bundle: Bundle, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    copytree(bundle.path, bare)
    files = {name: hashed for name, hashed in bundle.manifest.files.items() if name != SHORTLIST}
    (bare / "bundle.json").write_text(bundle.manifest.model_copy(update={"files": files}).model_dump_json())
    assert not Bundle.open(bare).has_shortlist
    expected = decoded(Bundle.open(bare), *(Decode(source, LIMIT) for source in SOURCES))
    assert decoded(bundle, *(Decode(source, LIMIT) for source in SOURCES), shortlist=False) == expected
    assert decoded(bundle, *(Decode(source, LIMIT) for source in SOURCES)) != expected


def outside(bundle: Bundle, source: list[int]) -> tuple[int, ...]:
    listed = candidates(bundle, source)
    return tuple(id_ for id_ in range(100, 400) if id_ not in listed)[:3]


def test_what_the_caller_names_is_possible(bundle: Bundle) -> None:
    source = SOURCES[0]
    given = outside(bundle, source)
    scored = Decode(source, LIMIT, decoding=SCORING, scored_ids=(*given, bundle.manifest.eos_id))
    begun = Decode(source, LIMIT, prefix_ids=given)
    term = Constraints(((given[:1],),), frozenset(range(400)))
    searched = Decode(source, LIMIT, decoding=Decoding(beam_size=2), constraints=term)
    decoded(bundle, scored, begun, searched)
    assert np.isfinite(scored.token_log_probabilities).all()
    assert begun.target_ids[: len(given)] == list(given)
    assert given[0] in searched.target_ids
    assert np.isfinite(searched.log_probability)


def test_probabilities_are_shared_by_the_candidates_alone(bundle: Bundle) -> None:
    source = SOURCES[0]
    found = Decode(source, LIMIT, decoding=Decoding.of(log_probability=True))
    whole = runner(bundle, shortlist=False)
    whole.run(len(SOURCES))
    [ids] = decoded(bundle, found)
    again = Decode(source, LIMIT, decoding=SCORING, scored_ids=(*ids, bundle.manifest.eos_id)[:LIMIT])
    decoded(bundle, again)
    logits = whole.table.logits_of(0)[candidates(bundle, source)].astype(np.float64)
    expected = logits.max() - np.logaddexp.reduce(logits)
    assert again.token_log_probabilities[0] == pytest.approx(expected, abs=1e-4)
    assert found.log_probability == pytest.approx(sum(again.token_log_probabilities[: found.decoded_tokens]), abs=1e-5)


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "bytes are too few": lambda content: content[:20],
    "has the id 400": lambda content: shortlist([[400]] * synthetic.VOCABULARY),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_shortlist_is_refused(said: str, bundle: Bundle, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    copytree(bundle.path, folder)
    (folder / SHORTLIST).write_bytes(BROKEN[said](bundle.read(SHORTLIST)))
    files = {**bundle.manifest.files, SHORTLIST: sha256(folder / SHORTLIST)}
    (folder / "bundle.json").write_text(bundle.manifest.model_copy(update={"files": files}).model_dump_json())
    with pytest.raises(BundleError, match=said):
        open_graphs(Bundle.open(folder), "cpu")


def as_bundle(files: Files, folder: Path) -> Bundle:
    import_folder(files.folder, folder / "checkpoint")
    parameters, _ = open_checkpoint(folder / "checkpoint")
    target = Target("student", Languages.pair("en", "de"), "fp32", 64, 64)
    manifest = manifest_of(parameters, folder / "checkpoint", target)
    (folder / "bundle").mkdir()
    write_bundle(parameters, {}, manifest, folder / "checkpoint", folder / "bundle")
    return Bundle.open(folder / "bundle")


@pytest.mark.parametrize("apart", [False, True])
def test_a_student_of_firefox_decodes_what_marian_does_of_a_sentence_alone(apart: bool, tmp_path: Path) -> None:
    """With two vocabularies, the source pieces are no candidates."""
    files = marian_bin.write_folder(tmp_path / "files", apart=apart, with_shortlist=True)
    content = next(files.folder.glob("lex.*"))
    listed = Shortlist(content.read_bytes(), content)
    stored = MarianBin(next(files.folder.glob("model.*.bin")))
    student = Student({name: stored.read(name) for name in files.weights}, files.settings)
    sources = [[*files.source.encode(text), EOS] for text in sentences()[0][:8]]
    found = decoded(as_bundle(files, tmp_path), *(Decode(source, 9) for source in sources))
    for source, ids in zip(sources, found, strict=True):
        allowed = listed.candidates(source, len(files.target), joint=not apart)
        assert ids == student.translate(source, 9, allowed.tolist())


def test_a_bundle_for_gpus_has_none(checkpoint: Path) -> None:
    assert shortlisted(checkpoint, "int8")
    assert not shortlisted(checkpoint, "fp16")
