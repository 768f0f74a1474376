import asyncio
from types import SimpleNamespace

import pytest

from bench.load import progress
from bench.load.samples import Samples


async def test_lines_tell_of_the_warm_up_and_then_of_the_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_INTERVAL_S", 0)
    samples = Samples(warmup_s=2.0)
    generator = SimpleNamespace(in_flight=3, now_s=lambda: 1.0)
    showing = asyncio.create_task(progress.show_progress(generator, samples))
    lines: list[str] = []
    async with asyncio.timeout(60):
        while len(lines) < 2:
            await asyncio.sleep(0)
            if said := capsys.readouterr().err.splitlines():
                lines.append(said[-1])
                generator.now_s = lambda: 4.0
    showing.cancel()
    assert lines == ["1 s: warm-up, 3 in flight", "4 s: 0 answered, 0.0/s, 3 in flight, 0 not answered"]
