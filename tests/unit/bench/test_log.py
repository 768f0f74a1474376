import re

import pytest

from bench.log import log_with_time


def test_a_line_comes_after_the_seconds_since_the_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    log = log_with_time()
    log("sweep offline")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r" +\d+\.\d s  sweep offline\n", printed.err)
