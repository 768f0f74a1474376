from model.scores import score

REFERENCES = ["Der Zug fährt um acht Uhr ab.", "Wo ist hier bitte der Bahnhof?"]


def test_signatures_make_scores_comparable() -> None:
    scores = score(REFERENCES, REFERENCES)
    assert scores.bleu_signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert scores.chrf_signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_the_reference_scores_100() -> None:
    scores = score(REFERENCES, REFERENCES)
    assert (scores.bleu, scores.chrf, scores.sentences) == (100, 100, 2)


def test_worse_scores_less() -> None:
    close = score(["Der Zug fährt um neun Uhr ab.", REFERENCES[1]], REFERENCES)
    assert 0 < close.bleu < 100
    assert 0 < close.chrf < 100
    far = score(["Nein.", "Nie."], REFERENCES)
    assert far.bleu < close.bleu
    assert far.chrf < close.chrf
