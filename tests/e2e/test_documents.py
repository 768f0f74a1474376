"""Documents, with the default model: by a server, and in the process of the command."""

import io
from pathlib import Path

import docx
import polib

from tests.e2e.command import assert_one_line, run
from tests.e2e.test_translate_command import place
from tests.unit.dragoman.documents import made

__all__ = ["place"]  # a fixture

SRT = """1
00:00:01,000 --> 00:00:03,000
<i>Where did you learn</i>

2
00:00:03,000 --> 00:00:05,000
<i>to cook?</i>

3
00:00:06,000 --> 00:00:08,000
- Where is the <b>station</b>?
- Good morning.
"""
PO = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#, python-brace-format
msgid "Tom has bought {count} books."
msgstr ""

msgid "Good morning."
msgstr "Moin."
"""


def translated(place: list[str], folder: Path, name: str, content: bytes) -> bytes:
    """Translate a document without a complaint."""
    (folder / name).write_bytes(content)
    done = run("translate", *place, "--file", str(folder / name), "--out", str(folder / f"out-{name}"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return (folder / f"out-{name}").read_bytes()


def test_subtitles_are_translated(place, tmp_path: Path) -> None:
    written = translated(place, tmp_path, "film.srt", SRT.encode()).decode()
    assert [line for line in written.splitlines() if "-->" in line] == [
        line for line in SRT.splitlines() if "-->" in line
    ]
    first, second = (block.splitlines()[2] for block in written.split("\n\n")[:2])
    assert (first[:3], first[-4:], second[:3], second[-4:]) == ("<i>", "</i>", "<i>", "</i>")
    assert f"{first} {second}".replace("</i> <i>", " ") == "<i>Wo hast du kochen gelernt?</i>"
    assert written.endswith("- Wo ist der <b>Bahnhof</b>?\n- Guten Morgen.\n")


def test_messages_are_translated(place, tmp_path: Path) -> None:
    file = polib.pofile(translated(place, tmp_path, "de.po", PO.encode()).decode())
    assert [entry.msgstr for entry in file] == ["Tom hat {count} Bücher gekauft.", "Moin."]


def test_bold_stays_on_its_word_in_documents_of_offices(place, tmp_path: Path) -> None:
    written = docx.Document(io.BytesIO(translated(place, tmp_path, "a.docx", made.word())))
    assert written.paragraphs[1].text == "Wo hast du kochen gelernt?"
    assert [run.text.strip() for run in written.paragraphs[1].runs if run.bold] == ["gelernt"]


def test_tags_go_with_their_words_in_units_and_pages(place, tmp_path: Path) -> None:
    unit = '<trans-unit id="1"><source>Where is the <g id="1">station</g>?</source>{}</trans-unit>'
    content = f'<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2"><file><body>{unit}</body></file></xliff>'
    written = translated(place, tmp_path, "a.xlf", content.format("").encode()).decode()
    target = '<target state="translated">Wo ist der <g id="1">Bahnhof</g>?</target>'
    assert written.partition("?>\n")[2] == content.format(target)
    page = b"<!doctype html><title>Good morning.</title><p>Where is the <b>station</b>?</p>\n"
    expected = "<!doctype html><title>Guten Morgen.</title><p>Wo ist der <b>Bahnhof</b>?</p>\n"
    assert translated(place, tmp_path, "a.html", page).decode() == expected


def test_markdown_keeps_its_marks(place, tmp_path: Path) -> None:
    content = (
        b"# Good morning.\n\n- Where is the [station](a_b.md)?\n- Tom sold his car with `a b` and `c` yesterday.\n"
    )
    expected = (
        "# Guten Morgen.\n\n- Wo ist der [Bahnhof](a_b.md)?\n- Tom hat gestern sein Auto mit `a b` und `c` verkauft.\n"
    )
    assert translated(place, tmp_path, "a.md", content).decode() == expected


def test_a_text_over_the_limit_stays_and_is_named(serve, tmp_path: Path) -> None:
    server = serve("--max-text-bytes=60")
    content = SRT.replace("Good morning.", "Good morning. " * 5)
    (tmp_path / "film.srt").write_text(content)
    arguments = ["--address", server.address, "--file", str(tmp_path / "film.srt"), "--out", str(tmp_path / "out.srt")]
    done = run("translate", *arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"cue 3: stays in the source language: must be at most 60 bytes, is 69" in done.stderr
    written = (tmp_path / "out.srt").read_text()
    assert "<b>Bahnhof</b>" in written
    assert "- Good morning. Good morning." in written


def test_an_unknown_format_is_one_line(server) -> None:
    done = run("translate", "--address", server.address, "--file", "a.pdf", "--out", "b.pdf")
    assert_one_line(done, "argument --file: must end in", "'a.pdf'")
