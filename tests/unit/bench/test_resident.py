import os

import numpy as np

from bench.resident import resident_mib


def test_resident_size_sees_what_is_written() -> None:
    before_mib = resident_mib(os.getpid())
    written = np.ones(512 * 2**20, np.uint8)
    assert resident_mib(os.getpid()) - before_mib > 256  # what else is given back meanwhile is less
    assert written[0] == 1
