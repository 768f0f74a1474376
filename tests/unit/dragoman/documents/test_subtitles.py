import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.subtitles import read_srt, read_vtt
from tests.unit.dragoman.documents.pretend import translated

SRT = """1
00:00:01,000 --> 00:00:03,000
<i>When I was young, I wanted to</i>

2
00:00:03,100 --> 00:00:05,500 X1:40 X2:600
<i>become a doctor & help</i>
<i>very many people.</i>

3
00:00:06,000 --> 00:00:08,000
{\\an8}- Where is the <b>station</b>?
- Over there.

4
00:00:09,000 --> 00:00:10,000
♪ ♪
"""

VTT = """WEBVTT - a title

STYLE
::cue { color: red }

NOTE about
this

intro
00:01.000 --> 00:02.000 line:0 align:start
<v Tom>Fish &amp; chips, <c.loud>please</c>.</v>

00:02.000 --> 00:03.000
<00:02.500>Good <lang en>morning</lang>.
"""


def srt(*cues: str, pause_s: int = 0) -> bytes:
    """Write cues of a second each."""
    step = 1 + pause_s
    blocks = [
        f"{number + 1}\n00:{number * step // 60:02}:{number * step % 60:02},000 --> "
        f"00:{(number * step + 1) // 60:02}:{(number * step + 1) % 60:02},000\n{cue}\n"
        for number, cue in enumerate(cues)
    ]
    return "\n".join(blocks).encode()


def texts(content: bytes) -> list[str]:
    return [text.html for text in read_srt(content).texts]


def test_only_the_words_of_a_srt_file_change() -> None:
    expected = SRT
    for line in ("When I was young, I wanted to", "become a doctor & help", "very many people.", "Over there."):
        expected = expected.replace(line, line.upper())
    expected = expected.replace("Where is the <b>station", "WHERE IS THE <b>STATION")
    expected = expected.replace("HELP</i>\n<i>VERY", "HELP\nVERY")  # it is one element now
    assert translated(read_srt(SRT.encode())).decode() == expected


def test_only_the_words_of_a_vtt_file_change() -> None:
    expected = VTT.replace("Fish", "FISH").replace("chips", "CHIPS").replace("please", "PLEASE")
    expected = expected.replace("Good", "GOOD").replace("morning", "MORNING")
    assert translated(read_vtt(VTT.encode())).decode() == expected


def test_a_line_of_blanks_ends_no_cue_of_vtt() -> None:
    content = "WEBVTT\n\n00:01.000 --> 00:02.000\nGood {}\n \t\n{}\n\nNOTE none\n\n00:02.000 --> 00:03.000\nnow.\n \n"
    document = read_vtt(content.format("morning", "how are you").encode())
    assert [text.html for text in document.texts] == ["Good morning", "how are you now."]
    assert document.write(["Good day", "a b c now."]).decode() == content.format("day", "a b c")
    assert document.write([None] * 2).decode() == content.format("morning", "how are you")


def test_an_empty_line_ends_no_cue_of_srt() -> None:
    content = srt("{}\n\n{}\n5\n \n{}", "", "{}\n").decode().replace("\n2\n", "\n2\n\n")
    document = read_srt(content.format("one", "two", "three", "four.").encode())
    assert [text.html for text in document.texts] == ["one", "two 5", "three", "four."]
    assert document.write(["a", "b c", "d", "e"]).decode() == content.replace("5", "c").format("a", "b", "d", "e")
    assert document.write([None] * 4).decode() == content.format("one", "two", "three", "four.")


def test_text_behind_an_empty_line_of_the_last_cue_of_srt_stays() -> None:
    content = srt("One.", "Two.\n\nMade by me\nwww.example.com")
    assert texts(content) == ["One.", "Two."]
    assert translated(read_srt(content)) == content.replace(b"One", b"ONE").replace(b"Two", b"TWO")


@pytest.mark.parametrize("identifier", ["#{}", "{}a", "cue {}"])
def test_the_identifier_of_a_cue_of_srt_need_not_be_a_number(identifier: str) -> None:
    content = "{}\n00:00:01,000 --> 00:00:02,000\none\n\n{}\n00:00:02,000 --> 00:00:03,000\ntwo.\n"
    content = content.format(identifier.format(1), identifier.format(2))
    assert texts(content.encode()) == ["one two."]


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("WEBVTT\n\nNOTE\n", "00:01.000 -> 00:02.000 was moved"),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\n", "1:30.5 > 1:20.4 is faster"),
    ],
)
def test_times_in_notes_and_text_are_no_timing(head: str, line: str) -> None:
    content = f"{head}{line}\n\n00:03.000 --> 00:04.000\nHi.\n".encode()
    document = read_vtt(content)
    assert document.write([None] * len(document.texts)) == content


def test_a_sentence_over_several_cues_is_one_text() -> None:
    document = read_srt(SRT.encode())
    assert [text.place for text in document.texts] == ["cue 1", "cue 3", "cue 3"]
    first = document.texts[0].html
    assert first == '<span id="0">When I was young, I wanted to become a doctor &amp; help very many people.</span>'


def test_its_translation_is_divided_by_length_and_elements_are_closed_and_opened_again() -> None:
    content = srt("<i>Ten letters</i>", "<i>and ten letters and ten more.</i>")
    written = read_srt(content).write(['<span id="0">eins zwei, drei vier fünf sechs sieben</span>']).decode()
    assert written.split("\n\n")[0].endswith("<i>eins zwei,</i>")
    assert written.split("\n\n")[1].endswith("<i>drei vier fünf sechs sieben</i>\n")


@pytest.mark.parametrize(
    ("cue", "written"),
    [("<v Mary>I was walking home</v>", "<v Mary>x y</v>"), ("<v Mary>I was\nwalking</v> ", "<v Mary>x\ny</v> ")],
)
def test_the_end_of_a_voice_stays_in_its_cue(cue: str, written: str) -> None:
    content = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n\n00:02.000 --> 00:03.000\n{}\n"
    document = read_vtt(content.format(cue, "when I saw.").encode())
    assert document.write(["x y z."]).decode() == content.format(written, "z.")
    assert document.write([None]).decode() == content.format(cue, "when I saw.")


def test_a_translation_in_a_script_without_blanks_is_divided_too() -> None:
    written = read_srt(srt("one two", "three four.")).write(["一二三四五六七八"]).decode()
    assert "一二三\n" in written
    assert "四五六七八\n" in written


def test_a_translation_with_fewer_words_than_cues_leaves_the_last_ones_empty() -> None:
    written = read_srt(srt("one", "two", "three.")).write(["x"]).decode()
    assert re.findall("-->.*\n(.*)\n", written) == ["x", "", ""]


@pytest.mark.parametrize(
    "cues",
    [
        ("He came.", "She went."),
        ("Why", "- Because."),
        ("He said", "[door slams]"),
        ("♪ a song ♪", "and speech."),
    ],
)
def test_cues_that_say_something_of_their_own_are_not_joined(cues: tuple[str, ...]) -> None:
    assert len(texts(srt(*cues))) == 2


def test_the_position_of_a_cue_stays_at_its_beginning() -> None:
    content = srt("please", "{\\an8}look at this", "{\\an8}- No.")
    assert texts(content) == ["please look at this", "No."]
    assert b"\n{\\an8}LOOK AT THIS\n" in translated(read_srt(content))


def test_a_number_may_be_a_cue_of_its_own() -> None:
    assert texts(srt("In the year", "1984", "we moved.")) == ["In the year 1984 we moved."]


def test_a_cue_without_words_takes_none_of_the_next() -> None:
    written = translated(read_vtt(b"WEBVTT\n\n00:01.000 --> 00:02.000\n&nbsp;\n\n00:02.000 --> 00:03.000\none two\n"))
    assert written.endswith(b"\n&nbsp;\n\n00:02.000 --> 00:03.000\nONE TWO\n")


def test_cues_far_from_each_other_are_not_joined() -> None:
    assert len(texts(srt("He said", "nothing.", pause_s=3))) == 1
    assert len(texts(srt("He said", "nothing.", pause_s=4))) == 2


def test_text_without_full_stops_is_joined_up_to_a_bound() -> None:
    assert len(texts(srt(*["words"] * 13))) == 3


@pytest.mark.parametrize(
    ("cue", "shown", "written"),
    [
        ("[LAUGHS]", [], "[LAUGHS]"),
        ("- (DOOR SLAMS)\n- ♪ ♪", [], "- (DOOR SLAMS)\n- ♪ ♪"),
        ("(door slams)", ['<br id="0">door slams<br id="1">'], "(DOOR SLAMS)"),
        ("[LAUGHS] I know.", ['<br id="0">I know.'], "[LAUGHS] I KNOW."),
        ("[<i>LAUGHS</i>] I know.", ['<br id="0">I know.'], "[<i>LAUGHS</i>] I KNOW."),
        ("[LAUGHS]\nI know\nit.", ["I know it."], "[LAUGHS]\nI KNOW\nIT."),
        ("I [Tom (left)] know.", ['I<br id="0">Tom (left)<br id="1">know.'], "I [TOM (LEFT)] KNOW."),
        ("I know (of him) enough.", ["I know (of him) enough."], "I KNOW (OF HIM) ENOUGH."),
        ("♪ I know ♪", ['<br id="0">I know<br id="1">'], "♪ I KNOW ♪"),
    ],
)
def test_sounds_and_notes_stay_around_their_texts(cue: str, shown: list[str], written: str) -> None:
    document = read_srt(srt(cue))
    assert [text.html for text in document.texts] == shown
    assert translated(document) == srt(written)


def test_capitals_are_shown_to_the_model_as_small_letters() -> None:
    content = srt('WHERE IS <i>TOM</i>? "HE KNOWS." [SIGHS] GO & SEE.')
    document = read_srt(content)
    html = 'Where is <span id="0">tom</span>? "He knows."<br id="1">Go &amp; see.'
    assert [text.html for text in document.texts] == [html]
    assert document.write([html]) == content


def test_where_there_is_no_translation_the_lines_stay() -> None:
    document = read_srt(SRT.encode())
    assert document.write([None] * len(document.texts)) == SRT.encode()


def test_ends_of_lines_and_a_byte_order_mark_stay() -> None:
    content = b"\xef\xbb\xbf" + SRT.replace("\n", "\r\n").rstrip().encode()
    document = read_srt(content)
    assert document.write([None] * len(document.texts)) == content
    assert translated(document).count(b"\n") == content.count(b"\r\n") == translated(document).count(b"\r\n")


def test_a_cue_without_an_empty_line_behind_it_ends_at_the_next() -> None:
    content = "1\n00:00:01,000 --> 00:00:02,000\nHe came.\n2\n00:00:02,000 --> 00:00:03,000\nShe went.\n"
    assert texts(content.encode()) == ["He came.", "She went."]


@pytest.mark.parametrize(
    ("read", "content", "words"),
    [
        (read_srt, b"Hello.\n", "is no SubRip"),
        (read_srt, b"caf\xe9", "is not UTF-8 (byte 3)"),
        (read_vtt, SRT.encode(), "does not begin with WEBVTT"),
        (
            read_vtt,
            b"WEBVTT\n\n00:01.000 -> 00:02.500\nHi.",
            "line 3 must have two times with milliseconds and --> between, is '00:01.000 -> 00:02.500'",
        ),
        (read_srt, SRT.replace("-->", "->", 1).encode(), "line 2 must"),
        (read_srt, SRT.replace("00:00:06,000 --> 00:00:08,000", "00:00:06 --> 00:00:08").encode(), "line 11 must"),
        (read_srt, SRT.replace("06,000 --> 00:00:08,000", "06:000 --> 00:00:08:000").encode(), "line 11 must"),
        (read_srt, SRT.replace("06,000", "06,0000").encode(), "line 11 must"),
        (read_srt, SRT.replace(" --> 00:00:08,000", " -->").encode(), "line 11 must"),
    ],
)
def test_another_file_is_refused(read, content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        read(content)


def test_a_file_without_cues_has_no_texts() -> None:
    assert read_srt(b"").write([]) == b""
    assert read_vtt(b"WEBVTT").write([]) == b"WEBVTT"


LINES = st.lists(
    st.sampled_from(["<i>", "</i>", "- ", "one", " two", ".", "&", "♪", "{\\an8}", "3", "[", "]", "(A", ")"]),
    max_size=6,
)


@given(st.lists(LINES.map("".join), max_size=8))
def test_any_cues_come_back_as_they_were(cues: list[str]) -> None:
    content = srt(*cues)
    document = read_srt(content)
    if not document.texts:
        assert document.write([]) == content
    assert document.write([None] * len(document.texts)) == content
    assert translated(document).count(b"-->") == content.count(b"-->")
