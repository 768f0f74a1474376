"""What the codes of models are in BCP-47."""

import pytest

from dragoman.language import is_code
from model.importing import codes, languages


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("deu", "de"),
        ("deu_Latn", "de"),
        ("de_DE", "de"),
        ("en_XX", "en"),
        ("arb_Arab", "ar"),
        ("kor_Hang", "ko"),
        ("zho_Hans", "zh-Hans"),
        ("zh_CN", "zh-Hans"),
        ("zho_tw", "zh-Hant"),
        ("pes_Arab", "fa"),
        ("tgl_Latn", "tl"),
        ("twi_Latn", "tw"),
        ("ns", "nso"),
        ("sat_Beng", "sat-Beng"),
        ("pt_BR", "pt"),
    ],
)
def test_a_code_alone(code: str, tag: str) -> None:
    known = codes.known([code])
    assert known[code].tag == tag
    assert is_code(known[code].tag)
    assert (code in known[code].aliases) == (code != tag)


def test_scripts_and_regions_that_tell_apart() -> None:
    listed = ["ace_Arab", "ace_Latn", "pt", "pt_BR", "prs_Arab", "pes_Arab", "nob", "nno"]
    assert [entry.tag for entry in codes.known(listed).values()] == [
        "ace-Arab",
        "ace-Latn",
        "pt",
        "pt-BR",
        "fa-AF",
        "fa",
        "nb",
        "nn",
    ]


def test_names_of_chinese() -> None:
    known = codes.known(["zho_Hans", "zho_Hant"])
    assert known["zho_Hans"].aliases == ("zho_Hans", "zh", "zh-CN", "zh-SG")
    assert known["zho_Hant"].aliases == ("zho_Hant", "zh-TW", "zh-HK", "zh-MO")
    assert codes.known(["zho_Hans", "zh"])["zho_Hans"].aliases == ("zho_Hans", "zh-CN", "zh-SG")


def test_a_language_of_one_script_answers_to_its_name() -> None:
    assert codes.known(["sat_Beng"])["sat_Beng"].aliases == ("sat_Beng", "sat")


@pytest.mark.parametrize("code", ["mul", "gmw", "ROMANCE", "xx9", "", "qq", "toki pona"])
def test_what_is_no_language(code: str) -> None:
    assert not codes.is_language(code)
    assert codes.known([code]) == {}


def test_of_two_codes_for_one_language_the_first_stays() -> None:
    assert list(codes.known(["deu", "de", "fra"])) == ["deu", "fra"]


@pytest.mark.parametrize(
    ("name", "sources", "targets"),
    [
        ("opus-mt-en-de", ["en"], ["de"]),
        ("opus-mt-tc-big-en-cat_oci_spa", ["en"], ["cat", "oci", "spa"]),
        ("opus-mt-tc-big-zle-en", [], ["en"]),
        ("opus-mt-en-ROMANCE", ["en"], []),
        ("my-model", [], []),
        ("checkpoint-en-de", [], []),
    ],
)
def test_languages_of_a_name(name: str, sources: list[str], targets: list[str]) -> None:
    assert languages.of_name(name) == (sources, targets)
