"""Every metric of the server, once, with its unit and buckets; prefix ``dragoman_``, base units.

No label ever holds a value of the user: ``method``, ``protocol``, ``code``, ``reason``, ``outcome``, ``priority``,
``files`` and ``graph`` come from closed sets of this server; ``model``, ``language``, ``precision``, ``device`` and
``key`` (its name, never the key itself) from the operator's bundles, settings and files. docs/reference/metrics.md
lists all metrics.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
)

_PREFIX: Final = "dragoman"

# The bytes of the keys, values and states of one model, see service/registry/capacity.py.
KV_CACHE_FORMULA: Final = (
    "threads * slots * decoder_layers * 2 * heads * head_dim * (max_target_tokens + target_prefix + max_source_tokens)"
    " * bytes of a number; of a decoder of SSRU cells threads * slots * (decoder_layers * 2 * heads * head_dim"
    " * max_source_tokens * bytes of a number + 2 * decoder_layers * d_model * bytes of a state)"
)


def _growing(first: float, factor: float, limit: float) -> tuple[float, ...]:
    """Compute bucket bounds from ``first``, each ``factor`` times the one before, none above ``limit``."""
    bounds = []
    bound = first
    while bound <= limit:
        bounds.append(float(f"{bound:.4g}"))  # four digits: le="0.002531", not le="0.0025312500000000003"
        bound *= factor
    return tuple(bounds)


LATENCY_BUCKETS_S: Final = _growing(0.0005, 1.5, 30.0)
SLOTS_BUCKETS: Final = _growing(1, 2, 1024)
QUALITY_BUCKETS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# Dense where most translations are; the rest is for translations that are cut short, or repeat themselves.
LENGTH_RATIO_BUCKETS: Final = (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
GRAPHS: Final = ("encoder", "decoder", "search")
SEGMENT_ENDS: Final = ("EOS", "LENGTH", "REPETITION", "CANCELLED", "DEADLINE", "INTERNAL")


class _Family(NamedTuple):
    """A metric before it is in a registry, where its name is the name of the attribute.

    Attributes:
        labels: labels in addition to the model's.
        series: values of the only other label, each of which is a series of each model.
    """

    kind: type[Counter | Gauge | Histogram]
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    series: tuple[str, ...] = ()

    def make(self, name: str, labels: tuple[str, ...], registry: CollectorRegistry) -> Counter | Gauge | Histogram:
        options: dict[str, Any] = {"buckets": self.buckets} if self.buckets else {}
        return self.kind(name, self.text, (*labels, *self.labels), namespace=_PREFIX, registry=registry, **options)


# As with fields of a dataclass: the attribute of the class is the description, that of an object is the metric.
def _counter(text: str, *labels: str, series: tuple[str, ...] = ()) -> Any:
    return _Family(Counter, text, labels, series=series)


def _gauge(text: str, *labels: str) -> Any:
    return _Family(Gauge, text, labels)


def _histogram(text: str, *labels: str, buckets: tuple[float, ...] = LATENCY_BUCKETS_S) -> Any:
    return _Family(Histogram, text, labels, buckets)


class ModelMetrics:
    """The metrics of one model, looked up once: the look-up of a label takes longer than a count.

    Several threads share the gauges, so each moves them with ``inc`` and ``dec`` and never sets them.
    """

    queue_duration_seconds: Histogram = _histogram(
        "Time from the submission of a segment until an engine thread takes it. It is encoded next, and may then "
        "wait for a slot: that is not counted."
    )
    encode_duration_seconds: Histogram = _histogram(
        "Time of one run of the encoder, over one segment or several; a cached memory needs no run."
    )
    decode_step_duration_seconds: Histogram = _histogram(
        "Time of one decode step: the run of the decoder over the active slots, and log-probabilities and beam "
        "search where they are asked for."
    )
    decode_batch_slots: Histogram = _histogram("Active slots of a decode step.", buckets=SLOTS_BUCKETS)
    slots_active: Gauge = _gauge("Slots that hold a segment, or one hypothesis of it.")
    slots: Gauge = _gauge("Slots of all threads.")
    kv_cache_bytes: Gauge = _gauge(f"Bytes reserved for the keys, values and states of all slots: {KV_CACHE_FORMULA}.")
    source_tokens_total: Counter = _counter(
        "Source tokens that the encoder read, end-of-sentence tokens counted. Where an encoder memory was kept, it "
        "reads none."
    )
    target_tokens_total: Counter = _counter(
        "Target tokens decoded, or given and scored, without the end-of-sentence tokens; of a beam search those of "
        "the translation that it ends with."
    )
    encoder_padding_tokens_total: Counter = _counter(
        "Places of encoder runs that held no source token: each source is filled up to the longest of its run. "
        "Compare with source_tokens to see the waste."
    )
    unknown_pieces_total: Counter = _counter(
        "Source tokens encoded that stand for a piece that the model has no token for."
    )
    length_ratio: Histogram = _histogram(
        "Target tokens for each source token of a decoded segment, unless it was withdrawn or failed; both without "
        "the end-of-sentence token.",
        buckets=LENGTH_RATIO_BUCKETS,
    )
    quality_estimate: Histogram = _histogram(
        "How probable it is that a reader accepts the translation of a segment, where a request asked for that.",
        buckets=QUALITY_BUCKETS,
    )
    failed_runs_total: Mapping[str, Counter] = _counter(
        "Runs of a graph that failed and were run again in halves, or were of one segment.", "graph", series=GRAPHS
    )
    cancelled_tokens_saved_total: Counter = _counter(
        "Target tokens not decoded because a segment was cancelled or past its deadline. An estimate: each would "
        "have had as many tokens a source token as those that the model itself has ended so far."
    )
    searched_segments_total: Counter = _counter(
        "Segments that a beam search translated; they are among those of `segments_total`."
    )
    glossary_segments_total: Counter = _counter(
        "Segments of answered texts that have terms of a glossary, or placeholders that are protected."
    )
    glossary_misses_total: Counter = _counter("Such terms and placeholders that answers name as missing.")
    segments_total: Mapping[str, Counter] = _counter(
        "Segments that left an engine or its queue, and why they ended, INTERNAL where it failed; identical ones "
        "that shared a decoding count once.",
        "reason",
        series=SEGMENT_ENDS,
    )
    encoder_memory_cache_hits_total: Counter = _counter(
        "Sources whose encoder memory was kept, or was made for an equal source of the same run."
    )
    encoder_memory_cache_misses_total: Counter = _counter(
        "Sources that were encoded; not counted where the cache is switched off."
    )
    encoder_memory_cache_evictions_total: Counter = _counter("Encoder memories forgotten to make room for others.")
    encoder_memory_cache_bytes: Gauge = _gauge("Bytes of the encoder memories that are kept.")
    encoder_memory_cache_saved_seconds_total: Counter = _counter(
        "Seconds of encoder runs that hits saved: the time in which they were computed, of a run over several sources "
        "the share by source tokens."
    )
    result_cache_hits_total: Counter = _counter("Segments whose result was kept.")
    result_cache_misses_total: Counter = _counter(
        "Segments that had to be decoded; not counted where the cache is switched off. Those that shared a "
        "decoding are neither hits nor misses."
    )
    result_cache_bytes: Gauge = _gauge("Bytes of the results that are kept.")
    result_cache_saved_seconds_total: Counter = _counter(
        "Engine time that hits saved: the seconds that those segments took from leaving the queue to their end."
    )
    coalesced_segments_total: Counter = _counter(
        "Segments that shared the decoding of an identical one that had not ended."
    )
    coalesced_saved_seconds_total: Counter = _counter(
        "Engine time that sharing saved: the seconds that the shared segment took from leaving the queue to its "
        "end, once for each of the others."
    )

    def __init__(self, metrics: "Metrics", model: str) -> None:
        for name, family in families(ModelMetrics):
            made = getattr(metrics, name)
            series = {value: made.labels(model, value) for value in family.series}
            setattr(self, name, series or made.labels(model))


class Metrics:
    """The metrics of one server, in a registry of their own; an attribute is named like its metric without prefix."""

    requests_total: Counter = _counter("RPCs that have ended, with an answer or not.", "method", "code", "protocol")
    request_duration_seconds: Histogram = _histogram(
        "Time from the arrival of an RPC to its end.", "method", "protocol"
    )
    time_to_first_token_seconds: Histogram = _histogram(
        "Time from the submission of a segment to its first token, observed at its end; 0 where its result was kept."
    )
    rejected_total: Counter = _counter(
        "RPCs that were refused: they ended with an error, and none of their segments was queued.", "reason"
    )
    detected_texts_total: Counter = _counter(
        "Texts whose language was detected, by that language: one that a model reads or writes, or else other.",
        "language",
    )
    queue_segments: Gauge = _gauge(
        "Segments that wait until an engine thread takes them; identical ones that share a decoding count once."
    )
    queue_source_tokens: Gauge = _gauge(
        "Source tokens of the segments of queue_segments, their end-of-sentence tokens counted; and the tokens of "
        "translations that are to be scored."
    )
    queue_priority_source_tokens: Gauge = _gauge("The same by the priority of the segments.", "priority")
    drain_source_tokens_per_second: Gauge = _gauge(
        "Source tokens per second that the engines of all models finish under full load, as last measured; 0 "
        "without a recent measurement."
    )
    estimated_delay_seconds: Gauge = _gauge(
        "Estimated time until all unfinished work is complete, of the model where that takes longest; 0 while "
        "not known."
    )
    processes: Gauge = _gauge("Server processes whose metrics are on this page.")
    serving: Gauge = _gauge("1 while health says SERVING, else 0.")
    closed_connections_total: Counter = _counter(
        "Connections closed because their host had too many (HOST_LIMIT).", "reason"
    )
    log_lines_dropped_total: Counter = _counter(
        "Lines of the log that were lost because standard error did not take them."
    )
    model_reloads_total: Counter = _counter(
        "Bundles on disk that were new, changed or gone, by what the server did: loaded, refused (the served model "
        "stays), removed, or kept because no other model would be left.",
        "model",
        "outcome",
    )
    bundle_errors: Gauge = _gauge(
        "Bundles on disk that were refused, and models that are served though theirs is gone."
    )
    retiring_models: Gauge = _gauge("Models that were replaced or removed and finish their running calls.")
    model_loads_total: Counter = _counter(
        "Times that a model was loaded into memory, or could not be (failed).", "model", "outcome"
    )
    model_evictions_total: Counter = _counter("Times that a model left the memory so that another had room.", "model")
    model_memory_bytes: Gauge = _gauge(
        "Memory of each model that is in memory, as estimated and, where that is more, as measured when it was "
        "loaded; a model that is not in memory has none.",
        "model",
    )
    model_memory_budget_bytes: Gauge = _gauge("Memory that models may take together; 0: as much as they need.")
    model_waiting_calls: Gauge = _gauge("Calls that wait for a model to be loaded.")
    model_wait_duration_seconds: Histogram = _histogram(
        "Time that a call waited for its models, where one was not in memory."
    )
    document_failures_total: Counter = _counter(
        "Failures of processes of documents, also where others ended these, and of the folder of --documents."
    )
    api_key_requests_total: Counter = _counter(
        "RPCs that came with an API key: its name, and ADMITTED or why they were refused.", "key", "outcome"
    )
    files_in_force: Gauge = _gauge(
        "1 while the files on disk are in use; 0 while they are missing or wrong, and the last good ones are used.",
        "files",
    )
    step_age_seconds: Gauge = _gauge("Time since the oldest step that runs began; 0 when idle.")
    stalled_steps_total: Counter = _counter("Steps that took so long that health was withdrawn.")
    cancelled_segments_total: Counter = _counter(
        "Segments withdrawn before they finished, because their call ended or another segment of their text failed."
    )

    def __init__(self) -> None:
        """Create all metrics in a fresh registry, together with the ``process_*`` metrics of this process."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        for kind, labels in ((Metrics, ()), (ModelMetrics, ("model",))):
            for name, family in families(kind):
                setattr(self, name, family.make(name, labels, self.registry))
        self.model_info = Info("model", "What is served.", ["model"], namespace=_PREFIX, registry=self.registry)
        self.processes.set(1)
        self._of: dict[str, ModelMetrics] = {}
        self._in_memory: set[str] = set()

    def of(self, model: str) -> ModelMetrics:
        """Give the metrics of one model, which the operator named."""
        if model not in self._of:
            self._of[model] = ModelMetrics(self, model)
        return self._of[model]

    def total(self, sample: str, **labels: str) -> float:
        """Add up all samples of this name, without the prefix, that have these labels; 0 if there are none."""
        return sum(
            found.value
            for family in self.registry.collect()
            for found in family.samples
            if found.name == f"{_PREFIX}_{sample}" and labels.items() <= found.labels.items()
        )

    def tell_memory(self, sizes_bytes: Mapping[str, int]) -> None:
        """Export ``dragoman_model_memory_bytes`` for the models that are in memory, and for no others."""
        for model in self._in_memory - sizes_bytes.keys():
            self.model_memory_bytes.remove(model)
        for model, size_bytes in sizes_bytes.items():
            self.model_memory_bytes.labels(model).set(size_bytes)
        self._in_memory = set(sizes_bytes)


def families(kind: type) -> list[tuple[str, _Family]]:
    """List the descriptions of the metrics of a class, by their names without the prefix."""
    return [(name, family) for name, family in vars(kind).items() if isinstance(family, _Family)]
