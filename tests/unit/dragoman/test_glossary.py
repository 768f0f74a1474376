"""Files of terms: what they hold, and what is wrong with them in one line."""

from pathlib import Path

import pytest

from dragoman import DataError, GlossaryEntry, GlossaryFile
from dragoman.glossary import MAX_FILE_BYTES, parse_glossary

TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="{language}"/><body>
<tu><tuv xml:lang="EN-US"><seg>the <bpt i="1">&lt;b></bpt>house</seg></tuv><tuv xml:lang="DE"><seg>Haus</seg></tuv></tu>
<tu><tuv xml:lang="EN-US"><seg>home</seg></tuv><tuv xml:lang="fr"><seg>maison</seg></tuv></tu>
</body></tmx>"""


def test_columns() -> None:
    content = '\ufeffen,de\nhouse, Haus | Hauses \nTom,\n\n"a, b",c,true\nonly\n'.encode()
    assert parse_glossary("terms.csv", content) == GlossaryFile(
        [
            GlossaryEntry("house", ("Haus", "Hauses")),
            GlossaryEntry("Tom"),
            GlossaryEntry("a, b", ("c",), True),
            GlossaryEntry("only"),
        ],
        "en",
        "de",
    )
    assert parse_glossary("terms.csv", b"a;b,\nc;d\n").entries == [GlossaryEntry("a;b"), GlossaryEntry("c;d")]
    assert parse_glossary("terms.TSV", b"a, b\tc\n") == GlossaryFile([GlossaryEntry("a, b", ("c",))])


def test_the_name_of_a_file_says_its_languages() -> None:
    named = parse_glossary("our.terms.en-de-CH.csv", b"en,de\nhouse,Haus\n")
    assert (named.source_language, named.target_language, len(named.entries)) == ("en", "de-CH", 1)
    assert parse_glossary("our-terms.csv", b"house,Haus\n").source_language == ""


def test_two_short_words_are_a_term_where_the_name_says_other_languages() -> None:
    assert parse_glossary("c3.en-de.csv", b"car,kfz\nhouse,Haus\n").entries == [
        GlossaryEntry("car", ("kfz",)),
        GlossaryEntry("house", ("Haus",)),
    ]
    assert parse_glossary("esp.es-en.tsv", b"uno\tdos\n").entries == [GlossaryEntry("uno", ("dos",))]


def test_units() -> None:
    entries = [GlossaryEntry("the <b>house", ("Haus",))]
    assert parse_glossary("terms.tmx", TMX.format(language="en-US").encode()) == GlossaryFile(entries, "en-US", "DE")
    assert parse_glossary("terms.tmx", TMX.format(language="*all*").encode()) == GlossaryFile(entries, "EN-US", "DE")
    empty = TMX.format(language="*all*").replace("<body>", "<body><tu></tu>").encode()
    assert parse_glossary("terms.tmx", empty) == GlossaryFile(entries, "EN-US", "DE")
    french = parse_glossary("terms.en-fr.tmx", TMX.format(language="en").encode())
    assert french == GlossaryFile([GlossaryEntry("home", ("maison",))], "en", "fr")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("terms.txt", b"", "must end with .csv, .tsv, .tmx"),
        ("terms.csv", b"\xff", "must be UTF-8"),
        ("terms.csv", b'a,"b', "line 1: unexpected end of data"),
        ("terms.csv", b"a,b\n,c", "line 2: the source term must have 1 to 256 characters, has 0"),
        ("terms.csv", b"a,b|", "line 1: a target term must have 1 to 256 characters, has 0"),
        ("terms.csv", b"a" * 257, "has 257"),
        ("terms.csv", b"a,b,c,d", "at most 3 columns, has 4"),
        (
            "terms.csv",
            b"a,b,yes",
            "line 1: the third column must be true, false or empty, is 'yes'; forms are separated by '|'",
        ),
        ("terms.csv", b"house;Bude\nhome;Heim", "line 1: columns must be separated by commas, is 'house;Bude'"),
        ("terms.csv", b"\nen\tde\na\tb", r"line 2: columns must be separated by commas, is 'en\tde'"),
        ("terms.tsv", b"en;de\na;b", "line 1: columns must be separated by tabs, is 'en;de'"),
        ("terms.tsv", b"house,Bude\nhome,Heim", "line 1: columns must be separated by tabs, is 'house,Bude'"),
        ("terms.csv", b"a," + b"|".join([b"b"] * 17), "at most 16 forms, has 17"),
        ("terms.csv", b"".join(b"a,b%d|c\n" % number for number in range(16)), "'a' must have at most 16 forms"),
        ("terms.csv", b'"a\nb",c', "no line breaks"),
        ("terms.csv", b"a\n" * 100_001, "at most 100000 terms, has 100001"),
        ("terms.tmx", b"<a/>", "is no TMX: its first element is 'a'"),
        ("terms.tmx", b'<?xml version="1.0" encoding="neo"?><tmx/>', "cannot be decoded: unknown encoding: neo"),
        ("terms.tmx", b"<tmx>", "is no XML"),
        ("terms.tmx", b"<tmx>" + b"<a>" * 40, "nested too deep"),
        ("terms.tmx", b"<tmx><seg>a</seg></tmx>", "outside of all units"),
        ("terms.tmx", b'<!DOCTYPE t [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><tmx>&c;</tmx>', "must declare no entities"),
        (
            "terms.tmx",
            b'<!DOCTYPE t [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]><tmx/>',
            "must declare no entities",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        GlossaryFile.read(file)
    assert why in caught.value.message
    assert str(file) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        GlossaryFile.read(tmp_path / "terms.csv")
    (tmp_path / "terms.csv").write_bytes(b"a" * (MAX_FILE_BYTES + 1))
    with pytest.raises(DataError, match="must be at most 10485760 bytes"):
        GlossaryFile.read(tmp_path / "terms.csv")
