"""The store against a list in order of use."""

from hypothesis import example, given
from hypothesis import strategies as st

from service.lru import LruStore

LIMIT = 20
keys = st.integers(0, 6)
puts = st.tuples(st.just("put"), keys, st.integers(1, LIMIT + 2))
gets = st.tuples(st.just("get"), keys, st.none())


@given(st.lists(puts | gets, max_size=60))
@example([("put", 0, 8), ("put", 1, 8), ("get", 0, None), ("put", 2, 8)])  # 1 goes, not 0
def test_the_least_recently_used_goes_first_and_only_for_room(operations) -> None:
    grown: list[int] = []
    store: LruStore[int, int] = LruStore(LIMIT, grown.append)
    model: list[tuple[int, int]] = []  # key and size, the least recently used first
    for operation, key, size in operations:
        known = [entry for entry in model if entry[0] == key]
        if operation == "get":
            assert store.get(key) == (known[0][1] if known else None)
            model = [entry for entry in model if entry[0] != key] + known
        else:
            model = [entry for entry in model if entry[0] != key]
            room = LIMIT - size if size <= LIMIT else LIMIT
            evicted = 0
            while sum(entry[1] for entry in model) > room:
                del model[0]
                evicted += 1
            if size <= LIMIT:
                model.append((key, size))
            assert store.put(key, size, size) == evicted
        assert store.size_bytes == sum(grown) == sum(entry[1] for entry in model) <= LIMIT
    for key, size in model:
        assert store.get(key) == size


def test_a_store_without_room_keeps_nothing() -> None:
    store: LruStore[str, str] = LruStore(0, lambda _: None)
    assert store.put("key", "value", 1) == 0
    assert store.get("key") is None
    assert store.size_bytes == 0
