import polib
import pytest

from dragoman.documents.po import read_po
from tests.unit.dragoman.documents.pretend import translated

PO = r"""# Translations of the program.
msgid ""
msgstr ""
"Project-Id-Version: program 1.0\n"
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

# said by a translator
#. on a button
#: src/a.c:12 src/b.c:3
#, c-format
msgctxt "menu"
msgid "Open %s"
msgstr ""

#: src/a.c:14
#, c-format
msgid "One file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#: src/a.c:15
msgid ""
"Tom & I.\n"
"Click <b>here</b>.\n"
msgstr ""

#: src/a.c:20
msgid "42 %"
msgstr ""

#, fuzzy
#| msgid "old"
msgid "new"
msgstr "alt"

msgid "done"
msgstr "fertig"

#~ msgid "gone"
#~ msgstr "weg"
"""
HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: {}\\n"\n'
PLURAL = '\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] ""\n'


def test_only_what_is_missing_is_translated() -> None:
    expected = PO.replace('"Open %s"\nmsgstr ""', '"Open %s"\nmsgstr "OPEN %S"')
    expected = expected.replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "ONE FILE"\nmsgstr[1] "%D FILES"')
    expected = expected.replace(
        'here</b>.\\n"\nmsgstr ""', 'here</b>.\\n"\nmsgstr ""\n"TOM & I.\\n"\n"CLICK <b>HERE</b>.\\n"'
    )
    assert translated(read_po(PO.encode())).decode() == expected


def test_its_own_reader_reads_it() -> None:
    file = polib.pofile(translated(read_po(PO.encode())).decode())
    assert [entry.msgid for entry in file.untranslated_entries()] == ["42 %"]
    assert [entry.msgid for entry in file.fuzzy_entries()] == ["new"]
    assert [entry.msgid for entry in file.obsolete_entries()] == ["gone"]


def test_texts_are_named_by_their_lines_and_placeholders_are_protected() -> None:
    document = read_po(PO.encode())
    assert [text.place for text in document.texts] == ["line 9", "line 17", "line 17", "line 24"]
    assert document.texts[-1].html == 'Tom &amp; I.<br id="0">Click <span id="1">here</span>.<br id="2">'
    assert document.protects_placeholders
    assert [text.place for text in read_po(b'msgid "one"\nmsgstr ""\n').texts] == ["line 1"]


def test_where_there_is_no_translation_nothing_changes() -> None:
    document = read_po(PO.encode())
    assert document.write([None] * len(document.texts)).decode() == PO


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("nplurals=1; plural=0;", ["MANY"]),
        ("nplurals=2; plural=n > 1;", ["MANY", "MANY"]),  # French: 0, too, is of the first form
        ("nplurals=3; plural=n==1 ? 0 : n>=2 && n<=4 ? 1 : 2;", ["ONE", "MANY", "MANY"]),
    ],
)
def test_each_form_of_the_target_language_gets_a_translation(formula: str, expected: list[str]) -> None:
    written = translated(read_po((HEADER.format(formula) + PLURAL).encode())).decode()
    [entry] = polib.pofile(written)
    assert [entry.msgstr_plural[form] for form in sorted(entry.msgstr_plural)] == expected


def test_only_the_missing_forms_of_a_plural_are_translated() -> None:
    content = HEADER.format("nplurals=2; plural=(n != 1);") + PLURAL.replace('[0] ""', '[0] "eins"')
    assert 'msgstr[0] "eins"\nmsgstr[1] "MANY"' in translated(read_po(content.encode())).decode()


@pytest.mark.parametrize(
    ("header", "message", "shown", "translation"),
    [
        ("", "_Open && &Quit", "_Open &amp; Quit", "_OPEN && &QUIT"),
        ("", "Save _As", "Save As", "SAVE _AS"),
        ("X-Qt-Contexts: true\\n", "_Open", "_Open", "_OPEN"),
    ],
)
def test_mnemonics_are_those_of_labels(header: str, message: str, shown: str, translation: str) -> None:
    content = HEADER.format("nplurals=2; plural=n != 1;\\n" + header) + f'\nmsgid "{message}"\nmsgstr ""\n'
    document = read_po(content.encode())
    assert [text.html for text in document.texts] == [shown]
    [entry] = polib.pofile(document.write([shown.upper().replace("&AMP;", "&amp;")]).decode())
    assert entry.msgstr == translation


def test_another_charset_becomes_utf8_and_ends_of_lines_stay() -> None:
    content = PO.replace("UTF-8", "ISO-8859-1").replace("Open", "Öffne").replace("\n", "\r\n").encode("latin-1")
    written = translated(read_po(content)).decode()
    assert "charset=UTF-8" in written
    assert 'msgstr "ÖFFNE %S"\r\n' in written


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_all_other_lines_stay_byte_for_byte(newline: str) -> None:
    content = r"""#Check it
msgid ""
msgstr ""
"X-Generator: an editor\n"
"Content-Type: text/plain; charset=utf-8\n"
"Language: de\n"

#, fuzzy
#~| msgid "older"
#~ msgid "old"
#~ msgstr "alt"

#.shown first
#:src/a.c:1
#,c-format
#|msgid "Open it"
msgid"Open "
  "\x41 \101 \\a %s"

msgstr ""

#~ msgid "a truncated
# The last comment.
"""
    content = content.replace("\n", newline)
    expected = content.replace(f'msgstr ""{newline}{newline}#~', rf'msgstr "OPEN A A \\A %S"{newline}{newline}#~')
    assert translated(read_po(content.encode())).decode() == expected


def test_escapes_and_line_separators_of_gettext_are_read() -> None:
    written = translated(read_po('msgid "ring\\a \\x22it\\42 a\u2028b"\nmsgstr ""\n'.encode())).decode()
    assert written.partition("\n")[2] == 'msgstr ""\n"RING\\a \\"IT\\" A\u2028"\n"B"\n'


def test_text_that_is_the_path_of_a_file_is_not_read_from_there(tmp_path) -> None:
    (tmp_path / "secret.po").write_text(PO)
    with pytest.raises(ValueError, match="is no PO file"):
        read_po(str(tmp_path / "secret.po").encode())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Hello.\n", "^is no PO file, at line 1$"),
        (HEADER.format("") + '\n#| friends "b"\n', "^is no PO file, at line 4: unknown keyword friends$"),
        ('msgid "a', "is no PO file"),
        ("", "neither a header nor a message"),
        (HEADER.format("") + '\nmsgid "Good morning, my friends', r'line 4: a string must end with "'),
        (HEADER.format("") + '\nmsgid "my \\"friends\\"\nmsgstr ""\n', r'line 4: a string must end with "'),
        (HEADER.format("") + '\nmsgid "Good morning, my friends"', "line 4: the message has no msgstr"),
        (HEADER.format("") + '\nmsgid "a"\nmsgstr ""\nfriends\n', "^is no PO file, at line 6$"),
        (HEADER.format("nplurals=INTEGER; plural=EXPRESSION;") + PLURAL, "line 4 has a plural, and no Plural-Forms"),
        (HEADER.format("nplurals=2; plural=n/0;") + PLURAL, "Plural-Forms in the header"),
        (HEADER.format("nplurals=2; plural=n $ 1;") + PLURAL, "Plural-Forms in the header"),
        (HEADER.format("nplurals=2; plural=" + "(" * 5000 + ";") + PLURAL, "Plural-Forms in the header"),
    ],
)
def test_another_file_is_refused(content: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        read_po(content.encode())
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_in_its_charset_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the charset of its header, utf-8"):
        read_po(PO.replace("Open", "Öffne").encode("latin-1").replace(b"UTF-8", b"utf-8"))


def test_the_target_language_of_a_file_is_told() -> None:
    assert read_po(PO.encode()).languages == [("", "de", "Language in its header")]
    assert read_po(HEADER.format("").encode()).languages == []
