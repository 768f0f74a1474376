"""Every setting of the server: default, bound, unit in the name, one line of help; each is also a flag of `serve`."""

import ipaddress
import math
import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from dragoman import language
from dragoman.address import Address
from dragoman.bundle import TARGET_FACTOR, TARGET_OFFSET
from dragoman.errors import DragomanError
from dragoman.invalid import requirement
from dragoman.spelling import did_you_mean
from service import cores
from service.options import MAX_BEAM_SIZE

PREFIX = "DRAGOMAN_"
MEGABYTE = 1_000_000
LogFormat = Literal["auto", "console", "json"]
LogRequests = Literal["all", "errors", "none"]
DEFAULT_MODELS: Final = Path(__file__).resolve().parents[1] / "models"  # in the repository, and in a wheel
NOWHERE: Final = "none"  # the value for no address
WEB_HOST: Final = r"https?://([\w.-]+|\[[\w.:]+\])(:\d{1,5})?"  # how a URL of the web begins
MAX_DURATION_S: Final = 86_400.0  # a day; an event loop cannot wait for 1e10 s
# The headings of `serve --help`, each by the first setting under it.
GROUPS: Final = {
    "address": "where it listens, and who may call",
    "models": "models",
    "device": "decoding and memory",
    "queue_source_tokens": "queue and limits of calls",
    "step_timeout_s": "health and shutdown",
    "log_format": "log and traces",
}
# Kubernetes gives every container these variables for a service that is called `dragoman`.
_KUBERNETES = re.compile(r"DRAGOMAN(_\w+)?_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)")
_DURATION: Final = re.compile(r"([0-9.]+)([smh])")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}


def _seconds(value: Any) -> Any:
    """Read 90, 90s, 5m and 1h as seconds."""
    if not isinstance(value, str):
        return value
    found = _DURATION.fullmatch(value)
    number, unit = found.groups() if found else (value, "s")
    try:
        return float(number) * _UNITS_S[unit]
    except ValueError as error:
        raise ValueError("must be seconds, such as 90, or 90s, 5m or 1h") from error


def _processes(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch("auto|[0-9]{1,9}", value):
        raise ValueError("must be auto, or a number of processes from 1 to 1024")
    return cores.available() if value == "auto" else value


def _listed(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


# Texts; a flag or a variable of the environment gives them as one text, separated by commas.
Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
# A number of seconds, or a number with its unit.
Seconds = Annotated[float, BeforeValidator(_seconds), Field(le=MAX_DURATION_S, allow_inf_nan=False)]


class SettingsError(DragomanError):
    """A setting is unknown or has an impossible value; the message is one line. No answer has this error."""

    reason = "SETTINGS_INVALID"


class Settings(BaseSettings):
    """The settings of `dragoman serve`, from flags, else from variables DRAGOMAN_*, else defaults.

    Use :func:`load`, which reports errors in one line.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    address: str = Field("127.0.0.1:50051", description="where gRPC listens, host:port (port 0: any free port)")
    http_address: str = Field(
        "127.0.0.1:8080",
        validate_default=True,
        description="where HTTP listens, host:port (port 0: any free port), with the certificates and keys of gRPC; "
        "none: nowhere",
    )
    http_origins: Texts = Field(
        (),
        description="origins of web pages of others that may call over HTTP (CORS), separated by commas, such as "
        "https://www.example.com; *: any",
    )
    http_trusted_proxies: Texts = Field(
        (),
        description="networks of proxies, separated by commas, such as 10.0.0.0/8, whose X-Forwarded-For over HTTP "
        "names the caller, and whose X-Forwarded-Proto names the scheme",
    )
    metrics_address: str = Field(
        "127.0.0.1:9464",
        validate_default=True,
        description="where Prometheus reads the metrics over HTTP, host:port (port 0: any free port)",
    )
    tls_certificate: str = Field("", description="PEM file with the server's certificate and its chain; enables TLS")
    tls_key: str = Field("", validate_default=True, description="PEM file with the private key of the certificate")
    tls_client_ca: str = Field(
        "",
        validate_default=True,
        description="CA bundle (PEM file) used to verify client certificates; enables mTLS",
    )
    api_keys: str = Field("", description="TOML file of API keys; every call must then have one of them")
    models: Texts = Field(
        (str(DEFAULT_MODELS),),
        description="names of models, separated by commas: a bundle, a folder with bundles at any depth, a folder that "
        "dragoman import reads, a model of the hub (OWNER/NAME), firefox:SOURCE-TARGET or firefox:all; by default the "
        "models that come with the server",
    )
    firefox_models: str = Field(
        "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data/db/models.json",
        description="URL of the list of the models of Firefox",
    )
    watch_models_s: Seconds = Field(
        0.0,
        ge=0,
        description="seconds between checks for new, changed and removed bundles (0: only after SIGHUP)",
    )
    model_memory_mb: int = Field(
        0,
        ge=0,
        description="megabytes of memory that models may take together; each is loaded when a call needs it, and the "
        "least recently used one leaves (0: all models are loaded at the start, and stay)",
    )
    keep_alive_s: Seconds = Field(
        0.0,
        ge=0,
        description="seconds without a call after which a model leaves the memory; each is loaded when a call needs it "
        "(0: models stay; with firefox:all and no model_memory_mb 300)",
    )
    pinned_models: Texts = Field(
        (),
        validate_default=True,
        description="names of models, separated by commas, that are loaded at the start and stay",
    )
    max_model_wait_s: Seconds = Field(
        30.0,
        gt=0,
        description="seconds that a call may wait for its model to be loaded; then it is refused",
    )
    glossaries: str = Field(
        "",
        description="folder with glossaries (CSV, TSV, TMX) that calls may name; read anew when the models are",
    )
    documents: str = Field(
        "",
        description="folder for translated documents, kept for 10 minutes; servers behind one balancer share it, so "
        "that each can return every document (none: in memory)",
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description="device that the models run on")
    processes: Annotated[int, BeforeValidator(_processes)] = Field(
        1,
        ge=1,
        le=1024,
        description="server processes that share the ports and the weights (auto: one per CPU core); caches, queues "
        "and limits hold for each of them",
    )
    threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="decoding threads per model (0: one per CPU core that the process may use, or one on a GPU; "
        "several processes divide the cores among them)",
    )
    run_threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="CPU cores of one run of a model: with more, few texts are translated sooner, and many no faster "
        "(0: one, or as many as there are decoding threads for a model of 256 MB and more)",
    )
    slots: int = Field(
        32,
        ge=1,
        le=4096,
        description="sentences that one thread decodes at the same time: more gives more throughput and longer steps",
    )
    beam_size: int = Field(
        1,
        ge=1,
        le=MAX_BEAM_SIZE,
        description="hypotheses that are kept of each sentence where a request does not say (1: greedy decoding); at "
        "most --slots",
    )
    kv_cache_mb: int = Field(
        0,
        ge=0,
        description="megabytes that the keys and values of each model may take; it gets fewer slots (0: no limit)",
    )
    encoder_cache_mb: int = Field(
        64, ge=0, description="megabytes of encoder outputs that each model keeps for later requests (0: none)"
    )
    result_cache_mb: int = Field(
        32, ge=0, description="megabytes of finished translations that each model keeps for later requests (0: none)"
    )
    shortlists: bool = Field(
        True,
        description="choose from each segment's own candidates where a model comes with a shortlist of them, as those "
        "of Firefox do; on a CPU",
    )
    coalesce: bool = Field(True, description="decode a sentence once where several requests hold it at the same time")
    queue_source_tokens: int = Field(
        200_000, ge=1, description="source tokens that may wait for each model; calls beyond that are refused"
    )
    queue_mb: int = Field(
        64, ge=1, description="megabytes of text that may wait for each model; calls beyond that are refused"
    )
    max_delay_s: Seconds = Field(
        1.0,
        ge=0,
        description="refuse interactive calls whose estimated queueing delay in seconds is longer than this (0: never)",
    )
    max_contents: int = Field(1024, ge=1, description="maximum number of texts in one call")
    max_text_bytes: int = Field(1_100_000, ge=1, description="maximum size of one text, in bytes of UTF-8")
    max_request_bytes: int = Field(
        8_388_608, ge=1, le=2**31 - 1, description="maximum size of one message of a caller, in bytes"
    )
    max_answer_bytes: int = Field(
        4_194_304,
        ge=65_536,
        le=2**31 - 1,
        description="maximum size of one message of an answer, in bytes; all texts of one TranslateText may have a "
        "third of it",
    )
    max_connections: int = Field(
        800, ge=1, le=2**31 - 1, description="maximum number of open connections; new ones beyond that are closed"
    )
    max_host_connections: int = Field(
        0,
        ge=0,
        le=2**31 - 1,
        description="maximum number of open connections, and of running calls of health and reflection, per client "
        "host (Linux); 0: half of max_connections",
    )
    max_connection_age_s: Seconds = Field(
        300.0,
        ge=0,
        description="seconds after which a client is asked to connect again, so that it finds new servers; calls that "
        "run end as usual; 0: never",
    )
    max_target_factor: float = Field(
        TARGET_FACTOR,
        ge=0,
        le=1000,
        description="maximum target tokens of a sentence per source token, see --max-target-offset",
    )
    max_target_offset: int = Field(
        TARGET_OFFSET,
        ge=1,
        description="target tokens of a sentence in addition to that; longer translations are cut off (LENGTH)",
    )
    pivot_language: str = Field(
        "", description="language, such as en, over which two models translate where no model serves both languages"
    )
    stop_repetition: bool = Field(True, description="stop a translation that repeats itself (REPETITION)")
    step_timeout_s: Seconds = Field(
        10.0,
        gt=0,
        description="health is NOT_SERVING while a step takes longer than this, in seconds",
    )
    shutdown_delay_s: Seconds = Field(
        0.0,
        ge=0,
        description="seconds after SIGTERM or SIGINT in which calls are still accepted, while health says NOT_SERVING",
    )
    drain_timeout_s: Seconds = Field(
        30.0,
        ge=0,
        description="seconds that running calls have to finish after SIGTERM or SIGINT",
    )
    log_format: LogFormat = Field(
        "auto", description="console is for people; auto is console on a terminal, and json elsewhere"
    )
    log_requests: LogRequests = Field("all", description="which calls get a line in the log; errors: those that fail")
    otlp_endpoint: str = Field(
        "",
        description="URL of an OpenTelemetry collector for a trace of each call (OTLP over gRPC), such as "
        "http://127.0.0.1:4317; needs the extra `tracing`",
    )

    @field_validator("address", "metrics_address", "http_address")
    @classmethod
    def _is_address(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name == "http_address" and value == NOWHERE:
            return ""
        address = Address.parse(value)
        for other in ("address", "http_address"):
            if other != info.field_name and address.port and info.data.get(other) == value:
                raise ValueError(f"must differ from --{other.replace('_', '-')}")
        return value

    @field_validator("models", mode="before")
    @classmethod
    def _are_names(cls, value: Any) -> Any:
        if not (all(value) if isinstance(value, tuple) else str(value).strip(" ,")):
            raise ValueError("must be names of models, none of them empty")
        is_one = isinstance(value, Path) or (isinstance(value, str) and Path(value).exists())
        return (str(value),) if is_one else value

    @field_validator("http_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/,]+", origin):
                raise ValueError("must be origins such as https://www.example.com, separated by commas, or *")
        return value

    @field_validator("http_trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ValueError("must be networks such as 10.0.0.0/8, separated by commas") from error
        return value

    @field_validator("tls_key", "tls_client_ca")
    @classmethod
    def _goes_with_a_certificate(cls, value: str, info: ValidationInfo) -> str:
        certificate = bool(info.data.get("tls_certificate"))
        if value and not certificate:
            raise ValueError("must be left out where there is no --tls-certificate")
        if info.field_name == "tls_key" and certificate and not value:
            raise ValueError("must be given, since there is a --tls-certificate")
        return value

    @field_validator("pinned_models")
    @classmethod
    def _goes_with_a_budget(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if value and not (info.data.get("model_memory_mb") or info.data.get("keep_alive_s")):
            raise ValueError(
                "must be left out where there is no --model-memory-mb and no --keep-alive-s: all models stay"
            )
        return value

    @field_validator("device")
    @classmethod
    def _has_measured_memory(cls, value: str, info: ValidationInfo) -> str:
        if value != "cpu" and info.data.get("model_memory_mb"):
            raise ValueError("must be cpu where there is a --model-memory-mb: a model's memory on a GPU is not known")
        return value

    @field_validator("processes")
    @classmethod
    def _can_be_several(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and sys.platform != "linux":
            raise ValueError("must be 1: only Linux spreads the connections to one port over several processes")
        if value > 1 and info.data.get("device") != "cpu":
            raise ValueError("must be 1 where the device is a GPU")
        return value

    @field_validator("run_threads")
    @classmethod
    def _runs_in_one_process(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and info.data.get("processes", 1) > 1:
            raise ValueError("must be 0 or 1 where there are several processes, which divide the cores")
        return value

    @field_validator("beam_size")
    @classmethod
    def _has_slots(cls, value: int, info: ValidationInfo) -> int:
        slots = info.data.get("slots", value)
        if value > slots:
            raise ValueError(f"must be at most the slots, which are {slots}")
        return value

    @field_validator("pivot_language")
    @classmethod
    def _is_language(cls, value: str) -> str:
        if value and not language.is_code(value):
            raise ValueError(language.RULE)
        return value

    @field_validator("firefox_models", "otlp_endpoint")
    @classmethod
    def _is_url(cls, value: str, info: ValidationInfo) -> str:
        is_file = info.field_name == "firefox_models"
        path, form = ("/[!-~]*", "host/path") if is_file else ("/?", "host:port")
        if (value or is_file) and not re.fullmatch(WEB_HOST + path, value):
            raise ValueError(f"must be http://{form} or https://{form}")
        return value

    @property
    def model_folders(self) -> list[Path]:
        """The folders of `models`, after all names have been replaced by folders."""
        return list(map(Path, self.models))

    def host_connections(self) -> int:
        """Compute how many connections one host may have, with 0 resolved."""
        return self.max_host_connections or max(1, self.max_connections // 2)

    def decoding_threads(self) -> int:
        """Compute the threads of each process: 0 means its share of the CPU cores, rounded up; 1 for a GPU."""
        return self.threads or (math.ceil(cores.available() / self.processes) if self.device == "cpu" else 1)


def load(flags: Mapping[str, Any] | None = None, *, other_variables: Collection[str] = ()) -> Settings:
    """Read the settings.

    Args:
        flags: values given on the command line, by field name; they win over the environment.
        other_variables: names of the environment that are no settings and no mistake.

    Raises:
        SettingsError: at least one is unknown or impossible.
    """
    # A misspelt variable would otherwise be ignored silently.
    known = [*(PREFIX + name.upper() for name in Settings.model_fields), *other_variables]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and not _KUBERNETES.fullmatch(name):
            raise SettingsError(f"unknown setting {name}{did_you_mean(name, known, PREFIX)}")
    try:
        return Settings(**(flags or {}))
    except ValidationError as error:
        raise SettingsError("; ".join(map(_describe, error.errors()))) from error


def _describe(error: Any) -> str:
    """Describe in one line which setting is wrong, why, and which value was given."""
    name = ".".join(map(str, error["loc"]))
    setting = f"{PREFIX}{name.upper()} (--{name.replace('_', '-')})"
    return f"{setting}: {requirement(error['msg'])}; given: {error['input']!r}"
