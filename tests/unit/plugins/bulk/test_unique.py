from plugins.bulk.rows import Row
from plugins.bulk.unique import SeenIds


def seen(*ids: str) -> set[int]:
    found = SeenIds()
    assert [row.id for row in found.each(Row(id_, 0, 0, 0) for id_ in ids)] == list(ids)
    return found.repeated()


def test_the_hashes_of_repeated_ids_are_given() -> None:
    assert seen() == set()
    assert seen("a") == set()
    assert seen("a", "b", "c") == set()
    assert seen("b", "a", "c", "b", "a", "b") == {hash("a"), hash("b")}
