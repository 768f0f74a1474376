"""What a load test found: one flat record of figures, and the same for people.

Names follow `vllm bench serve` where it has one: `e2el` is the end-to-end latency.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.samples import Samples

PERCENTILES = (50, 90, 95, 99)

# An event loop wakes a millisecond late by its nature: beyond this the generator was too busy.
LATE_S = 0.010


def summarize(samples: Samples) -> dict[str, Any]:
    """The figures of the requests that count, ready for JSON; a figure of no request at all is None.

    Latencies are of the requests that succeeded, from the moment each was due, and percentiles are taken
    from all of them. Throughputs are over `duration`, from the end of the warm-up to the last answer.
    """
    duration_s = max(samples.last_ended_s - samples.warmup_s, 0.0)
    tokens = samples.source_tokens + samples.target_tokens
    return {
        "duration": duration_s,
        "num_requests": samples.completed + samples.failed,
        "completed": samples.completed,
        "failed": samples.failed,
        "warmup_requests": samples.warmup_requests,
        "total_sentences": samples.sentences,
        "total_input_tokens": samples.source_tokens,
        "total_output_tokens": samples.target_tokens,
        "request_throughput": _per_second(samples.completed, duration_s),
        "sentence_throughput": _per_second(samples.sentences, duration_s),
        "input_throughput": _per_second(samples.source_tokens, duration_s),
        "output_throughput": _per_second(samples.target_tokens, duration_s),
        "total_token_throughput": _per_second(tokens, duration_s),
        **_latency_ms(np.asarray(samples.latency_s)),
        **_lateness(np.asarray(samples.send_delay_s)),
        **_errors(samples),
    }


def _per_second(count: int, duration_s: float) -> float:
    return count / duration_s if duration_s else 0.0


def _latency_ms(latency_s: NDArray[np.float64]) -> dict[str, float | None]:
    """Field -> milliseconds, from [succeeded requests] seconds."""
    percentiles = [f"p{percentile}_e2el_ms" for percentile in PERCENTILES]
    names = ["mean_e2el_ms", "median_e2el_ms", "std_e2el_ms", *percentiles, "max_e2el_ms"]
    if not latency_s.size:
        return dict.fromkeys(names)
    latency_ms = latency_s * 1e3
    at = np.percentile(latency_ms, PERCENTILES)
    figures = [latency_ms.mean(), np.median(latency_ms), latency_ms.std(), *at, latency_ms.max()]
    return {name: float(figure) for name, figure in zip(names, figures, strict=True)}


def _lateness(send_delay_s: NDArray[np.float64]) -> dict[str, Any]:
    """How far the generator itself was behind, from [sent requests] seconds; the latencies include it."""
    delay_ms = send_delay_s * 1e3 if send_delay_s.size else np.zeros(1)
    return {
        "late_sends": int((send_delay_s > LATE_S).sum()),
        "mean_send_delay_ms": float(delay_ms.mean()),
        "p99_send_delay_ms": float(np.percentile(delay_ms, 99)),
        "max_send_delay_ms": float(delay_ms.max()),
    }


def _errors(samples: Samples) -> dict[str, Any]:
    by_code: dict[str, int] = {}
    for (code, _), count in samples.errors.items():
        by_code[code] = by_code.get(code, 0) + count
    details = [
        {"code": code, "reason": reason, "count": count, "message": samples.messages[code, reason]}
        for (code, reason), count in samples.errors.most_common()
    ]
    return {"errors_by_code": by_code, "errors": details}


def to_text(report: dict[str, Any]) -> str:
    """The report of one load test for people, in lines of `name: figure`."""
    parts = (_load_lines, _throughput_lines, _latency_lines, _error_lines, _verify_lines)
    return "\n".join(line for part in parts for line in part(report))


def _load_lines(report: dict[str, Any]) -> list[str]:
    requests = f"{report['completed']} answered, {report['failed']} failed"
    if report["unfinished"]:
        requests += f", {report['unfinished']} unfinished"
    if report["warmup_requests"]:
        requests += f" (and {report['warmup_requests']} of the warm-up, not counted)"
    lines = [
        _line("requests", requests),
        _line("duration", f"{report['duration']:.2f} s" + (", interrupted" if report["interrupted"] else "")),
        _line("most requests at once", str(report["max_concurrent_requests"])),
    ]
    if report["mode"] == "closed":
        return lines
    offered = f"{report['offered_rate']:.2f} requests/s (asked for {report['request_rate']:g})"
    late = f"{report['late_sends']} sends more than {LATE_S * 1e3:g} ms late"
    delay = f"p99 {report['p99_send_delay_ms']:.1f} ms, max {report['max_send_delay_ms']:.1f} ms"
    return [*lines, _line("offered rate", offered), _line("generator", f"{late}; delay {delay}")]


def _throughput_lines(report: dict[str, Any]) -> list[str]:
    return [
        _line("achieved rate", f"{report['request_throughput']:.2f} requests/s"),
        _line("sentences", f"{report['sentence_throughput']:.2f} /s"),
        _line("source tokens", f"{report['input_throughput']:.1f} /s"),
        _line("target tokens", f"{report['output_throughput']:.1f} /s"),
    ]


def _latency_lines(report: dict[str, Any]) -> list[str]:
    if not report["completed"]:
        return [_line("latency", "no request was answered")]
    names = ["mean", *(f"p{percentile}" for percentile in PERCENTILES), "max"]
    return [_line(f"latency {name}", f"{report[f'{name}_e2el_ms']:.1f} ms") for name in names]


def _error_lines(report: dict[str, Any]) -> list[str]:
    return [
        _line("error", f"{error['count']} {error['code']} {error['reason']}, the first: {error['message']}")
        for error in report["errors"]
    ]


def _verify_lines(report: dict[str, Any]) -> list[str]:
    """What `bench.verify` found, where it was asked."""
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


def _line(name: str, figure: str) -> str:
    return f"{name + ':':<24}{figure}"
