import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dragoman.documents.markdown import MarkdownDocument
from tests.unit.dragoman.documents.pretend import translated

PAGE = """\
---
title: "kept"
---

# Where is the *station*? #

See [the **guide**](https://example.com/a_b "kept"), ![a red
cat](cat.png), `kept code` and <kbd>Ctrl</kbd>, https://example.com/x_y,
<me@example.org>.\\
A new line[^1] with ~~old~~ and <b>bold</b> words<br>here.

Setext
======

- [ ] first **task**
  1. nested *item*

> [!NOTE]
> Hello there,
> my friend.

| Name  | What it does    |
|-------|:---------------:|
| `run` | [Link][ref] \\| x |

```python
print("kept")
```

    kept

<div>kept</div>

[ref]: https://example.com "kept"
[^1]: Some words.
"""
SHOUTED = """\
---
title: "kept"
---

# WHERE IS THE *STATION*? #

SEE [THE **GUIDE**](https://example.com/a_b "kept"), ![A RED
CAT](cat.png), `kept code` AND <kbd>Ctrl</kbd>, https://example.com/x_y,
<me@example.org>.\\
A NEW LINE[^1] WITH ~~OLD~~ AND <b>BOLD</b> WORDS<br>HERE.

SETEXT
======

- [ ] FIRST **TASK**
  1. NESTED *ITEM*

> [!NOTE]
> HELLO THERE,
> MY FRIEND.

| NAME  | WHAT IT DOES    |
|-------|:---------------:|
| `run` | [LINK][ref] \\| X |

```python
print("kept")
```

    kept

<div>kept</div>

[ref]: https://example.com "kept"
[^1]: SOME WORDS.
"""
PIECES = [
    *"*_`~[]()<>!|#-&\\\n\t \r",
    "a",
    "é",
    "1. ",
    "> ",
    "- ",
    ":::",
    "{",
    "**",
    "  \n",
    "[a](b)",
    "| a | b |\n|---|---|\n",
    "<b>",
]


def shown(content: str) -> list[str]:
    return [text.html for text in MarkdownDocument(content.encode()).texts]


def rendered(content: bytes) -> str:
    """Read Markdown as anybody would; blanks and breaks of lines inside a paragraph say nothing."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return re.sub(r"\s+", " ", parser.render(content.decode(errors="replace"))).replace(" <br", "<br")


def test_what_is_no_text_stays_byte_for_byte() -> None:
    document = MarkdownDocument(PAGE.encode())
    assert document.write([None] * len(document.texts)) == PAGE.encode()
    assert translated(MarkdownDocument(PAGE.encode())).decode() == SHOUTED
    assert [text.place for text in document.texts][:3] == ["line 5", "line 7", "line 12"]


def test_ends_of_lines_and_a_byte_order_mark_stay() -> None:
    content = b"\xef\xbb\xbf# One\r\n\r\ntwo\r\n  three\r\n"
    assert translated(MarkdownDocument(content)) == b"\xef\xbb\xbf# ONE\r\n\r\nTWO\r\n  THREE\r\n"


def test_formulas_stay() -> None:
    content = b"The rule $$E = mc^2$$ costs $5.\n\n$$\na_1 = b * c_1\n\\\\le d * e\n$$\n"
    assert MarkdownDocument(content).texts[0].html == "The rule {#0} costs $5."
    assert (
        translated(MarkdownDocument(content))
        == b"THE RULE $$E = mc^2$$ COSTS $5.\n\n$$\na_1 = b * c_1\n\\\\le d * e\n$$\n"
    )


@pytest.mark.parametrize(
    ("content", "html"),
    [
        ("For $x_i$ and $\\{1, 2\\}$.", "For {#0} and {#1}."),
        ("The $n$-th *$x$* is `$` or $a\\$b$.", 'The {#0}-th <span id="1">{#2}</span> is {#3} or {#4}.'),
        ("See $a*b$ and ($c*d$), or $$e*f$$ * 2.", "See {#0} and ({#1}), or {#2} * 2."),
        ("It is $2 x^3 + 1$ or $2x$ or $`a*b`$.", "It is {#0} or {#1} or {#2}."),
        ("The energy is $E =\nmc^2$ for all.", "The energy is {#0} for all."),
        ("> It is $a \\\\\n> b$ here.", "It is {#0} here."),
    ],
)
def test_formulas_in_a_line_stay(content: str, html: str) -> None:
    document = MarkdownDocument(content.encode())
    assert [text.html for text in document.texts] == [html]
    assert document.write([html]) == content.encode()


@pytest.mark.parametrize(
    "content",
    [
        "From $$ (cheap) to $$$$ (dear).",
        "Now $5 and $10, or $ 5 $.",
        "From 5$ to US$10 ($A$5).",
        "Of $x and\n$y $.",
        "It costs $5 in the first year and 7$ in the second.",
    ],
)
def test_prices_are_no_formula(content: str) -> None:
    assert shown(content) == [content.replace("\n", " ")]


@pytest.mark.parametrize(
    ("content", "html"),
    [
        ("It costs $5, **only 7$**.", 'It costs $5, <span id="0">only 7$</span>.'),
        ("See [the $x offer](a?b=$).", 'See <span id="0">the $x offer</span>.'),
        ("Now $x: run `a$` now.", "Now $x: run {#0} now."),
    ],
)
def test_a_formula_does_not_cross_links_and_code(content: str, html: str) -> None:
    assert shown(content) == [html]


def test_a_translation_does_not_become_a_formula() -> None:
    assert MarkdownDocument(b"a").write(["$b$"]) == b"\\$b\\$"


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("The cat sleeps.&nbsp;", "THE CAT SLEEPS.&nbsp;"),
        ("# &#160;&emsp;The cat\n", "# &nbsp;&#8195;THE CAT\n"),
        ("| &nbsp;a | b |\n|---|---|\n", "| &nbsp;A | B |\n|---|---|\n"),
        ("&nbsp; a&nbsp;b\xa0c", "&nbsp; A\xa0B\xa0C"),
        ("See *&nbsp;it*.", "SEE *&nbsp;IT*."),
    ],
)
def test_wide_blanks_at_the_ends_of_a_text_are_references(content: str, written: str) -> None:
    assert translated(MarkdownDocument(content.encode())).decode() == written


def test_links_by_their_text_keep_their_targets() -> None:
    targets = "\n\n[a_b *the guide*]: x\n[web]: y\n[a cat]: z\n"
    document = MarkdownDocument(f"See [a_b *the\nguide*], [Web][], ![a cat], [it][Web] and [none].{targets}".encode())
    words, found, rest = translated(document).decode().partition("\n\n")
    expected = "SEE [A_B *THE GUIDE*][a_b *the guide*], [WEB][Web], ![A CAT][a cat], [IT][Web] AND [NONE]."
    assert " ".join(words.split()) == expected
    assert found + rest == targets


def test_a_footnote_is_no_link_and_a_text_of_its_own() -> None:
    content = "A house[^1] with\ndoors[^b].\n[^1]: https://example.com/a\n[^b]: Door\n    more\n\n[^c]: two words\n"
    assert shown(content) == [
        'A house<wbr id="0"> with doors<wbr id="1">.',
        '<wbr id="0"> Door more',
        '<wbr id="0"> two words',
    ]
    assert translated(MarkdownDocument(content.encode())).decode() == (
        "A HOUSE[^1] WITH\nDOORS[^b].\n[^1]: https://example.com/a\n[^b]: DOOR\n    MORE\n\n[^c]: TWO WORDS\n"
    )
    document = MarkdownDocument(b"one two three[^a]: x\nfour\n")  # a broken line would begin a footnote
    assert document.write(['one two three four <wbr id="0"> x']) == b"one two three four [^a]:\nx\n"


def test_tags_go_with_their_words() -> None:
    document = MarkdownDocument(b"- the *red* `a b` [cat](x)\n")
    html = 'the <span id="0">red</span> {#1} <span id="2">cat</span>'
    assert [text.html for text in document.texts] == [html]
    moved = 'le <span id="2">chat</span> <span id="0">rouge</span> {#1}'
    assert document.write([moved]) == b"- le [chat](x) *rouge* `a b`\n"
    assert document.write(["sans code"]) == b"- the *red* `a b` [cat](x)\n"
    assert MarkdownDocument(b"a {#1} `b`").write(["{#1} {#1}"]) == b"a {#1} `b`"


CONTAINERS = """\
Some text
:::note
Hello *there*,
my friend.
:::

:::tip[A title]{#a-title}
One | two
:::

> :::info Info: info
>
> - two
>   ::::: warning {.warning}
>   three
>   :::::
> :::

::: {.callout #four}
::: Details ::::::
four
:::
:::

:::{admonition} Five **fives**
:class: tip
:name: five
five
:::

:::{figure} images/a.png
---
alt: kept
---
six
:::

- :::{code-block} python
  kept()

  :::
- ::::{math}
  a + :::
  :::
  ::::
seven
:::

::: (eight)
"""
CONTAINERS_SHOUTED = (
    CONTAINERS.replace("Some text", "SOME TEXT")
    .replace("Hello *there*,\nmy friend.", "HELLO *THERE*,\nMY FRIEND.")
    .replace("[A title]", "[A TITLE]")
    .replace("One | two", "ONE | TWO")
    .replace("Info: info", "INFO: INFO")
    .replace("- two", "- TWO")
    .replace("three", "THREE")
    .replace("\nfour", "\nFOUR")
    .replace("Five **fives**", "FIVE **FIVES**")
    .replace("\nfive", "\nFIVE")
    .replace("\nsix", "\nSIX")
    .replace("seven", "SEVEN")
    .replace("(eight)", "(EIGHT)")
)


def test_fences_of_containers_stay_and_their_titles_are_translated() -> None:
    document = MarkdownDocument(CONTAINERS.encode())
    assert document.write([None] * len(document.texts)) == CONTAINERS.encode()
    assert translated(document).decode() == CONTAINERS_SHOUTED
    assert translated(MarkdownDocument(b"\xef\xbb\xbf:::a a\r\n")) == b"\xef\xbb\xbf:::a A\r\n"


def test_a_translation_does_not_become_a_fence() -> None:
    assert MarkdownDocument(b"a").write(["::: b"]) == b"\\::: b"


@pytest.mark.parametrize(
    ("content", "html"),
    [
        ("Snake\\_case &amp; &copy;", "Snake_case &amp; ©"),
        ("2 * 3 * x_y_z [not a link]", "2 * 3 * x_y_z [not a link]"),
        ("a ***b** c*", 'a <span id="0"><span id="1">b</span> c</span>'),
        ("<b>*a</b>*", '<span id="0"><wbr id="1">a</span><wbr id="2">'),
        ("![](a.png) a <!-- b --> <br/>", '<wbr id="0"> a <wbr id="1"> <br id="2">'),
        ("x ![a *b*](c.png)", 'x <span id="0">a <span id="1">b</span></span>'),
        ("x ![`b` ![a *c*](d)](e)", 'x <span id="0">{#1} <span id="2">a <span id="3">c</span></span></span>'),
        # Each text of a picture is a sentence, if the paragraph has no other words.
        ("![a *b*](c.png)![d](e)", '<br id="0">a <span id="1">b</span><br id="2"><br id="3">d<br id="4">'),
        (
            "[![a](b)](c) *![d](e)*",
            '<span id="0"><br id="1">a<br id="2"></span> <span id="3"><br id="4">d<br id="5"></span>',
        ),
        ("`x` ![`b` ![a](d)](e)", '{#0} <br id="1">{#2} <br id="3">a<br id="4"><br id="5">'),
        ("# A {#b}", 'A <wbr id="0">'),
        ("a  \nb", 'a<br id="0">b'),
    ],
)
def test_marks_become_elements(content: str, html: str) -> None:
    assert shown(content) == [html]


@pytest.mark.parametrize(
    "content", ["```\na\n```", "    a", "<p>a</p>", "`a`", "[a]: b", "<!-- a -->", "---\na: b\n---\n", "***"]
)
def test_what_is_no_text_is_not_translated(content: str) -> None:
    assert shown(content) == []


@pytest.mark.parametrize(
    ("content", "translation", "written"),
    [
        ("one", "1. eins", "1\\. eins"),
        ("one", "*eins*", "\\*eins\\*"),
        ("one", "# eins", "\\# eins"),
        ("c ![*a* b](c)", '*2* <span id="0">b <span id="1">a</span></span>', "\\*2\\* ![b *a*](c)"),
        (
            "![*a*](c)\n![d][]\n\n[d]: e",
            '<br id="0"><span id="1">g</span><br id="2"> <br id="3">f<br id="4">',
            "![*g*](c)\n![f][d]\n\n[d]: e",
        ),
        ("one", "&lt;b&gt;", "\\<b\\>"),
        ("# one", "eins #", "# eins \\#"),
        ("a\nb", "eins &amp;lt; zwei", "eins\n\\&lt;\nzwei"),
        ("a\nfive", "a 2. - b", "a 2. -\nb"),
        ("| one |\n|---|", "a | b", "| a \\| b |\n|---|"),
        ("one <!-- x -->\nb", 'drei vier <wbr id="0">', "drei vier <!-- x -->"),
        ("one <b>two</b>\nb", 'drei fünf <span id="0">vier</span>', "drei fünf <b>vier</b>"),
        ("one <a@b.de>\nb", "drei vier {#0}", "drei vier\n<a@b.de>"),
        ("\ufeff# one", "# eins", "\ufeff# # eins"),
    ],
)
def test_a_translation_is_read_as_text(content: str, translation: str, written: str) -> None:
    assert MarkdownDocument(content.encode()).write([translation]).decode() == written


@pytest.mark.parametrize("content", ["one <!-- x --> *two*", "> one <!-- x --> *two*", "one <div> *two*"])
def test_a_text_stays_whose_translation_is_no_text(content: str) -> None:
    document = MarkdownDocument(content.encode())
    moved = '<wbr id="0"> <span id="1">zwei</span> eins'
    assert document.write([moved]) == content.encode()
    assert document.unwritten == ["line 1"]


def test_texts_are_named_whose_translations_cannot_be_written() -> None:
    document = MarkdownDocument(b"a `b`\n\nc\n\nd `e`\n\nf `g`\n")
    assert (document.write(["a", None, "d", "f {#0}"]), document.unwritten) == (
        b"a `b`\n\nc\n\nd `e`\n\nf `g`\n",
        ["line 1", "line 5"],
    )
    assert document.write(["h {#0}", None, "h {#0}", None]) == b"h `b`\n\nc\n\nh `e`\n\nf `g`\n"
    assert document.unwritten == []


@given(st.lists(st.sampled_from(PIECES), max_size=30))
@example(["a", "\r", "b", "\t", "c"])
def test_any_text_says_the_same_afterwards(pieces: list[str]) -> None:
    content = "".join(pieces).encode()
    document = MarkdownDocument(content)
    assert document.write([None] * len(document.texts)) == content
    assert rendered(document.write([text.html for text in document.texts])) == rendered(content)


def test_many_wide_blanks_do_not_take_long() -> None:
    content = ("a" + "\xa0" * 200_000 + "b").encode()
    document = MarkdownDocument(content)
    assert document.write([text.html for text in document.texts]) == content


@pytest.mark.parametrize(
    "piece",
    ["[", "![", "*a ", "<b>a", "> ", "- ", "a  \n", "a\n\n", "`", "[a](b ", "https://", "$a ", "$$a", "$5 a", "($"],
)
def test_pages_of_strangers_come_back(piece: str) -> None:
    content = (piece * 3000 + "a").encode()
    document = MarkdownDocument(content)
    assert document.write([None] * len(document.texts)) == content
    assert translated(document)
