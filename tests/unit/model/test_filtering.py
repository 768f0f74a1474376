import pytest

from model.filtering import fault


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Where is the station?", "Wo ist der Bahnhof?", None),
        ("Yes.", "Ja, natürlich.", None),
        ("Yes.", "Ja, das ist ganz bestimmt so und nicht anders.", "length ratio"),
        ("He has 48 books.", "Er hat 84 Bücher.", "numbers"),
        ("It costs 1,250.50 dollars.", "Es kostet 1.250,50 Dollar.", None),
        ("I owe you 3,000 yen.", "Ich schulde dir 3000 Yen.", None),
        ("It is 1,234,567 meters.", "Es sind 1 234 567 Meter.", None),
        ("It melts at 3,198°C.", "Es schmilzt bei 3198 °C.", None),
        ("I owe you 3,000 yen.", "Ich schulde dir 4000 Yen.", "numbers"),
        ("In 2024, 3,000 people came to us.", "2024 kamen 3000 Leute zu uns.", None),
        ("She earns $60k a year.", "Sie verdient 60.000 $ im Jahr.", None),
        ("The new hip costs £8.5k.", "Die neue Hüfte kostet 8500 £.", None),
        ("The new hip costs £8.5k.", "Die neue Hüfte kostet 8.600 £.", "numbers"),
        ("He ran 60 kilometres.", "Er lief 60.000 Meter weit.", "numbers"),
        ("He has three children.", "Er hat 3 Kinder.", None),
        ("We meet at 2:30 pm.", "Wir treffen uns um 14:30 Uhr.", None),
        ("#### ---- |||| ====", "#### ---- |||| ====", "letters"),
        ("42", "42", None),
        ("He was born in 1998.", "ولد في عام ١٩٩٨.", None),
        ("He was born in 1998.", "ولد في عام ١٩٨٩.", "numbers"),
        ("We have travelled to the country of Myanmar.", "ကျွန်တော်တို့ မြန်မာနိုင်ငံသို့ သွားခဲ့ကြသည်။", None),
        ("7" * 5000, "8" * 5000, "numbers"),  # more than int() takes
    ],
)
def test_fault(source: str, target: str, expected: str | None) -> None:
    assert fault(source, target) == expected
    assert fault(target, source) == expected
