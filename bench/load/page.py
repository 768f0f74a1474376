"""A load test, or two of them side by side, as one HTML file that needs no other: what its templates show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench import plotting
from bench.load import plots
from bench.load.comparison import Verdict, compare, conclusion, different_settings
from bench.load.ramp import describe
from bench.load.report import Report, figures, warnings
from bench.load.slo import to_line

# Title, field of the series, its name for people, color and unit.
_SERVER_PLOTS: Final = (
    ("Batch occupancy", "slots_per_step", "segments per decode step, mean", plotting.BLUE, "segments"),
    ("Queue", "queue_segments", "segments waiting", plotting.AMBER, "segments"),
    ("Decoding", "target_tokens_per_second", "target tokens decoded", plotting.GREEN, "tokens/s"),
    ("Processor of the server", "cpu_cores", "cores busy", plotting.GREY, "cores"),
    ("Memory of the server", "resident_mib", "resident", plotting.VIOLET, "MiB"),
)


# The title of a plot, its SVG, and whether it takes a row of the page.
Plot = tuple[str, str, bool]
# The verdict at the top of a page: `good`, `bad` or `plain`, and its text.
Badge = tuple[str, str]


def run_page(report: Report) -> str:
    measured = "timeline" in report
    steps = sorted(report["steps"], key=lambda step: float(step["rate"])) if report["mode"] == "ramp" else []
    return _render(
        "run.html",
        report=report,
        title=_title(report),
        subtitle=_subtitle(report),
        badge=_badge(report["slo"]),
        warnings=warnings(report),
        cards=list(_cards(report)) if measured else [],
        steps=steps,
        steps_plot=plots.ramp(steps, report["p95_target_ms"]) if steps else "",
        plots=[*(_load_plots(report) if measured else ()), *_server_plots(report.get("server", {}))],
        figures=list(figures(report)) if measured else [],
        settings=list(_settings(report["settings"])),
    )


def compare_page(names: Sequence[str], before: Report, after: Report) -> str:
    rows, runs = compare(before, after), {"first": before, "second": after}
    timelines = {name: run["timeline"] for name, run in runs.items()}
    return _render(
        "compare.html",
        title=f"{names[0]} and {names[1]}",
        subtitle=conclusion(rows),
        badge=_verdict({row.verdict for row in rows}),
        rows=rows,
        plots=[
            ("Latency by percentile", plots.quantiles(runs), False),
            ("Latency over time", plots.latencies_over_time(timelines), False),
        ],
        differences=different_settings(before, after),
    )


def _render(template: str, **context: Any) -> str:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"thousands": "{:,}".format, "describe": describe, "rounded": _rounded, "to_line": to_line}
    return environment.get_template(template).render(context)


def _verdict(verdicts: set[Verdict]) -> Badge:
    if "not comparable" in verdicts:
        return "plain", "not comparable"
    said = [verdict for verdict in ("better", "worse") if verdict in verdicts]
    kind = {"better": "good", "worse": "bad"}[said[0]] if len(said) == 1 else "plain"
    return kind, " and ".join(said) or "the same"


def _title(report: Report) -> str:
    match report["mode"]:
        case "ramp":
            return f"Ramp to p95 ≤ {report['p95_target_ms']:g} ms"
        case "open":
            return f"Open loop, {report['request_rate']:g} requests/s"
    return f"Closed loop, {report['max_concurrency']} at once"


def _subtitle(report: Report) -> str:
    models = ", ".join(model["name"] for model in report.get("models", []))
    date = report["date"].replace("T", " ").replace("+00:00", " UTC")
    parts = [f"model {models}", report["settings"]["address"], date]
    return " · ".join(parts + (["interrupted"] if report["interrupted"] else []))


def _badge(verdicts: Sequence[Mapping[str, Any]]) -> Badge | None:
    if not verdicts:
        return None
    missed = sum(not verdict["met"] for verdict in verdicts)
    return ("bad", f"{missed} of {len(verdicts)} targets missed") if missed else ("good", "all targets met")


def _cards(report: Report) -> Iterable[tuple[str, str, str]]:
    """Name the figures in large type, each with its unit."""
    if report["mode"] == "ramp":
        yield "highest rate held", _rounded(report["highest_rate"]), "/s"
    for percentile in (50, 95, 99):
        yield f"latency p{percentile}", _rounded(report[f"p{percentile}_e2el_ms"]), "ms"
    if report.get("p95_ttft_ms") is not None:
        yield "first text p95", _rounded(report["p95_ttft_ms"]), "ms"
    within = "" if report["goodput_ms"] is None else f" ≤ {report['goodput_ms']:g} ms"
    yield f"goodput{within}", _rounded(report["request_goodput"]), "/s"
    yield "sentences", _rounded(report["sentence_throughput"]), "/s"
    yield "not answered", f"{100 * (report['error_rate'] or 0.0):.3g}", "%"


def _load_plots(report: Report) -> Iterable[Plot]:
    timeline = report["timeline"]
    if not timeline["t_s"]:
        return
    at = f", at {report['request_rate']:.1f} requests/s" if report["mode"] == "ramp" else ""
    yield f"Latency over time{at}", plots.latency_over_time(timeline), True
    yield f"Latency by percentile{at}", plots.quantiles({"": report}), False
    yield f"Requests over time{at}", plots.rates_over_time(timeline), False
    if timeline["errors"]:
        yield f"Errors over time{at}", plots.errors_over_time(timeline), False


def _server_plots(series: Mapping[str, Any]) -> Iterable[Plot]:
    if len(series.get("t_s", ())) < 2:
        return
    for title, field, name, color, unit in _SERVER_PLOTS:
        yield title, plots.server_line(series["t_s"], series[field], name, color, unit), False


def _rounded(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def _settings(settings: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Name those that were given, as on the command line."""
    for name, value in settings.items():
        if value not in (None, "", [], False):
            yield name.replace("_", "-"), _text(value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value) if isinstance(value, list) else str(value)
