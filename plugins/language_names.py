"""English names of languages, for selection lists."""

from typing import Final

_TABLE: Final = """
af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, br Breton, bs Bosnian,
ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, es Spanish, et Estonian,
eu Basque, fa Persian, fi Finnish, fil Filipino, fo Faroese, fr French, fy Western Frisian, ga Irish,
gd Scottish Gaelic, gl Galician, gu Gujarati, ha Hausa, he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole,
hu Hungarian, hy Armenian, id Indonesian, ig Igbo, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian,
kk Kazakh, km Khmer, kn Kannada, ko Korean, ku Kurdish, ky Kyrgyz, la Latin, lb Luxembourgish, ln Lingala, lo Lao,
lt Lithuanian, lv Latvian, mg Malagasy, mi Maori, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay,
mt Maltese, my Burmese, nb Norwegian Bokmål, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, oc Occitan,
or Odia, pa Punjabi, pl Polish, ps Pashto, pt Portuguese, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit,
sd Sindhi, se Northern Sami, si Sinhala, sk Slovak, sl Slovenian, sn Shona, so Somali, sq Albanian, sr Serbian,
su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, tk Turkmen, tl Tagalog, tr Turkish,
tt Tatar, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba,
zh Chinese, zu Zulu
"""
_NAMES: Final = dict(entry.strip().split(" ", 1) for entry in _TABLE.split(","))


def name_of(code: str) -> str:
    """Give the name of a language; its code if the name is unknown."""
    language, _, region = code.partition("-")
    name = _NAMES.get(language.lower())
    if name is None:
        return code
    return f"{name} ({region})" if region else name
