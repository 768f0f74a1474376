"""Prometheus's own judge of alert rules, given pages that real servers have shown."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.metrics_page import Page
from tests import debian

RULES: Final = Path(__file__).resolve().parents[1] / "deploy" / "prometheus" / "alerts.yml"
_OURS: Final = {"job": "dragoman", "instance": "a:9464"}
_BEFORE_MIN: Final = 5  # that the page from before the fault stays
_AFTER_MIN: Final = 60
_SOON_MIN: Final = 14  # longer than alerts wait, and within what they look back
_LATE_MIN: Final = 40  # for faults that go on


def program() -> str:
    """The one that is installed, or else Debian's.

    Raises:
        NoPackagesError: neither can be had.
    """
    return shutil.which("promtool") or str(debian.unpacked("prometheus", debian.OLDEST) / "usr/bin/promtool")


def is_raised(alert: str, before: Page, after: Page | None, folder: Path, *, goes_on: bool = False) -> bool:
    """Tell whether an alert is raised by a server that showed one page and then, a minute later, another.

    Args:
        alert: its name.
        before: the page before the fault, which raises no alert at all.
        after: the page after it; None: the server did not answer any more.
        folder: for the files of promtool.
        goes_on: whether what happened between the pages happens again every minute.
    """
    minute = _LATE_MIN if goes_on else _SOON_MIN
    tests = [
        _expectation(_BEFORE_MIN - 1, 'count(ALERTS{alertstate="firing"}) or vector(0)', 0),
        _expectation(minute, f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) > bool 0', 1),
    ]
    series = _series(before, after, goes_on=goes_on)
    case = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file = folder / "raised.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [case]}))
    done = subprocess.run([program(), "test", "rules", str(file)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 or re.search(rf'alertname=\\?"{alert}', done.stdout + done.stderr), done
    return done.returncode == 0


def _expectation(minute: int, expression: str, value: float) -> dict[str, object]:
    samples = [{"labels": "{}", "value": value}]
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}


def _series(before: Page, after: Page | None, *, goes_on: bool) -> list[dict[str, str]]:
    series = [{"series": _name("up", {}), "values": f"1x{_BEFORE_MIN} {int(after is not None)}x{_AFTER_MIN}"}]
    for key in sorted(before.keys() | (after or {}).keys()):
        name, labels = key
        first = f"{before[key]}x{_BEFORE_MIN}" if key in before else f"_x{_BEFORE_MIN}"
        then = "stale"
        if after is not None and key in after:
            growth = after[key] - before.get(key, 0.0) if goes_on else 0.0
            then = f"{after[key]}{growth:+}x{_AFTER_MIN}"
        series.append({"series": _name(name, dict(labels)), "values": f"{first} {then}"})
    return series


def _name(name: str, labels: dict[str, str]) -> str:
    return f"{name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in (labels | _OURS).items())}}}"
