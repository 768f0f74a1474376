import pytest

from plugins.processes.restarts import Group, Member


def group(*names: str) -> Group:
    """A group whose members run, as it is once a supervisor has forked."""
    made = Group([Member(name) for name in names] + [Member("metrics", is_server=False)])
    for pid, member in enumerate(made.due(0.0), 1):
        member.pid = pid
    return made


def serving(*names: str) -> Group:
    made = group(*names)
    for member in made.members:
        made.note_serving(member, 0.0)
    return made


def start(group: Group, now_s: float) -> None:
    for member in group.due(now_s):
        member.pid = 99


def test_all_start_at_once_and_none_twice() -> None:
    made = group("a", "b")
    assert [member.name for member in made.running] == ["a", "b", "metrics"]
    assert made.due(0.0) == []
    assert made.wait_s(0.0) is None
    assert not made.all_serve
    assert serving("a").all_serve


def test_the_first_end_has_no_pause_and_the_next_ones_longer_and_longer_pauses() -> None:
    made = serving("a", "b")
    first, now_s, pauses = made.members[0], 1.0, []
    for _ in range(9):
        made.note_end(first, now_s)
        pauses.append(made.wait_s(now_s))
        if pauses[-1]:
            assert made.due(now_s + pauses[-1] - 0.01) == []
        now_s += pauses[-1]
        assert made.due(now_s) == [first]
        start(made, now_s)
        made.note_serving(first, now_s)
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30, 30]


def test_a_long_life_makes_up_for_what_was_before() -> None:
    made = serving("a")
    first = made.members[0]
    for _ in range(4):
        made.note_end(first, 10.0)
        start(made, 100.0)
        made.note_serving(first, 100.0)
    made.note_end(first, 159.0)
    assert made.wait_s(159.0) == 8
    start(made, 200.0)
    made.note_serving(first, 200.0)
    made.note_end(first, 261.0)
    assert made.wait_s(261.0) == 0


@pytest.mark.parametrize("name", ["a", "b", "metrics"])
def test_all_are_given_up_where_one_never_served(name: str) -> None:
    made = group("a", "b")
    [member] = [member for member in made.members if member.name == name]
    made.note_end(member, 1.0)
    assert made.stopping
    assert made.due(1000.0) == []
    assert made.wait_s(1.0) is None


def test_as_long_as_another_serves_a_start_is_tried_again() -> None:
    made = serving("a", "b")
    first, second = made.members[:2]
    for now_s in range(0, 1000, 100):
        made.note_end(first, float(now_s))
        start(made, now_s + 50.0)
    assert not made.stopping
    for now_s in range(1000, 1500, 100):  # the page of the metrics translates nothing
        made.note_end(second, float(now_s))
        start(made, now_s + 50.0)
    assert not made.stopping
    made.note_end(second, 1600.0)
    assert made.stopping


def test_nothing_starts_while_all_stop() -> None:
    made = serving("a", "b")
    made.stopping = True
    made.note_end(made.members[0], 1.0)
    assert made.due(100.0) == []
    assert made.wait_s(1.0) is None
    assert [member.name for member in made.running] == ["b", "metrics"]
