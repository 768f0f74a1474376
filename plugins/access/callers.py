"""The holders of API keys: who makes a call, by its key, and the limits of that key."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dragoman.errors import ConcurrencyLimitedError, RateLimitedError, UnauthenticatedError
from plugins.access.api_keys import KeyEntry, KeyStore
from plugins.access.rate_limit import NANOSECONDS, TokenBucket
from service.security.access import Caller
from service.telemetry.metrics import Metrics
from service.wire import Metadata

_SCHEME: Final = "bearer "
_KEY_NAMES: Final = frozenset({"x-api-key", "x-goog-api-key"})  # x-goog-api-key is sent by Google's clients


class KeyHolders:
    """All callers with an API key; lives on the event loop.

    Args:
        keys: returns the current keys.
    """

    def __init__(self, metrics: Metrics, keys: Callable[[], KeyStore]) -> None:
        self._metrics = metrics
        self._keys = keys
        self._quotas: dict[str, _Quota] = {}

    def identify(self, metadata: Metadata) -> Caller:
        """Identify the caller; see `service.security.access.Callers`."""
        ring = self._keys()  # read once: another thread may replace the keys at any moment
        key = _key_in(metadata)
        if key is None:
            raise UnauthenticatedError('no API key: send "authorization: Bearer KEY", or "x-api-key: KEY"')
        name = ring.find(key)
        if name is None:
            raise UnauthenticatedError("this server does not know the API key")
        return Caller(name, ring.entries[name])

    @contextmanager
    def visit(self, caller: Caller) -> Iterator[None]:
        """Count a running call against the limits of its key; see `service.security.access.Callers`."""
        assert isinstance(caller.entry, KeyEntry), "it was identified here"
        quota = self._quotas.setdefault(caller.name, _Quota())
        try:
            quota.enter(caller.entry, time.monotonic_ns())
        except (RateLimitedError, ConcurrencyLimitedError) as error:
            self._metrics.api_key_requests_total.labels(caller.name, error.reason).inc()
            raise
        self._metrics.api_key_requests_total.labels(caller.name, "ADMITTED").inc()
        try:
            yield
        finally:
            quota.leave()


class _Quota:
    """The current usage of one key."""

    def __init__(self) -> None:
        self._entry: KeyEntry | None = None
        self._bucket: TokenBucket | None = None
        self._running = 0

    def enter(self, entry: KeyEntry, now_ns: int) -> None:
        """Begin a call, within the limits of the entry.

        Raises:
            RateLimitedError: the call exceeds the rate.
            ConcurrencyLimitedError: too many calls of the key are running.
        """
        if entry != self._entry:  # it may have changed in the file since the last call
            self._entry, rate = entry, entry.requests_per_s
            self._bucket = None if rate is None else TokenBucket(rate, entry.bucket_tokens)
        limit = entry.concurrent_requests
        if limit is not None and self._running >= limit:  # checked first: a call refused here must not use up a token
            raise ConcurrencyLimitedError(
                f"{self._running} calls of the API key are running, at most {limit} may",
                metadata={"concurrent_requests": str(limit)},
            )
        delay_ns = self._bucket.take(now_ns) if self._bucket is not None else 0
        if delay_ns:
            shown = f"{entry.requests_per_s:g}"
            raise RateLimitedError(
                f"the API key may make {shown} calls a second, {entry.bucket_tokens} at once",
                metadata={"requests_per_s": shown, "burst": str(entry.bucket_tokens)},
                retry_delay_s=delay_ns / NANOSECONDS,
            )
        self._running += 1

    def leave(self) -> None:
        """End a call."""
        self._running -= 1


def _key_in(metadata: Metadata) -> str | None:
    """Find the key of a call: a bearer token, or else the value of a header for keys."""
    other = None
    for name, value in metadata:
        if isinstance(value, bytes):  # metadata whose name ends in -bin
            continue
        if name == "authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return value[len(_SCHEME) :].strip()
        if name in _KEY_NAMES:
            other = value
    return other
