import queue
import threading

from dragoman.feed import Feed


def test_a_call_that_was_followed_by_another_takes_no_more() -> None:
    feed = Feed(["a", "b"])
    try:
        dead, alive = feed.messages(), feed.messages()
        assert list(dead) == []
        assert [text for message in alive for text in message.contents] == ["a", "b"]
    finally:
        feed.close()


def test_a_call_that_waits_for_texts_ends_when_another_follows() -> None:
    texts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    feed = Feed(iter(texts.get, None))
    taken: list[object] = []
    try:
        dead = feed.messages()
        waiting = threading.Thread(target=lambda: taken.extend(dead))
        waiting.start()
        alive = feed.messages()
        waiting.join(60)
        assert not waiting.is_alive()
        texts.put("a")
        texts.put(None)
        assert [text for message in alive for text in message.contents] == ["a"]
        assert taken == []
    finally:
        texts.put(None)
        feed.close()
