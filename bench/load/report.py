"""The report of a load test for people, in rows of a name and a figure."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.load.figures import LATE_S, PERCENTILES
from bench.load.ramp import describe
from bench.load.slo import to_line

Report = Mapping[str, Any]
Rows = Iterator[tuple[str, str]]

GENERATOR_WARNING = (
    "the generator was late, by a good part of the latency: this load measures it as well as the server. Send from a "
    "machine of its own, or put more texts into a request (--texts-per-request)"
)
# From this share on the result cache does more of the work than the engine.
HIGH_CACHE_SHARE = 0.5
_WIDTH = 24


def to_text(report: Report) -> str:
    parts = [*rows(report), *(("warning", warning) for warning in warnings(report))]
    return "\n".join(f"{name and f'{name}:':<{_WIDTH}}{figure}".rstrip() for name, figure in parts)


def rows(report: Report) -> Rows:
    """Write everything but the warnings and the targets that were missed, which the command tells itself."""
    yield from _ramp_rows(report)
    yield from figures(report)
    yield from _priority_rows(report)
    for error in report.get("errors", ()):
        yield error["outcome"], f"{error['count']} {error['code']} {error['reason']}, the first: {error['message']}"
    yield from (("target", to_line(verdict)) for verdict in report.get("slo", []) if verdict["met"])


def warnings(report: Report) -> list[str]:
    """Say why the figures may not be what was asked for."""
    found = [GENERATOR_WARNING] if report.get("generator_limited") else []
    if (report.get("result_cache_share") or 0.0) >= HIGH_CACHE_SHARE:
        found.append(
            f"{cache_share(report)} of the answers came from the result cache: the figures are of the cache more than "
            "of the engine. Use more texts, or --result-cache-mb 0 on the server"
        )
    return found


def cache_share(report: Report) -> str:
    """Say which share of the answers came from the server's result cache."""
    share = report.get("result_cache_share")
    if "result_cache_share" not in report:
        return "unknown, only --metrics-address tells"
    return "unknown" if share is None else f"{100 * share:.3g} %"


def outcomes(report: Report) -> str:
    said = [f"{report[name]} {name}" for name in ("rejected", "cancelled", "failed", "unfinished") if report.get(name)]
    return ", ".join([f"{report['completed']} answered", *said])


def figures(report: Report) -> Rows:
    """Write the figures of all requests of a run."""
    if "duration" not in report:
        yield "requests", "none"
        return
    if report.get("measured"):
        yield "model", report["measured"]
    warm_up = f" (and {report['warmup_requests']} of the warm-up, not counted)" if report["warmup_requests"] else ""
    yield "requests", outcomes(report) + warm_up
    yield "duration", f"{report['duration']:.2f} s" + (", interrupted" if report["interrupted"] else "")
    yield "most requests at once", str(report["max_concurrent_requests"])
    if report["offered_rate"] is not None:
        yield "offered rate", f"{report['offered_rate']:.2f} requests/s (asked for {report['request_rate']:g})"
        late = f"{report['late_sends']} sends more than {LATE_S * 1e3:g} ms late; lateness "
        yield "generator", f"{late}p95 {report['p95_send_delay_ms']:.1f} ms, max {report['max_send_delay_ms']:.1f} ms"
    yield "achieved rate", f"{report['request_throughput']:.2f} requests/s"
    within = "" if report["goodput_ms"] is None else f" within {report['goodput_ms']:g} ms"
    yield "goodput", f"{report['request_goodput']:.2f} requests/s{within}"
    yield "sentences", f"{report['sentence_throughput']:.2f} /s"
    yield "source tokens", f"{report['input_throughput']:.1f} /s"
    yield "target tokens", f"{report['output_throughput']:.1f} /s"
    yield "from the result cache", cache_share(report)
    if report.get("server_cpu_ms") is not None:
        yield "processor time", f"{report['server_cpu_ms']:.2f} ms of the server a request"
    if not report["completed"]:
        yield "latency", "no request was answered"
    names = ("mean", *(f"p{percentile}" for percentile in PERCENTILES), "max")
    for field, what in (("e2el", "latency"), ("ttft", "first text"), ("itl", "between pieces")):
        if report.get(f"mean_{field}_ms") is not None:
            for name in names:
                yield f"{what} {name}", f"{report[f'{name}_{field}_ms']:.1f} ms"
    yield from _verify_rows(report)


def _ramp_rows(report: Report) -> Rows:
    if report["mode"] != "ramp":
        return
    for step in report["steps"]:
        yield f"{step['rate']:.1f} requests/s", describe(step)
    target = f"with p95 <= {report['p95_target_ms']:g} ms"
    if report["highest_rate"] is None:
        yield "highest rate", f"none {target}"
        return
    yield "highest rate", f"{report['highest_rate']:.1f} requests/s {target}"
    if report["next_rate"] is not None:
        yield "not held", f"{report['next_rate']:.1f} requests/s: {report['next_why']}"
    yield "", ""
    yield "at that rate", ""


def _priority_rows(report: Report) -> Rows:
    """Write a row for each priority, where there were requests of both."""
    for name, part in report.get("by_priority", {}).items():
        said = f"{outcomes(part)}, {part['request_goodput']:.2f} good/s"
        if part["completed"]:
            said += ", latency " + ", ".join(f"p{p} {part[f'p{p}_e2el_ms']:.1f} ms" for p in (50, 95, 99))
        yield name, said


def _verify_rows(report: Report) -> Rows:
    if "verify_texts" not in report:
        return
    yield "compared", f"{report['verify_compared']} answers with those of {report['verify_texts']} texts given alone"
    if report["verify_unanswered"]:
        yield "not compared", f"{report['verify_unanswered']} texts that got no answer alone"
    yield "different", str(report["verify_different"])
    for example in report["verify_examples"]:
        shown = {name: example[name]["text"] for name in ("alone", "under_load")}
        if shown["alone"] == shown["under_load"]:  # they differ in what is counted
            shown = {name: str(example[name]) for name in shown}
        yield "text", example["text"]
        yield "  alone", shown["alone"]
        yield "  under load", shown["under_load"]
