"""A document in, a document out; the translator is a function."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.answers import Translation
from dragoman.cli import main
from dragoman.commands import translate
from dragoman.errors import InternalError
from tests.unit.dragoman.documents.pretend import shouted

SRT = "1\n00:00:01,000 --> 00:00:02,000\nHello & welcome.\n\n2\n00:00:02,000 --> 00:00:03,000\nGood night.\n"
PO = '# a\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Open {name}"\nmsgstr ""\n'


def result(html: str) -> Translation:
    return Translation(shouted(html), "en-de", 1, 1, "EOS", 1)


def failed(html: str) -> Translation:
    return Translation("", "en-de", 0, 0, "UNSPECIFIED", 0, error=InternalError("broken"))


@pytest.fixture
def asked(monkeypatch) -> dict[str, Any]:
    return translator_is(monkeypatch, result)


def translator_is(monkeypatch, answer: Callable[[str], Translation]) -> dict[str, Any]:
    """Have a function translate; gives the options that it is asked with."""
    asked: dict[str, Any] = {}

    def translator(folder: Path | None, **options: Any) -> translate.TranslateLines:
        asked.update(options)
        return lambda texts: [answer(text) for text in texts]

    monkeypatch.setattr(translate, "load", lambda _: translator)
    return asked


@pytest.fixture
def srt(tmp_path: Path) -> Path:
    (tmp_path / "in.srt").write_text(SRT)
    return tmp_path / "in.srt"


def test_a_document_is_translated_as_html(srt: Path, tmp_path: Path, asked, capfd) -> None:
    assert main(["translate", "--file", str(srt), "--out", str(tmp_path / "out.srt")]) == 0
    expected = SRT.replace("Hello & welcome.", "HELLO & WELCOME.").replace("Good night.", "GOOD NIGHT.")
    assert (tmp_path / "out.srt").read_text() == expected
    assert (asked["html"], asked["protect_placeholders"]) == (True, False)
    assert capfd.readouterr() == ("", "")


def test_a_folder_for_the_output_that_is_not_there_is_an_error_before_any_work(srt: Path, asked, capfd) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["translate", "--file", str(srt), "--out", "/no/such/folder/out.srt"])
    said = "cannot write a file '/no/such/folder/out.srt': there is no folder /no/such/folder"
    assert capfd.readouterr().err.endswith(f"argument --out: {said}\n")
    assert asked == {}


def test_placeholders_are_protected_where_the_format_has_them(tmp_path: Path, asked) -> None:
    (tmp_path / "in.po").write_text(PO)
    assert main(["translate", "--file", str(tmp_path / "in.po"), "--out", str(tmp_path / "out.po")]) == 0
    assert asked["protect_placeholders"]
    assert 'msgstr "OPEN {NAME}"' in (tmp_path / "out.po").read_text()


def test_a_page_says_the_language_of_its_translation(tmp_path: Path, asked) -> None:
    (tmp_path / "in.html").write_text('<html lang="en">a</html>')
    arguments = ["translate", "--file", str(tmp_path / "in.html"), "--out", str(tmp_path / "out.html"), "--to", "de"]
    for source in ("en", "auto"):
        assert main([*arguments, "--from", source]) == 0
        assert (tmp_path / "out.html").read_text() == '<html lang="de">A</html>'


def test_a_text_that_fails_stays_and_is_named(srt: Path, tmp_path: Path, monkeypatch, capfd) -> None:
    translator_is(monkeypatch, lambda html: failed(html) if "night" in html else result(html))
    assert main(["translate", "--file", str(srt), "--out", str(tmp_path / "out.srt")]) == 1
    assert (tmp_path / "out.srt").read_text() == SRT.replace("Hello & welcome.", "HELLO & WELCOME.")
    assert capfd.readouterr().err == "dragoman translate: cue 2: stays in the source language: broken\n"


def test_a_call_that_fails_writes_nothing(srt: Path, tmp_path: Path, monkeypatch, capfd) -> None:
    def broken(html: str) -> Translation:
        raise InternalError("broken")

    translator_is(monkeypatch, broken)
    (tmp_path / "out.srt").write_text("old")
    assert main(["translate", "--file", str(srt), "--out", str(tmp_path / "out.srt")]) == 2
    assert capfd.readouterr().err == "dragoman translate: broken\n"
    assert (tmp_path / "out.srt").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.srt", "out.srt"]


def bad(capfd, *arguments: str) -> str:
    """Run the command, which ends with 2 and a line; gives that."""
    try:
        code = main(["translate", *arguments])
    except SystemExit as ended:
        code = int(str(ended.code))
    out, err = capfd.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    return str(err.removeprefix("dragoman translate: ").rstrip("\n"))


@pytest.mark.parametrize(
    "flags", [["--html"], ["--json"], ["--alternatives=2"], ["--alignments"], ["--target-prefix=a"], ["TEXT"]]
)
def test_what_has_no_place_in_a_document_is_refused(srt: Path, tmp_path: Path, flags: list[str], capfd) -> None:
    said = bad(capfd, "--file", str(srt), "--out", str(tmp_path / "out.srt"), *flags)
    assert said == f"argument {flags[0].partition('=')[0]}: not with --file"


@pytest.mark.parametrize("flag", ["--temperature", "--top-k", "--top-p", "--seed"])
def test_no_tokens_are_drawn_where_placeholders_stay(tmp_path: Path, asked, flag: str, capfd) -> None:
    (tmp_path / "in.po").write_text(PO)
    said = bad(capfd, "--file", str(tmp_path / "in.po"), "--out", str(tmp_path / "out.po"), f"{flag}=1")
    assert said == f"argument {flag}: not with .po files, whose placeholders stay as they are"


def test_file_and_out_need_each_other(srt: Path, capfd) -> None:
    for flag in ("--file", "--out"):
        assert bad(capfd, flag, str(srt)) == "arguments --file and --out: each needs the other"


def test_a_format_that_there_is_not_is_refused(srt: Path, capfd) -> None:
    assert bad(capfd, "--file", "a.pdf", "--out", "b.pdf").startswith("argument --file: must end in .srt, ")
    assert bad(capfd, "--file", ".", "--out", "b.pdf").endswith(", is '.'")
    assert bad(capfd, "--file", str(srt), "--out", "b.po") == (
        "argument --out: must be of the format of --file, is 'b.po'"
    )


def test_a_document_is_not_written_over_itself(srt: Path, tmp_path: Path, capfd) -> None:
    (tmp_path / "link.srt").symlink_to(srt)
    for out in ("in.srt", "link.srt"):
        said = bad(capfd, "--file", str(srt), "--out", str(tmp_path / out))
        assert said == "argument --out: is the file of --file, which would be lost"


def test_a_broken_document_is_named_before_a_model_is_loaded(tmp_path: Path, capfd) -> None:
    (tmp_path / "in.vtt").write_text(SRT)
    said = bad(capfd, "--models", "none", "--file", str(tmp_path / "in.vtt"), "--out", str(tmp_path / "out.vtt"))
    assert said == f"{tmp_path / 'in.vtt'}: is no WebVTT: it does not begin with WEBVTT"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capfd) -> None:
    (tmp_path / "folder.srt").mkdir()
    for name, words in (("missing.srt", "No such file or directory"), ("folder.srt", "is not a regular file")):
        said = bad(capfd, "--file", str(tmp_path / name), "--out", str(tmp_path / "out.srt"))
        assert said == f"{tmp_path / name}: {words}"


def test_a_missing_library_is_one_line(tmp_path: Path, monkeypatch, capfd) -> None:
    (tmp_path / "in.po").write_text(PO)
    monkeypatch.setitem(sys.modules, "polib", None)
    monkeypatch.delitem(sys.modules, "dragoman.documents.po", raising=False)
    said = bad(capfd, "--file", str(tmp_path / "in.po"), "--out", str(tmp_path / "out.po"))
    assert "needs the extra \"documents\" of dragoman-server (no module 'polib')" in said


def test_a_document_of_other_languages_is_refused_before_a_model_is_loaded(tmp_path: Path, asked, capfd) -> None:
    (tmp_path / "in.po").write_text(PO.replace("Content-Type", 'Language: fr\\n"\n"Content-Type'))
    files = ["--file", str(tmp_path / "in.po"), "--out", str(tmp_path / "out.po")]
    said = "says that it is for fr (Language in its header), not for de"
    assert bad(capfd, *files, "--to", "de") == f"{tmp_path / 'in.po'}: {said}"
    assert asked == {}
    assert main(["translate", *files, "--to", "fr-CA"]) == 0


def test_a_text_whose_translation_cannot_be_written_is_named(tmp_path: Path, monkeypatch, capfd) -> None:
    translator_is(monkeypatch, lambda html: result(html.replace("{#0}", "")))
    (tmp_path / "in.md").write_text("one\n\ntwo `code`\n")
    assert main(["translate", "--file", str(tmp_path / "in.md"), "--out", str(tmp_path / "out.md")]) == 1
    assert (tmp_path / "out.md").read_text() == "ONE\n\ntwo `code`\n"
    said = "line 3: stays in the source language: its translation lacks code, or would be read as something else"
    assert capfd.readouterr().err == f"dragoman translate: {tmp_path / 'in.md'}: {said}\n"
