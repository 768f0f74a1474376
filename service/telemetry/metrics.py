"""Every metric of the server, once, with its unit and buckets; prefix ``dragoman_``, base units.

No label ever holds a value of the user: ``method``, ``protocol``, ``code``, ``reason``, ``outcome``, ``priority``,
``files`` and ``graph`` come from closed sets of ours, ``model``, ``language``, ``precision``, ``device`` and ``key``
(its name, never the key itself) from the operator's bundles, settings and files. docs/observability.md lists them all.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
)

from service.options import Priority

_PREFIX: Final = "dragoman"

# How many bytes the keys and values of one model take, see service/registry/capacity.py.
KV_CACHE_FORMULA: Final = (
    "threads * slots * decoder_layers * 2 * heads * head_dim * (max_target_tokens + target_prefix + max_source_tokens)"
    " * bytes of a number"
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
# Dense where translations are; the rest is for what is cut short, or goes on and on.
LENGTH_RATIO_BUCKETS: Final = (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
GRAPHS: Final = ("encoder", "decoder", "search")
SEGMENT_ENDS: Final = ("EOS", "LENGTH", "REPETITION", "CANCELLED", "DEADLINE", "INTERNAL")


class Metrics:
    """The metrics of one server, in a registry of their own.

    Attributes are named like the metrics without the prefix. Who sets what: the servicer and its calls
    ``requests_total``, ``request_duration_seconds``, ``time_to_first_token_seconds``, ``rejected_total``,
    ``detected_texts_total`` and ``cancelled_segments_total``; the watchdog ``stalled_steps_total``; the log
    ``log_lines_dropped_total``; the connections by host
    ``closed_connections_total``; reloading ``model_reloads_total`` and ``bundle_errors``; the memory of the models
    ``model_loads_total``, ``model_evictions_total`` and ``model_wait_duration_seconds``; the registry
    ``retiring_models``, ``model_info``, ``model_memory_bytes`` and, with :meth:`watch_queue`, ``queue_segments`` and
    ``queue_source_tokens``, with :meth:`watch_backlog` ``queue_priority_source_tokens``,
    ``drain_source_tokens_per_second`` and ``estimated_delay_seconds``; the callers ``api_key_requests_total``; the
    watched files ``files_in_force``; the server, with :meth:`watch_health`, ``serving``, with :meth:`watch_steps`
    ``step_age_seconds``; the parts of each model all others, see :meth:`of`.
    """

    def __init__(self) -> None:
        """Create all metrics in a fresh registry, together with the ``process_*`` metrics of this process."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._define_requests()
        self._define_reloads()
        self._define_memory()
        self._define_documents()
        self._define_callers()
        self._define_durations()
        self._define_slots()
        self._define_tokens()
        self._define_ends()
        self._define_caches()
        self._of: dict[str, ModelMetrics] = {}
        self._in_memory: set[str] = set()

    def of(self, model: str) -> "ModelMetrics":
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

    def _define_requests(self) -> None:
        self.requests_total = self._counter(
            "requests", "RPCs that have ended, with an answer or not.", "method", "code", "protocol"
        )
        self.request_duration_seconds = self._latency(
            "request_duration_seconds", "Time from the arrival of an RPC to its end.", "method", "protocol"
        )
        self.time_to_first_token_seconds = self._latency(
            "time_to_first_token_seconds",
            "Time from the submission of a segment to its first token, observed at its end; 0 where its result was "
            "kept.",
        )
        self.rejected_total = self._counter(
            "rejected",
            "RPCs that were refused: they ended with an error, and none of their segments was queued.",
            "reason",
        )
        self.detected_texts_total = self._counter(
            "detected_texts",
            "Texts whose language was detected, by that language: one that a model reads or writes, or else other.",
            "language",
        )
        self.queue_segments = self._gauge(
            "queue_segments",
            "Segments that wait until an engine thread takes them; identical ones that share a decoding count once.",
        )
        self.queue_source_tokens = self._gauge(
            "queue_source_tokens",
            "Source tokens of the segments of queue_segments, their end-of-sentence tokens counted; and the tokens of "
            "translations that are to be scored.",
        )
        self.queue_priority_source_tokens = self._gauge(
            "queue_priority_source_tokens", "The same by the priority of the segments.", "priority"
        )
        self.drain_source_tokens_per_second = self._gauge(
            "drain_source_tokens_per_second",
            "Source tokens that the engines of all models finish a second when they have all that they can take, as "
            "last measured; 0 where nothing is known, or only of long ago.",
        )
        self.estimated_delay_seconds = self._gauge(
            "estimated_delay_seconds",
            "Estimated time until all that is unfinished is complete, of the model where that takes longest; 0 while "
            "not known.",
        )
        self.processes = self._gauge("processes", "Server processes whose metrics are on this page.")
        self.processes.set(1)
        self.serving = self._gauge("serving", "1 while health says SERVING, else 0.")
        self.closed_connections_total = self._counter(
            "closed_connections", "Connections closed because their host had too many (HOST_LIMIT).", "reason"
        )
        self.log_lines_dropped_total = self._counter(
            "log_lines_dropped", "Lines of the log that were lost because standard error did not take them."
        )
        self.model_info = Info("model", "What is served.", ["model"], namespace=_PREFIX, registry=self.registry)

    def _define_reloads(self) -> None:
        self.model_reloads_total = self._counter(
            "model_reloads",
            "What became of models when bundles on disk were new, changed or gone: loaded, refused (what was served "
            "stays), removed, or kept because no other model would be left.",
            "model",
            "outcome",
        )
        self.bundle_errors = self._gauge(
            "bundle_errors", "Bundles on disk that were refused, and models that are served though theirs is gone."
        )
        self.retiring_models = self._gauge(
            "retiring_models", "Models that were replaced or removed and finish what runs on them."
        )

    def _define_memory(self) -> None:
        self.model_loads_total = self._counter(
            "model_loads", "Times that a model was loaded into memory, or could not be (failed).", "model", "outcome"
        )
        self.model_evictions_total = self._counter(
            "model_evictions", "Times that a model left the memory so that another had room.", "model"
        )
        self.model_memory_bytes = self._gauge(
            "model_memory_bytes",
            "Memory of each model that is in memory, as estimated and, where that is more, as measured when it was "
            "loaded; a model that is not in memory has none.",
            "model",
        )
        self.model_memory_budget_bytes = self._gauge(
            "model_memory_budget_bytes", "Memory that models may take together; 0: as much as they need."
        )
        self.model_waiting_calls = self._gauge("model_waiting_calls", "Calls that wait for a model to be loaded.")
        self.model_wait_duration_seconds = self._latency(
            "model_wait_duration_seconds", "Time that a call waited for its models, where one was not in memory."
        )

    def _define_documents(self) -> None:
        self.document_failures_total = self._counter(
            "document_failures",
            "Processes of documents that failed, or were ended by others than this server: their documents are lost.",
        )

    def _define_callers(self) -> None:
        self.api_key_requests_total = self._counter(
            "api_key_requests",
            "RPCs that came with an API key: its name, and ADMITTED or why they were refused.",
            "key",
            "outcome",
        )
        self.files_in_force = self._gauge(
            "files_in_force",
            "1 while what the files hold is in force; 0 where they are missing or wrong, and the last good ones count.",
            "files",
        )

    def _define_durations(self) -> None:
        self.queue_duration_seconds = self._latency(
            "queue_duration_seconds",
            "Time from the submission of a segment until an engine thread takes it. It is encoded next, and may then "
            "wait for a slot: that is not counted.",
            "model",
        )
        self.encode_duration_seconds = self._latency(
            "encode_duration_seconds",
            "Time of one run of the encoder, over one segment or several; what is kept needs none.",
            "model",
        )
        self.decode_step_duration_seconds = self._latency(
            "decode_step_duration_seconds",
            "Time of one decode step: the run of the decoder over the active slots, and log-probabilities and beam "
            "search where they are asked for.",
            "model",
        )
        self.step_age_seconds = self._gauge(
            "step_age_seconds", "Time since the oldest step that runs began; 0 when idle."
        )
        self.stalled_steps_total = self._counter("stalled_steps", "Steps that took so long that health was withdrawn.")

    def _define_slots(self) -> None:
        self.decode_batch_slots = Histogram(
            "decode_batch_slots",
            "Active slots of a decode step.",
            ["model"],
            buckets=SLOTS_BUCKETS,
            namespace=_PREFIX,
            registry=self.registry,
        )
        self.slots_active = self._gauge("slots_active", "Slots that hold a segment, or one hypothesis of it.", "model")
        self.slots = self._gauge("slots", "Slots of all threads.", "model")
        self.kv_cache_bytes = self._gauge(
            "kv_cache_bytes", f"Bytes reserved for the keys and values of all slots: {KV_CACHE_FORMULA}.", "model"
        )

    def _define_tokens(self) -> None:
        self.source_tokens_total = self._counter(
            "source_tokens",
            "Source tokens that the encoder read, end-of-sentence tokens counted. Where an encoder memory was kept, it "
            "reads none.",
            "model",
        )
        self.target_tokens_total = self._counter(
            "target_tokens",
            "Target tokens decoded, or given and scored, without the end-of-sentence tokens; of a beam search those of "
            "the translation that it ends with.",
            "model",
        )
        self.encoder_padding_tokens_total = self._counter(
            "encoder_padding_tokens",
            "Places of encoder runs that held no source token: each source is filled up to the longest of its run. "
            "Beside source_tokens: the waste.",
            "model",
        )
        self.unknown_pieces_total = self._counter(
            "unknown_pieces", "Source tokens encoded that stand for a piece that the model has no token for.", "model"
        )
        self.length_ratio = Histogram(
            "length_ratio",
            "Target tokens for each source token of a decoded segment, unless it was withdrawn or failed; both without "
            "the end-of-sentence token.",
            ["model"],
            buckets=LENGTH_RATIO_BUCKETS,
            namespace=_PREFIX,
            registry=self.registry,
        )

        self.quality_estimate = Histogram(
            "quality_estimate",
            "How probable it is that a reader accepts the translation of a segment, where a request asked for that.",
            ["model"],
            buckets=QUALITY_BUCKETS,
            namespace=_PREFIX,
            registry=self.registry,
        )

    def _define_ends(self) -> None:
        self.failed_runs_total = self._counter(
            "failed_runs",
            "Runs of a graph that failed and were run again in halves, or were of one segment.",
            "model",
            "graph",
        )
        self.cancelled_segments_total = self._counter(
            "cancelled_segments",
            "Segments withdrawn before they finished, because their call ended or another segment of their text "
            "failed.",
        )
        self.cancelled_tokens_saved_total = self._counter(
            "cancelled_tokens_saved",
            "Target tokens not decoded because a segment was cancelled or past its deadline. An estimate: each would "
            "have had as many tokens a source token as those that the model itself has ended so far.",
            "model",
        )
        self.segments_total = self._counter(
            "segments",
            "Segments that left an engine or its queue, and why they ended, INTERNAL where it failed; identical ones "
            "that shared a decoding count once.",
            "model",
            "reason",
        )

        self.searched_segments_total = self._counter(
            "searched_segments",
            "Segments that a beam search translated; they are among those of `segments_total`.",
            "model",
        )
        self.glossary_segments_total = self._counter(
            "glossary_segments",
            "Segments of answered texts that have terms of a glossary, or placeholders that are protected.",
            "model",
        )
        self.glossary_misses_total = self._counter(
            "glossary_misses", "Such terms and placeholders that answers name as missing.", "model"
        )

    def _define_caches(self) -> None:
        name = "encoder_memory_cache"
        self.encoder_memory_cache_hits_total = self._counter(
            f"{name}_hits",
            "Sources whose encoder memory was kept, or was made for an equal source of the same run.",
            "model",
        )
        self.encoder_memory_cache_misses_total = self._counter(
            f"{name}_misses", "Sources that were encoded; not counted where the cache is switched off.", "model"
        )
        self.encoder_memory_cache_evictions_total = self._counter(
            f"{name}_evictions", "Encoder memories forgotten to make room for others.", "model"
        )
        self.encoder_memory_cache_bytes = self._gauge(
            f"{name}_bytes", "Bytes of the encoder memories that are kept.", "model"
        )
        self.encoder_memory_cache_saved_seconds_total = self._counter(
            f"{name}_saved_seconds",
            "Seconds of encoder runs that hits saved: what those memories took to make, of a run over several "
            "sources the share by source tokens.",
            "model",
        )
        self.result_cache_hits_total = self._counter("result_cache_hits", "Segments whose result was kept.", "model")
        self.result_cache_misses_total = self._counter(
            "result_cache_misses",
            "Segments that had to be decoded; not counted where the cache is switched off. Those that shared a "
            "decoding are neither hits nor misses.",
            "model",
        )
        self.result_cache_bytes = self._gauge("result_cache_bytes", "Bytes of the results that are kept.", "model")
        self.result_cache_saved_seconds_total = self._counter(
            "result_cache_saved_seconds",
            "Engine time that hits saved: the seconds that those segments took from leaving the queue to their end.",
            "model",
        )
        self.coalesced_segments_total = self._counter(
            "coalesced_segments", "Segments that shared the decoding of an identical one that had not ended.", "model"
        )
        self.coalesced_saved_seconds_total = self._counter(
            "coalesced_saved_seconds",
            "Engine time that sharing saved: the seconds that the shared segment took from leaving the queue to its "
            "end, once for each of the others.",
            "model",
        )

    def describe_model(self, model: str, precision: str, device: str) -> None:
        """Export ``dragoman_model_info`` for one served model."""
        self.model_info.labels(model).info({"precision": precision, "device": device})

    def forget_model(self, model: str) -> None:
        """Export ``dragoman_model_info`` no more for a model that is not served any more."""
        self.model_info.remove(model)

    def tell_memory(self, sizes_bytes: Mapping[str, int]) -> None:
        """Export ``dragoman_model_memory_bytes`` for the models that are in memory, and for no others."""
        for model in self._in_memory - sizes_bytes.keys():
            self.model_memory_bytes.remove(model)
        for model, size_bytes in sizes_bytes.items():
            self.model_memory_bytes.labels(model).set(size_bytes)
        self._in_memory = set(sizes_bytes)

    def watch_queue(self, segments: Callable[[], float], source_tokens: Callable[[], float]) -> None:
        """Read the queue gauges from these functions at every scrape (called on the metrics thread)."""
        self.queue_segments.set_function(segments)
        self.queue_source_tokens.set_function(source_tokens)

    def watch_backlog(
        self, source_tokens: Callable[[Priority], float], per_second: Callable[[], float], delay_s: Callable[[], float]
    ) -> None:
        """Read the gauges of what waits, and for how long, from these functions at every scrape."""
        for priority in Priority:
            gauge = self.queue_priority_source_tokens.labels(priority.name.lower())
            gauge.set_function(partial(source_tokens, priority))
        self.drain_source_tokens_per_second.set_function(per_second)
        self.estimated_delay_seconds.set_function(delay_s)

    def watch_health(self, serving: Callable[[], bool]) -> None:
        """Read ``serving`` from this function at every scrape (called on the metrics thread)."""
        self.serving.set_function(serving)

    def watch_steps(self, age_s: Callable[[], float]) -> None:
        """Read ``step_age_seconds`` from this function at every scrape (called on the metrics thread)."""
        self.step_age_seconds.set_function(age_s)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, namespace=_PREFIX, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, namespace=_PREFIX, registry=self.registry)

    def _latency(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=LATENCY_BUCKETS_S, namespace=_PREFIX, registry=self.registry)


class ModelMetrics:
    """The metrics of one model, looked up once: a label costs more than a count.

    Named like those of :class:`Metrics`. Who sets what: the result cache ``result_cache_*`` and ``coalesced_*``; the
    statistics of segments ``segments_total``, ``searched_segments_total``, ``length_ratio`` and
    ``cancelled_tokens_saved_total``; calls ``glossary_segments_total``, ``glossary_misses_total`` and
    ``quality_estimate``; the engine all others. Several threads share the gauges, so each moves them with ``inc`` and
    ``dec`` and never sets them.
    """

    def __init__(self, metrics: Metrics, model: str) -> None:
        self.queue_duration_seconds = metrics.queue_duration_seconds.labels(model)
        self.encode_duration_seconds = metrics.encode_duration_seconds.labels(model)
        self.decode_step_duration_seconds = metrics.decode_step_duration_seconds.labels(model)
        self.decode_batch_slots = metrics.decode_batch_slots.labels(model)
        self.slots_active = metrics.slots_active.labels(model)
        self.slots = metrics.slots.labels(model)
        self.kv_cache_bytes = metrics.kv_cache_bytes.labels(model)
        self.source_tokens_total = metrics.source_tokens_total.labels(model)
        self.target_tokens_total = metrics.target_tokens_total.labels(model)
        self.encoder_padding_tokens_total = metrics.encoder_padding_tokens_total.labels(model)
        self.unknown_pieces_total = metrics.unknown_pieces_total.labels(model)
        self.length_ratio = metrics.length_ratio.labels(model)
        self.quality_estimate = metrics.quality_estimate.labels(model)
        self.failed_runs_total = {graph: metrics.failed_runs_total.labels(model, graph) for graph in GRAPHS}
        self.cancelled_tokens_saved_total = metrics.cancelled_tokens_saved_total.labels(model)
        self.searched_segments_total = metrics.searched_segments_total.labels(model)
        self.glossary_segments_total = metrics.glossary_segments_total.labels(model)
        self.glossary_misses_total = metrics.glossary_misses_total.labels(model)
        self.segments_total = {reason: metrics.segments_total.labels(model, reason) for reason in SEGMENT_ENDS}
        self.encoder_memory_cache_hits_total = metrics.encoder_memory_cache_hits_total.labels(model)
        self.encoder_memory_cache_misses_total = metrics.encoder_memory_cache_misses_total.labels(model)
        self.encoder_memory_cache_evictions_total = metrics.encoder_memory_cache_evictions_total.labels(model)
        self.encoder_memory_cache_bytes = metrics.encoder_memory_cache_bytes.labels(model)
        self.encoder_memory_cache_saved_seconds_total = metrics.encoder_memory_cache_saved_seconds_total.labels(model)
        self.result_cache_hits_total = metrics.result_cache_hits_total.labels(model)
        self.result_cache_misses_total = metrics.result_cache_misses_total.labels(model)
        self.result_cache_bytes = metrics.result_cache_bytes.labels(model)
        self.result_cache_saved_seconds_total = metrics.result_cache_saved_seconds_total.labels(model)
        self.coalesced_segments_total = metrics.coalesced_segments_total.labels(model)
        self.coalesced_saved_seconds_total = metrics.coalesced_saved_seconds_total.labels(model)
