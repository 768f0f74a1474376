"""The report of a load test for people, in lines of `name: figure`."""

from collections.abc import Mapping
from typing import Any

from bench.load.figures import LATE_S, PERCENTILES
from bench.load.ramp import describe
from bench.load.slo import to_line

GENERATOR_WARNING = (
    "the generator was late, by a good part of the latency: this load measures it as well as the server. Send from a "
    "machine of its own, or put more texts into a request (--texts-per-request)"
)


# From this share on the result cache does more of the work than the engine.
HIGH_CACHE_SHARE = 0.5


def cache_warning(report: Mapping[str, Any]) -> str | None:
    """Warn where the figures are of the result cache more than of the engine; None where they are not."""
    share = report.get("result_cache_share")
    if share is None or share < HIGH_CACHE_SHARE:
        return None
    return (
        f"{cache_share(report)} of the answers came from the result cache: the figures are of the cache more than of "
        "the engine. Use more texts, or --result-cache-mb 0 on the server"
    )


def cache_share(report: Mapping[str, Any]) -> str:
    """Say which share of the answers came from the server's result cache."""
    share = report.get("result_cache_share")
    return "unknown, only --metrics-address tells" if share is None else f"{100 * share:.3g} %"


def to_text(report: dict[str, Any]) -> str:
    parts = (_ramp_lines, _run_lines if "duration" in report else _nothing, _verify_lines, _slo_lines)
    return "\n".join(line for part in parts for line in part(report))


def _ramp_lines(report: dict[str, Any]) -> list[str]:
    if report["mode"] != "ramp":
        return []
    lines = [_line(f"{step['rate']:.1f} requests/s", describe(step)) for step in report["steps"]]
    target = f"with p95 <= {report['p95_target_ms']:g} ms"
    if report["highest_rate"] is None:
        return [*lines, _line("highest rate", f"none {target}")]
    lines.append(_line("highest rate", f"{report['highest_rate']:.1f} requests/s {target}"))
    if report["next_rate"] is not None:
        lines.append(_line("not held", f"{report['next_rate']:.1f} requests/s: {report['next_why']}"))
    return [*lines, "", _line("at that rate", "")]


def _nothing(report: dict[str, Any]) -> list[str]:
    return [_line("requests", "none")]


def _run_lines(report: dict[str, Any]) -> list[str]:
    parts = (_load_lines, _throughput_lines, _latency_lines, _stream_lines, _priority_lines, _error_lines)
    return [line for part in parts for line in part(report)]


def outcomes(report: dict[str, Any]) -> str:
    said = [f"{report[name]} {name}" for name in ("rejected", "cancelled", "failed", "unfinished") if report.get(name)]
    return ", ".join([f"{report['completed']} answered", *said])


def _load_lines(report: dict[str, Any]) -> list[str]:
    requests = outcomes(report)
    if report["warmup_requests"]:
        requests += f" (and {report['warmup_requests']} of the warm-up, not counted)"
    lines = [
        _line("requests", requests),
        _line("duration", f"{report['duration']:.2f} s" + (", interrupted" if report["interrupted"] else "")),
        _line("most requests at once", str(report["max_concurrent_requests"])),
    ]
    if report["offered_rate"] is None:
        return lines
    offered = f"{report['offered_rate']:.2f} requests/s (asked for {report['request_rate']:g})"
    late = f"{report['late_sends']} sends more than {LATE_S * 1e3:g} ms late"
    delay = f"p95 {report['p95_send_delay_ms']:.1f} ms, max {report['max_send_delay_ms']:.1f} ms"
    lines += [_line("offered rate", offered), _line("generator", f"{late}; lateness {delay}")]
    return [*lines, _line("warning", GENERATOR_WARNING)] if report["generator_limited"] else lines


def _throughput_lines(report: dict[str, Any]) -> list[str]:
    within = "" if report["goodput_ms"] is None else f" within {report['goodput_ms']:g} ms"
    return [
        _line("achieved rate", f"{report['request_throughput']:.2f} requests/s"),
        _line("goodput", f"{report['request_goodput']:.2f} requests/s{within}"),
        _line("sentences", f"{report['sentence_throughput']:.2f} /s"),
        _line("source tokens", f"{report['input_throughput']:.1f} /s"),
        _line("target tokens", f"{report['output_throughput']:.1f} /s"),
        _line("from the result cache", cache_share(report)),
        *([_line("warning", warning)] if (warning := cache_warning(report)) else []),
    ]


def _latency_lines(report: dict[str, Any]) -> list[str]:
    if not report["completed"]:
        return [_line("latency", "no request was answered")]
    names = ["mean", *(f"p{percentile}" for percentile in PERCENTILES), "max"]
    return [_line(f"latency {name}", f"{report[f'{name}_e2el_ms']:.1f} ms") for name in names]


def _stream_lines(report: dict[str, Any]) -> list[str]:
    parts = {"ttft": "first text", "itl": "between pieces"}
    return [
        _line(f"{text} {name}", f"{report[f'{name}_{field}_ms']:.1f} ms")
        for field, text in parts.items()
        if report.get(f"mean_{field}_ms") is not None
        for name in ("mean", "p50", "p95", "p99")
    ]


def _priority_lines(report: dict[str, Any]) -> list[str]:
    """Write a line for each priority, where there were requests of both."""
    lines = []
    for name, part in report.get("by_priority", {}).items():
        said = f"{outcomes(part)}, {part['request_goodput']:.2f} good/s"
        if part["completed"]:
            said += ", latency " + ", ".join(f"p{p} {part[f'p{p}_e2el_ms']:.1f} ms" for p in (50, 95, 99))
        lines.append(_line(name, said))
    return lines


def _error_lines(report: dict[str, Any]) -> list[str]:
    return [
        _line(error["outcome"], f"{error['count']} {error['code']} {error['reason']}, the first: {error['message']}")
        for error in report["errors"]
    ]


def _verify_lines(report: dict[str, Any]) -> list[str]:
    if "verify_texts" not in report:
        return []
    compared, different = report["verify_compared"], report["verify_different"]
    lines = [_line("compared", f"{compared} answers with those of {report['verify_texts']} texts given alone")]
    if report["verify_unanswered"]:
        lines.append(_line("not compared", f"{report['verify_unanswered']} texts that got no answer alone"))
    lines.append(_line("different", str(different)))
    for example in report["verify_examples"]:
        shown = {name: example[name]["text"] for name in ("alone", "under_load")}
        if shown["alone"] == shown["under_load"]:  # they differ in what is counted
            shown = {name: str(example[name]) for name in shown}
        lines += [_line("text", example["text"]), _line("  alone", shown["alone"])]
        lines.append(_line("  under load", shown["under_load"]))
    return lines


def _slo_lines(report: dict[str, Any]) -> list[str]:
    return [_line("target", to_line(verdict)) for verdict in report.get("slo", []) if verdict["met"]]


def _line(name: str, figure: str) -> str:
    return f"{name + ':':<24}{figure}".rstrip()
