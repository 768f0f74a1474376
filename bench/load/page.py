"""A load test, or two of them side by side, as one HTML file that needs no other."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bench.load import plots
from bench.load.comparison import Row, compare, conclusion, different_settings
from bench.load.ramp import describe
from bench.load.report import GENERATOR_WARNING, cache_share, cache_warning
from bench.load.slo import to_line

Report = Mapping[str, Any]

# Title, field of the series, its name for people, color and unit.
_SERVER_PLOTS = (
    ("Batch occupancy", "slots_per_step", "segments per decode step, mean", plots.BLUE, "segments"),
    ("Queue", "queue_segments", "segments waiting", plots.AMBER, "segments"),
    ("Decoding", "target_tokens_per_second", "target tokens decoded", plots.GREEN, "tokens/s"),
    ("Processor of the server", "cpu_cores", "cores busy", plots.GREY, "cores"),
    ("Memory of the server", "resident_mib", "resident", plots.VIOLET, "MiB"),
)


def run_page(report: Report) -> str:
    """The page of one run.

    Args:
        report: with its settings, as --json writes it.
    """
    shown = "timeline" in report
    parts = [
        _header(_title(report), _subtitle(report), _badge(report)),
        *_warnings(report),
        _cards(_key_figures(report)) if shown else "",
        '<div class="grid">',
        *_ramp_sections(report),
        *(_plot_sections(report) if shown else ()),
        *_server_sections(report.get("server", {})),
        '</div><div class="columns">',
        *_table_sections(report),
        "</div>",
        f"<footer>{escape(_how_to_read(report))}</footer>",
    ]
    return _document(_title(report), parts)


def compare_page(names: Sequence[str], before: Report, after: Report) -> str:
    """The page of two runs.

    Args:
        names: of the first and the second.
        before: the first.
        after: the second.
    """
    rows = compare(before, after)
    runs = dict(zip(("first", "second"), (before, after), strict=True))
    curves = {name: (run["latency_quantiles"], run["completed"]) for name, run in runs.items()}
    differences = [(name, str(one), str(other)) for name, one, other in different_settings(before, after)]
    title = f"{names[0]} and {names[1]}"
    parts = [
        _header(title, conclusion(rows), _verdict({row.verdict for row in rows})),
        '<div class="grid">',
        _section("Figures", _comparison(rows), wide=True),
        _section("Latency by percentile", plots.quantiles(curves)),
        _section("Latency over time", plots.latency_over_time({name: run["timeline"] for name, run in runs.items()})),
        _section("Not alike", _table(("", "first", "second"), differences), wide=True) if differences else "",
        "</div>",
    ]
    return _document(title, parts)


def _verdict(verdicts: set[str]) -> tuple[str, str]:
    """Kind and text of the badge."""
    if "not comparable" in verdicts:
        return "plain", "not comparable"
    match "better" in verdicts, "worse" in verdicts:
        case True, True:
            return "plain", "better and worse"
        case True, False:
            return "good", "better"
        case False, True:
            return "bad", "worse"
    return "plain", "the same"


def _document(title: str, parts: Iterable[str]) -> str:
    css = files("bench.load").joinpath("page.css").read_text(encoding="utf-8")
    body = "\n".join(part for part in parts if part)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    style = f"<style>\n{css}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}{style}</head>\n<body><main>\n{body}\n</main></body></html>\n'


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


def _badge(report: Report) -> tuple[str, str] | None:
    verdicts = report["slo"]
    if not verdicts:
        return None
    missed = sum(not verdict["met"] for verdict in verdicts)
    return ("bad", f"{missed} of {len(verdicts)} targets missed") if missed else ("good", "all targets met")


def _header(title: str, subtitle: str, badge: tuple[str, str] | None) -> str:
    right = f'<span class="badge {badge[0]}">{escape(badge[1])}</span>' if badge else ""
    left = f'<div><h1>{escape(title)}</h1><div class="soft">{escape(subtitle)}</div></div>'
    return f"<header>{left}{right}</header>"


def _warnings(report: Report) -> Iterable[str]:
    for text in (GENERATOR_WARNING if report.get("generator_limited") else None, cache_warning(report)):
        if text:
            yield f'<p class="note">{escape(text[0].upper() + text[1:])}.</p>'


def _key_figures(report: Report) -> Iterable[tuple[str, str, str]]:
    """Name, figure and unit of each card."""
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


def _rounded(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def _cards(figures: Iterable[tuple[str, str, str]]) -> str:
    cards = (
        f'<div class="card"><div class="name">{escape(name)}</div>'
        f'<div class="figure">{escape(figure)} <small>{escape(unit)}</small></div></div>'
        for name, figure, unit in figures
    )
    return f'<div class="cards">{"".join(cards)}</div>'


def _section(title: str, content: str, *, wide: bool = False) -> str:
    return f"<section{' class=wide' if wide else ''}><h2>{escape(title)}</h2>{content}</section>"


def _ramp_sections(report: Report) -> Iterable[str]:
    if report["mode"] != "ramp" or not report["steps"]:
        return
    steps = sorted(report["steps"], key=lambda step: float(step["rate"]))
    yield _section("Latency against rate", plots.ramp(steps, report["p95_target_ms"]))
    rows = [(f"{step['rate']:.1f}", describe(step)) for step in steps]
    yield _section("Steps", _table(("requests/s", ""), rows))


def _plot_sections(report: Report) -> Iterable[str]:
    timeline = report["timeline"]
    if not timeline["t_s"]:
        return
    at = f", at {report['request_rate']:.1f} requests/s" if report["mode"] == "ramp" else ""
    yield _section(f"Latency over time{at}", plots.latency_over_time({"": timeline}, plots.WIDE), wide=True)
    curve = {"": (report["latency_quantiles"], report["completed"])}
    yield _section(f"Latency by percentile{at}", plots.quantiles(curve))
    yield _section(f"Requests over time{at}", plots.rates_over_time(timeline))
    if timeline["errors"]:
        yield _section(f"Errors over time{at}", plots.errors_over_time(timeline))


def _server_sections(series: Mapping[str, Any]) -> Iterable[str]:
    """What the server's metrics said."""
    if len(series.get("t_s", ())) < 2:
        return
    for title, field, name, color, unit in _SERVER_PLOTS:
        yield _section(title, plots.server_line(series["t_s"], series[field], name, color, unit))


def _table_sections(report: Report) -> Iterable[str]:
    if report["slo"]:
        rows = [(to_line(verdict), "good" if verdict["met"] else "bad") for verdict in report["slo"]]
        lines = "".join(f'<tr><td class="{kind}">{escape(line)}</td></tr>' for line, kind in rows)
        yield _section("Targets", f"<table>{lines}</table>")
    if parts := report.get("by_priority"):
        columns = ("", "answered", "rejected", "p50, ms", "p95, ms", "p99, ms")
        fields = ("completed", "rejected", "p50_e2el_ms", "p95_e2el_ms", "p99_e2el_ms")
        yield _section("By priority", _table(columns, [(name, *_cells(part, fields)) for name, part in parts.items()]))
    if errors := report.get("errors"):
        told = [(f"{e['count']:,}", e["outcome"], f"{e['code']} {e['reason']}", e["message"]) for e in errors]
        yield _section("Not answered", _table(("requests", "", "code", "the first"), told), wide=True)
    if "duration" in report:
        yield _section("Figures", _table(("", ""), _figures(report)))
    settings = [(name.replace("_", "-"), _said(value)) for name, value in report["settings"].items() if _given(value)]
    yield _section("Settings", _table(("", ""), settings))
    environment = [(name, str(value)) for name, value in report["environment"].items()]
    yield _section("Environment of the generator", _table(("", ""), environment))
    models = [(model["name"], model.get("precision", ""), _pair(model)) for model in report.get("models", [])]
    yield _section("Models of the server", _table(("", "", ""), models))


def _cells(part: Report, fields: Sequence[str]) -> list[str]:
    return [f"{part[field]:,}" if isinstance(part[field], int) else _rounded(part[field]) for field in fields]


def _figures(report: Report) -> Iterable[tuple[str, str]]:
    """The figures that are on no card."""
    for outcome in ("completed", "rejected", "cancelled", "failed", "unfinished"):
        yield f"requests {outcome}", f"{report[outcome]:,}"
    yield "duration", f"{report['duration']:.2f} s"
    yield "most requests at once", str(report["max_concurrent_requests"])
    if report["offered_rate"] is not None:
        yield "offered", f"{report['offered_rate']:.2f} requests/s"
    yield "achieved", f"{report['request_throughput']:.2f} requests/s"
    yield "latency mean, max", f"{_rounded(report['mean_e2el_ms'])} ms, {_rounded(report['max_e2el_ms'])} ms"
    if report.get("p95_ttft_ms") is not None:
        yield "first text p50, p99", f"{_rounded(report['p50_ttft_ms'])} ms, {_rounded(report['p99_ttft_ms'])} ms"
        yield "between pieces p50, p99", f"{_rounded(report['p50_itl_ms'])} ms, {_rounded(report['p99_itl_ms'])} ms"
    yield "from the result cache", cache_share(report)
    yield "source, target tokens", f"{report['input_throughput']:,.0f} /s, {report['output_throughput']:,.0f} /s"
    late = f"{report['p95_send_delay_ms']:.2f} ms, {report['max_send_delay_ms']:.1f} ms"
    yield "generator's lateness p95, max", f"{late} ({report['late_sends']} late sends)"
    if "verify_texts" in report:
        yield "compared with alone", f"{report['verify_compared']:,}, {report['verify_different']} different"


def _pair(model: Report) -> str:
    return f"{model.get('source_language_code', '')} → {model.get('target_language_code', '')}"


def _given(value: Any) -> bool:
    return value not in (None, "", [], False)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _comparison(rows: Sequence[Row]) -> str:
    kinds = {"better": "good", "worse": "bad", "same": "soft", "not comparable": "soft"}
    lines = "".join(
        f'<tr class="{"soft" if row.verdict == "not comparable" else "plain"}"><td>{escape(row.name)}</td>'
        f'<td class="number">{row.before:,.4g} {row.unit}</td><td class="number">{row.after:,.4g} {row.unit}</td>'
        f'<td class="number">{"–" if row.ratio is None else f"{row.ratio:.2f}"}</td>'
        f'<td class="{kinds[row.verdict]}">{"" if row.verdict == "not comparable" else row.verdict}</td></tr>'
        for row in rows
    )
    heads = '<th></th><th class="number">first</th><th class="number">second</th><th class="number">ratio</th><th></th>'
    return f"<table><tr>{heads}</tr>{lines}</table>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in heads)}</tr>" if any(heads) else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{head}{body}</table>"


def _how_to_read(report: Report) -> str:
    if report.get("offered_rate") is not None or report["mode"] == "ramp":
        return "Latency counts from the moment a request was due, whether or not it could be sent then."
    return "Latency counts from when a request was sent; the next one is sent when it is answered."
