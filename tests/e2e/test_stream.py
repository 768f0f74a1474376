from collections import defaultdict

from tests.waiting import until, until_free

TEXTS = [
    "Good morning. Where is the station? I have never been to Berlin.",
    "",
    "She reads a book every evening.\n\nThen she sleeps! 你好。 😀 Why not?\t",
    "   ",
    "Nul\x00 and others.",
]


def collect(pieces):
    """The joined deltas, and the results, of each text; the order within a text is checked."""
    texts, results = defaultdict(str), {}
    for piece in pieces:
        assert piece.content_index not in results, "nothing comes after a result"
        assert bool(piece.text) != (piece.result is not None)
        texts[piece.content_index] += piece.text
        if piece.result is not None:
            results[piece.content_index] = piece.result
    return texts, results


def test_the_deltas_and_the_results_are_the_unary_answer(client) -> None:
    texts, results = collect(client.stream(TEXTS, model="en-de"))
    unary = client.translate(TEXTS, model="en-de")
    assert [results[index] for index in range(len(TEXTS))] == unary
    assert [texts[index] for index in range(len(TEXTS))] == [translation.text for translation in unary]


def test_the_results_say_how_sure_the_model_was(client) -> None:
    _, results = collect(client.stream(TEXTS, model="en-de", mean_log_probability=True))
    unary = client.translate(TEXTS, model="en-de", mean_log_probability=True)
    assert [results[index] for index in range(len(TEXTS))] == unary
    assert [translation.mean_log_probability is None for translation in unary] == [not text.strip() for text in TEXTS]


def test_text_comes_before_the_end(client) -> None:
    # More sentences than there are slots, and of this test alone: a known or a short text comes in one piece.
    text = " ".join(f"She reads {number} books before she goes to sleep." for number in range(9000, 9400))
    pieces = list(client.stream(text, model="en-de"))
    assert len(pieces) > 2


def test_a_limit_cuts_stream_and_unary_alike(client) -> None:
    for tokens in (1, 2, 3):
        texts, results = collect(client.stream(TEXTS[2], model="en-de", max_target_tokens=tokens))
        assert results[0] == client.translate(TEXTS[2], model="en-de", max_target_tokens=tokens)
        assert texts[0] == results[0].text


def test_a_long_text_streams_in_order(client) -> None:
    text = " ".join(f"Tom bought {number} books." for number in range(100, 300))
    texts, results = collect(client.stream(text, model="en-de"))
    assert results[0].segments == 200
    assert texts[0] == results[0].text


def test_a_client_that_leaves_frees_its_slots(client, server) -> None:
    cancelled = server.metric("cancelled_segments_total")
    # Of this test alone: known sentences are answered before anybody can leave.
    text = " ".join(f"Mary sold {number} cars, and then she wrote about them all." for number in range(1000, 9000))
    pieces = client.stream(text, model="en-de")
    next(pieces)
    pieces.close()
    until(lambda: server.metric("cancelled_segments_total") != cancelled)
    until_free(server)
    assert client.translate("Good morning.", model="en-de")
