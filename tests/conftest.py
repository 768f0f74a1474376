"""The synthetic model, made once for all tests that run the engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

# No test fails because a machine is slow or busy.
settings.register_profile("whole", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("inner", settings.get_profile("whole"), max_examples=10)  # for `make check`
settings.register_profile("short", settings.get_profile("whole"), max_examples=25)  # for `make test`
settings.load_profile("short")
# Of torch, which most tests run on matrices too small to share. Threads of several test processes would wait for one
# another's cores, spinning.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where a process that runs gRPC forks, gRPC writes a line to standard error, in the middle of what a test compares. It
# reads this when it is imported, here and in all processes that tests start.
os.environ["GRPC_VERBOSITY"] = "NONE"

# Commands without --address would ask the server of whoever runs the tests.
os.environ.pop("DRAGOMAN_SERVER", None)

if TYPE_CHECKING:
    from tests.synthetic import Synthetic


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that need the synthetic model, and so torch: `make check` does without them."""
    for item in items:
        if "synthetic_checkpoint" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")


@pytest.fixture(scope="session")
def synthetic_checkpoint() -> Path:
    from tests import synthetic_model  # here: most tests do without torch, which takes seconds to import

    return synthetic_model.make_checkpoint()


@pytest.fixture(scope="session")
def fp32(synthetic_checkpoint: Path) -> Synthetic:
    """The synthetic model in fp32: its tokens are those of plain PyTorch."""
    from tests import synthetic_model

    return synthetic_model.make_bundle(synthetic_checkpoint, "fp32")


@pytest.fixture(scope="session")
def int8(synthetic_checkpoint: Path) -> Synthetic:
    """The synthetic model in int8, the precision that is served by default."""
    from tests import synthetic_model

    return synthetic_model.make_bundle(synthetic_checkpoint, "int8")
