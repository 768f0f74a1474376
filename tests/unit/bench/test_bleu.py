import pytest

from bench.bleu import bleu


def test_bleu_of_the_references_is_100() -> None:
    pytest.importorskip("sacrebleu")
    texts = ["Ein Hund läuft über die Wiese.", "Zwei Kinder spielen im Schnee."]
    assert bleu(texts, texts) == pytest.approx(100.0)
