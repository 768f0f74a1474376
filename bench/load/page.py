"""A load test as one HTML file that needs no other: plots, and the figures that the terminal shows."""

import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from matplotlib.axes import Axes

from bench import plotting
from bench.load.report import Report, rows, warnings
from bench.load.slo import to_line

# Title, field of the series, color and unit.
_SERVER_PLOTS: Final = (
    ("Batch occupancy: segments per decode step", "slots_per_step", plotting.BLUE, "segments"),
    ("Queue", "queue_segments", plotting.AMBER, "segments"),
    ("Decoding", "target_tokens_per_second", plotting.GREEN, "target tokens/s"),
    ("Processor of the server", "cpu_cores", plotting.GREY, "cores"),
    ("Memory of the server", "resident_mib", plotting.VIOLET, "MiB"),
)
_PAGE: Final = Path(__file__).with_name("page.html")
_TICKS: Final = (0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
_SIZE: Final = (6.2, 2.9)

_numbers = itertools.count()


def run_page(report: Report) -> str:
    setting = [*_settings(report["settings"]), *report["environment"].items()]
    sections = [*_plots(report), ("Figures", _table(rows(report))), ("Settings and generator", _table(setting))]
    model = report.get("measured", "")
    date = report["date"].replace("T", " ").replace("+00:00", " UTC")
    missed = [to_line(verdict) for verdict in report["slo"] if not verdict["met"]]
    targets = f"{len(missed)} of {len(report['slo'])} targets missed" if missed else "all targets met"
    parts = [f"model {model}", report["settings"]["address"], date, *([targets] if report["slo"] else [])]
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(_title(report)),
        subtitle=escape(" · ".join(parts + (["interrupted"] if report["interrupted"] else []))),
        warnings="\n".join(f'<p class="note">{escape(warning)}</p>' for warning in [*missed, *warnings(report)]),
        sections="\n".join(f"<section><h2>{escape(name)}</h2>{content}</section>" for name, content in sections),
    )


def _title(report: Report) -> str:
    match report["mode"]:
        case "ramp":
            return f"Ramp to p95 ≤ {report['p95_target_ms']:g} ms"
        case "open":
            return f"Open loop, {report['request_rate']:g} requests/s"
    return f"Closed loop, {report['max_concurrency']} at once"


def _settings(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Name those that were given, as on the command line."""
    given = {name: value for name, value in settings.items() if value not in (None, "", [], False)}
    return [
        (name.replace("_", "-"), ", ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in given.items()
    ]


def _table(cells: Iterable[tuple[str, Any]]) -> str:
    lines = [f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in cells]
    return f"<table>{''.join(lines)}</table>"


def _plots(report: Report) -> Iterator[tuple[str, str]]:
    """Draw a title and an SVG each: of the load, and of the server where its metrics were followed."""
    timeline, series, at = report.get("timeline", {}), report.get("server", {}), ""
    if report["mode"] == "ramp":
        at = f", at {report['request_rate']:.1f} requests/s" if timeline else ""
        yield "Latency against rate", _svg(lambda axes: _ramp(axes, report), "requests/s", "latency, ms")
    if timeline.get("t_s"):
        yield f"Latency over time{at}", _svg(lambda axes: plotting.draw_latencies(axes, timeline), "seconds")
        yield f"Latency by percentile{at}", _svg(lambda axes: _quantiles(axes, report), "percentile", "latency, ms")
        yield f"Requests over time{at}", _svg(lambda axes: plotting.draw_rates(axes, timeline), "seconds")
    if len(series.get("t_s", ())) > 1:
        for title, field, color, unit in _SERVER_PLOTS:
            yield title, _svg(partial(_line, t_s=series["t_s"], values=series[field], color=color), "seconds", unit)


def _svg(draw: Callable[[Axes], None], x_label: str, y_label: str = "") -> str:
    # Several plots of one page may not share the ids of their parts.
    with plotting.drawing(_SIZE, {"svg.hashsalt": f"plot {next(_numbers)}"}) as figure:
        axes = figure.subplots()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        draw(axes)
        plotting.legend(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()[written.getvalue().index("<svg") :]


def _quantiles(axes: Axes, report: Report) -> None:
    """Draw how long the slowest one in two, in ten, in a hundred take."""
    told = [(at, ms) for at, ms in report["latency_quantiles"] if at <= 100 - 100 / max(report["completed"], 1)]
    axes.plot([_nines(at) for at, _ in told], [ms for _, ms in told], color=plotting.BLUE)
    axes.set_xticks([_nines(at) for at in _TICKS], [f"{at:g}" for at in _TICKS])
    axes.set_xlim(0, max(_nines(99.0), *(_nines(at) for at, _ in told[-1:]), 0))
    plotting.scale(axes, [ms for _, ms in told])


def _nines(percentile: float) -> float:
    """Count nines: 0 at 0, 1 at 90, 2 at 99."""
    return -math.log10(1 - percentile / 100) if percentile < 100 else 5.0


def _ramp(axes: Axes, report: Report) -> None:
    steps, target_ms = sorted(report["steps"], key=lambda step: float(step["rate"])), report["p95_target_ms"]
    for held, color, label in ((True, plotting.GREEN, "p95, held"), (False, plotting.RED, "p95, failed")):
        of_kind = [step for step in steps if step["held"] is held and step["completed"]]
        p95_ms = [step["p95_e2el_ms"] for step in of_kind]
        axes.plot([step["rate"] for step in of_kind], p95_ms, "o", color=color, label=label)
    axes.axhline(target_ms, color=plotting.AMBER, linewidth=1.2, linestyle="--", label=f"target {target_ms:g} ms")
    plotting.scale(axes, [target_ms, *(step["p95_e2el_ms"] for step in steps if step["completed"])])


def _line(axes: Axes, t_s: Sequence[float], values: Sequence[float | None], color: str) -> None:
    axes.plot(t_s, plotting.floats(values), color=color)
    axes.set_ylim(0, max((value for value in values if value is not None), default=0.0) * 1.1 or 1.0)
