from dragoman.spelling import did_you_mean


def test_the_nearest_name_is_asked_for() -> None:
    assert did_you_mean("transalte", ["train", "translate"]) == "; did you mean translate?"
    assert did_you_mean("xyz", ["train", "translate"]) == ""
