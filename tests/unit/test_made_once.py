"""Models of tests are made again whenever a file changes that decides them."""

from tests.made_once import INNOCENT, ROOT, deciding, reached


def test_every_file_that_makes_a_model_decides() -> None:
    written = {"model/transformer.py", "model/importing/run.py", "export/write.py", "export/quantize.py"}
    read = {"dragoman/tokenizer.py", "service/runtime/weights.py", "tests/marian_npz.py", "tests/data/en-de.tsv"}
    assert written | read <= set(deciding())
    assert [file for file in deciding() if not (ROOT / file).is_file()] == []


def test_whoever_makes_a_model_is_known() -> None:
    line = "from tests.made_once import made_once\n"
    makers = {file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("*.py") if line in file.read_text()}
    assert makers <= set(deciding())


def test_training_and_engines_decide_nothing() -> None:
    assert not {"model/train.py", "export/cli.py", "service/engine/batch.py"} & set(deciding())


def test_what_is_innocent_is_imported() -> None:
    assert reached() >= INNOCENT
