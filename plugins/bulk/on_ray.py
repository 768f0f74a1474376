"""Runs the chunks of a job on Ray Data: a pool of actors, each with its own worker, on this machine or on a cluster.

Ray distributes descriptions of chunks, and repeats chunks whose actor was lost. The actors read and write the files
themselves, so no text passes through Ray.
"""

import logging
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final, NamedTuple

from dragoman.errors import DragomanError, InternalError
from dragoman.loading import load
from plugins.bulk.plan import Chunk
from plugins.bulk.worker import Done
from service import cores

ADDRESS_VARIABLE: Final = "RAY_ADDRESS"
_THIS_MACHINE: Final = "local"
# Ray reads these variables at import, so ray is imported only after they are set.
_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # else Ray warns about actions of Ray Data
    "RAY_worker_niceness": "0",  # default 15, which slows workers beside other processes
    "RAY_raylet_start_wait_time_s": "120",
}
# For Ray on one machine: it then listens on loopback only, as on systems without cluster support.
_OF_THIS_MACHINE: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_OF_A_CLUSTER: Final = {"RAY_NUM_REDIS_GET_RETRIES": "3"}  # 40 s each if nobody answers; default 20
# CPUs, as Ray counts them, that actors leave free: a pool that takes all CPUs can wait for ever.
_SPARE_CPUS: Final = 2
_OBJECT_STORE_BYTES: Final = 128 * 2**20  # it holds only descriptions of chunks
# Retries of a chunk whose actor is lost: about one per second until Ray notices that a machine is gone.
_RETRIES: Final = 100
_FIRST_ACTOR_TIMEOUT_S: Final = 600


class Opening(NamedTuple):
    """How a process opens its worker.

    Attributes:
        target: a function, as "module:function", that returns the worker.
        arguments: its arguments; their types can be unpickled without dragoman-server.
        variables: environment variables that it needs.
        threads: the number of threads that a worker keeps busy.
    """

    target: str
    arguments: Mapping[str, Any]
    variables: Mapping[str, str]
    threads: int


def run(chunks: Sequence[Chunk], opening: Opening) -> Iterator[Done]:
    """Process chunks.

    Yields:
        The result of each chunk, as soon as it is done.

    Raises:
        DragomanError: the worker raised it, or Ray failed.
        OSError: the worker raised it, or there is no cluster at RAY_ADDRESS.
    """
    # Ray writes about lost actors and nodes to standard output.
    with redirect_stdout(sys.stderr), _connected(opening.threads) as cpus:
        import ray.data

        actors = min(len(chunks), max(1, int(cpus - _SPARE_CPUS) // opening.threads))
        described = ray.data.from_items([chunk._asdict() for chunk in chunks], override_num_blocks=len(chunks))
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            made = described.map(
                _actor_class(),
                fn_constructor_args=(opening.target, opening.arguments, opening.variables),
                # A pool of variable size: idle actors end, so that an actor of a lost machine can start elsewhere.
                compute=ray.data.ActorPoolStrategy(
                    min_size=1, max_size=actors, initial_size=actors, max_tasks_in_flight_per_actor=2
                ),
                num_cpus=opening.threads,
                max_task_retries=_RETRIES,  # without this limit, Ray would never give up
            )
        for row in made.iter_rows():
            if row["error"]:
                raise pickle.loads(row["error"])
            yield Done(row["rows"], row["failed"])


@contextmanager
def _connected(threads: int) -> Iterator[float]:
    """Start Ray on this machine, or join a cluster; gives the number of CPUs, as Ray counts them."""
    address = os.environ.get(ADDRESS_VARIABLE) or _THIS_MACHINE
    own: dict[str, Any] = {}
    if address == _THIS_MACHINE:
        own = {
            "num_cpus": max(cores.available(), threads) + _SPARE_CPUS,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
    for name, value in (_ENVIRONMENT | (_OF_THIS_MACHINE if own else _OF_A_CLUSTER)).items():
        os.environ.setdefault(name, value)
    import ray
    import ray.data
    import ray.exceptions

    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    try:
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # its messages are raised as errors
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.wait_for_min_actors_s = _FIRST_ACTOR_TIMEOUT_S
        yield ray.cluster_resources().get("CPU", 0.0)
    except ray.exceptions.RayError as error:
        last = str(error).strip().splitlines()[-1:]
        raise InternalError(f"Ray: {''.join(last) or type(error).__name__}") from error
    finally:
        ray.shutdown()


def _actor_class() -> type:
    """Make the class of the actors.

    As a local class, it is pickled by value: its processes can import the server's packages only after `load` ran.
    """

    class Actor:
        def __init__(self, target: str, arguments: Mapping[str, Any], variables: Mapping[str, str]) -> None:
            os.environ.update(variables)
            self._target, self._arguments = target, arguments
            self._work: Callable[..., Any] | None = None

        def __call__(self, described: dict[str, Any]) -> dict[str, Any]:
            try:
                self._work = self._work or load(self._target)(**self._arguments)
                from plugins.bulk.plan import Chunk

                rows, failed = self._work(Chunk(**described))
            except (DragomanError, OSError) as error:
                return {"rows": 0, "failed": 0, "error": pickle.dumps(error)}
            return {"rows": rows, "failed": failed, "error": b""}

    return Actor
