import asyncio
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from prometheus_client import generate_latest

from bench.load.calls import NoServerError
from bench.load.scrape import Page, Scraper, server_series, totals
from service.telemetry.metrics import Metrics


def page_of(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_series_are_of_what_happened_between_two_pages() -> None:
    metrics = Metrics()
    own = metrics.of("en-de")
    pages = [Page(9.0, page_of(metrics)), Page(10.0, page_of(metrics))]
    for slots in (2, 4):
        own.decode_batch_slots.observe(slots)
    own.target_tokens_total.inc(6)
    metrics.queue_segments.set_function(lambda: 7.0)
    metrics.queue_source_tokens.set_function(lambda: 70.0)
    pages.append(Page(12.0, page_of(metrics)))
    series = server_series(pages, start_s=10.0)
    assert series["t_s"] == [0.0, 2.0]
    assert series["slots_per_step"] == [0.0, 3.0]
    assert series["steps_per_second"] == [0.0, 1.0]
    assert series["target_tokens_per_second"] == [0.0, 3.0]
    assert series["queue_segments"] == [0.0, 7.0]
    assert series["queue_source_tokens"] == [0.0, 70.0]
    assert all(mib > 1 for mib in series["resident_mib"])


def test_intervals_of_the_warm_up_are_left_out() -> None:
    pages = [Page(float(at_s), page_of(Metrics())) for at_s in range(4)]
    assert server_series(pages, start_s=2.5)["t_s"] == [0.5]


def test_what_a_page_does_not_say_is_not_known() -> None:
    series = server_series([Page(0.0, ""), Page(1.0, "")], start_s=0.0)
    assert series["slots_per_step"] == [None]
    assert series["queue_segments"] == [None]
    assert series["resident_mib"] == [None]


def test_one_page_says_nothing() -> None:
    assert server_series([Page(0.0, page_of(Metrics()))], start_s=0.0) == {}


def cached(hits: int, misses: int, coalesced: int, at_s: float) -> Page:
    metrics = Metrics()
    own = metrics.of("en-de")
    own.result_cache_hits_total.inc(hits)
    own.result_cache_misses_total.inc(misses)
    own.coalesced_segments_total.inc(coalesced)
    return Page(at_s, page_of(metrics))


def cache_share(pages: list[Page], start_s: float) -> float | None:
    return totals(pages, start_s, 1)["result_cache_share"]


def test_the_share_of_the_result_cache_is_of_all_segments_since_the_start() -> None:
    before, after = cached(100, 100, 0, at_s=0.0), cached(102, 105, 1, at_s=3.0)
    assert cache_share([before, after], start_s=0.0) == 0.25
    assert cache_share([cached(0, 9, 0, at_s=0.0), before._replace(at_s=1.0), after], start_s=2.0) == 0.25
    assert cache_share([cached(0, 0, 0, at_s=0.0), after], start_s=0.0) == 102 / 208


def test_a_share_of_nothing_is_not_known() -> None:
    page = cached(1, 1, 1, at_s=0.0)
    assert cache_share([page], 0.0) is None
    assert cache_share([page, page], 0.0) is None
    assert cache_share([Page(0.0, ""), Page(1.0, "")], 0.0) is None


def test_processor_time_is_for_each_request() -> None:
    pages = [Page(float(at_s), f"process_cpu_seconds_total {at_s}\n") for at_s in (0, 1, 3)]
    assert totals(pages, 1.5, requests=400)["server_cpu_ms"] == 5.0
    assert totals(pages, 1.5, requests=0)["server_cpu_ms"] is None
    assert totals([Page(0.0, ""), Page(1.0, "")], 0.0, requests=4)["server_cpu_ms"] is None


def test_a_server_that_was_started_again_says_nothing_of_the_whole() -> None:
    pages = [Page(float(at_s), f"process_cpu_seconds_total {cpu_s}\n") for at_s, cpu_s in enumerate((3, 4, 1, 5))]
    assert totals(pages, 0.0, requests=4)["server_cpu_ms"] is None
    assert totals(pages, 2.0, requests=4)["server_cpu_ms"] == 1e3
    assert server_series(pages, 0.0)["cpu_cores"] == [1.0, None, 4.0]
    assert cache_share([cached(9, 9, 0, at_s=0.0), cached(1, 1, 0, at_s=1.0)], 0.0) is None


async def test_what_does_not_speak_http_is_one_clear_error() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\x00\x18\x04\x00\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        scraper = Scraper(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", 1.0)
        with pytest.raises(NoServerError, match=r"^no metrics at "):
            await scraper.check()
        await scraper.look(0.0)
    assert scraper.pages == []


async def test_nobody_at_the_address_is_one_clear_error() -> None:
    with pytest.raises(NoServerError, match=r"^no metrics at http://127.0.0.1:1/metrics: "):
        await Scraper("127.0.0.1:1", 1.0).check()


async def test_a_page_that_does_not_come_is_left_out() -> None:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(500 if len(asked) == 1 else 200)
            self.end_headers()
            self.wfile.write(b"process_cpu_seconds_total 1\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            scraper = Scraper(f"127.0.0.1:{server.server_port}", 0.0)
            task = asyncio.create_task(scraper.run(lambda: 0.0))
            async with asyncio.timeout(60):
                while len(scraper.pages) < 2:
                    await asyncio.sleep(0.001)
            task.cancel()
        finally:
            server.shutdown()
    assert {page.text for page in scraper.pages} == {"process_cpu_seconds_total 1\n"}
    assert asked[0] == "/metrics"
