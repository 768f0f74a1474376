"""A load, as data."""

from dataclasses import dataclass, field

from bench.load.workload import WordCounts
from dragoman.access import Access


@dataclass(frozen=True)
class LoadSettings:
    """A load. One of `rate` and `concurrency` is set, and one of `duration_s` and `requests`.

    Attributes:
        rate: Open loop: requests due per second, on average; needs `duration_s`.
        concurrency: Closed loop: requests that are unanswered at any moment.
        model: Sent with each request; empty, and no language either: the first model of the server.
        verify_texts: How many distinct texts are sent, each first alone, and every later answer is compared
            with that one; 0: all texts, and nothing is compared.
        words: How many words each text has; None: the texts are sent as they are.
        repeat_zipf: By which exponent of Zipf's law they are.
        beam_size: Sent with each request; 0: the server's default.
        goodput_ms: The longest latency of a good answer, in milliseconds; None: any.
        metrics_address: Of the server's metrics, to follow them; empty: they are not asked for.
    """

    address: str
    rate: float | None = None
    concurrency: int | None = None
    duration_s: float | None = None
    requests: int | None = None
    warmup_s: float = 0.0
    texts_per_request: int = 1
    source_language: str = ""
    target_language: str = ""
    model: str = ""
    timeout_s: float = 30.0
    seed: int = 0
    verify_texts: int = 0
    words: WordCounts | None = None
    repeat_share: float = 0.0
    repeat_zipf: float = 1.1
    bulk_share: float = 0.0
    beam_size: int = 0
    stream: bool = False
    goodput_ms: float | None = None
    metrics_address: str = ""
    access: Access = field(default_factory=Access)
    http: bool = False
