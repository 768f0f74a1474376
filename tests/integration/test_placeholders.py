"""Names and placeholders in a corpus, by the default model: they stay, or the answers name them."""

from pathlib import Path

import pytest

from bench.cli import main
from tests.server_process import BUNDLE

PAIRS = [
    ("Tom is here.", "Tom ist hier."),
    ("I know Tom very well.", "Ich kenne Tom sehr gut."),
    ("Where does Tom live?", "Wo wohnt Tom?"),
    ("Tom has bought a new car.", "Tom hat ein neues Auto gekauft."),
    ("Yesterday I met Tom in the city.", "Gestern habe ich Tom in der Stadt getroffen."),
    ("Tom does not speak French.", "Tom spricht kein Französisch."),
    ("We are waiting for Tom.", "Wir warten auf Tom."),
    ("Did you see Tom today?", "Hast du Tom heute gesehen?"),
    ("Tom and his sister are at school.", "Tom und seine Schwester sind in der Schule."),
    ("I think that Tom is right.", "Ich glaube, dass Tom recht hat."),
]


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_what_is_kept_is_in_the_translations_and_nothing_is_missing_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    assert main(["placeholders", "--data", str(data)]) == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:2] for row in rows] == [
        [what, way]
        for what in ("names", "placeholders", *(f"{count} placeholders" for count in (2, 4, 5, 6, 8)))
        for way in ("as it is", "kept")
    ]
    for what, way, sentences, once, _, _, silent, _ in rows:
        if way == "kept":
            assert int(sentences) == len(PAIRS)
            # For eight, a sentence may have fewer stand-ins: one of them is in an address.
            assert float(once.removesuffix("%")) >= (90 if what == "8 placeholders" else 100)
            assert silent == "0"


@pytest.mark.parametrize("content", ["no pair\n", "Good morning.\tGuten Morgen.\n"])
def test_a_file_without_such_sentences_is_refused_in_one_line(tmp_path: Path, capsys, content: str) -> None:
    data = tmp_path / "data.tsv"
    data.write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["placeholders", "--data", str(data)])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
