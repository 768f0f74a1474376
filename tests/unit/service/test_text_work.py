"""Texts of several calls, large ones, on the one thread for them."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from service.settings import Settings
from service.terms import Terms
from service.text_work import TextWork
from tests.unit.service.house import until

LARGE = "x" * 10_000


class Translator:
    """Makes of each text its first character, and says which it has begun; waits for each where it shall."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def prepare(self, text: str, *_: Any) -> str:
        self.begun.append(text[0])
        self.may_go_on.wait(60)
        return text[0]


async def prepare(work: TextWork, translator: Translator, *contents: str) -> dict[int, Any]:
    call: Any = SimpleNamespace(progress=lambda *_: None)
    model: Any = SimpleNamespace(translator=translator)
    return await work.prepare(model, Terms(), call, contents, 7)


async def test_texts_are_numbered_whether_large_or_not() -> None:
    work, translator = TextWork(Settings()), Translator()
    assert await prepare(work, translator, "a", "b") == {7: "a", 8: "b"}
    assert await prepare(work, translator, "a", "b" + LARGE, "c", "d", "e" + LARGE) == dict(enumerate("abcde", 7))


async def test_a_call_with_many_large_texts_waits_for_the_large_text_of_another() -> None:
    work, translator = TextWork(Settings()), Translator()
    await asyncio.gather(
        prepare(work, translator, *["a" + LARGE] * 4),
        prepare(work, translator, "b" + LARGE),
    )
    assert translator.begun == ["a", "b", "a", "a", "a"]


async def test_a_call_that_is_cancelled_has_no_further_text_prepared() -> None:
    work, translator = TextWork(Settings()), Translator()
    translator.may_go_on.clear()
    task = asyncio.create_task(prepare(work, translator, *["a" + LARGE] * 4))
    await until(lambda: bool(translator.begun))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    translator.may_go_on.set()
    await prepare(work, translator, "b" + LARGE)
    assert translator.begun == ["a", "b"]


@pytest.mark.parametrize(("weight", "on_the_loop"), [(128, True), (129, False)])
async def test_a_text_that_takes_long_to_put_together_leaves_the_event_loop_alone(
    weight: int, on_the_loop: bool
) -> None:
    text: Any = SimpleNamespace(weight=weight, result=threading.get_ident)
    call: Any = SimpleNamespace(text=lambda index: text)
    outcomes = await TextWork(Settings()).outcomes(call, [0])
    assert (outcomes[0] == threading.get_ident()) is on_the_loop
