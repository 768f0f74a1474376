"""Every knob of the server: default, bound, unit in the name, one line why; each also a flag of `serve`."""

import os
import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from dragoman.bundle import TARGET_FACTOR, TARGET_OFFSET
from dragoman.errors import DragomanError

PREFIX = "DRAGOMAN_"
MEGABYTE = 1_000_000
# Kubernetes gives every container such variables for a service that is called `dragoman`.
_KUBERNETES = re.compile(r"DRAGOMAN(_\w+)?_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)")


class SettingsError(DragomanError):
    """A setting is unknown or has an impossible value; the message is one line. Never in an answer."""

    reason = "SETTINGS_INVALID"


class Address(NamedTuple):
    """Where a server listens.

    Attributes:
        host: a name, an IPv4 address, or an IPv6 address without brackets.
        port: 0 lets the system choose a free one.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `host:port`, with the host in brackets where it is an IPv6 address.

        Raises:
            ValueError: the text is something else, or the port is above 65535.
        """
        match = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:\s\[\]]+)):(\d{1,5})", text)
        if match is None or int(match[3]) > 65535:
            raise ValueError("must be host:port with a port up to 65535")
        return cls(match[1] or match[2], int(match[3]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Settings(BaseSettings):
    """The settings of `dragoman serve`, from flags, else from variables DRAGOMAN_*, else defaults.

    Use :func:`load`, which reports errors in one line.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    address: str = Field("127.0.0.1:50051", description="where gRPC listens, host:port; port 0: any free one")
    metrics_address: str = Field(
        "127.0.0.1:9464", description="where Prometheus finds the metrics over HTTP, host:port"
    )
    tls_certificate: str = Field(
        "", description="PEM file of the server's certificate and chain: calls come over TLS; none: in plain text"
    )
    tls_key: str = Field("", validate_default=True, description="PEM file of the private key of the certificate")
    tls_client_ca: str = Field(
        "",
        validate_default=True,
        description="PEM file of the authorities by one of which every caller must be certified (mTLS); none: no need",
    )
    api_keys: str = Field("", description="TOML file of the API keys of which every call must have one; none: no need")
    models: Path = Field(Path("models"), description="a bundle, or a folder with bundles anywhere below it")
    watch_models_s: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="seconds between looks for new, changed and removed bundles; 0: only after SIGHUP",
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description="what the models run on")
    threads: int = Field(
        0, ge=0, le=1024, description="decoding threads of each model; 0: one a CPU core, one on a GPU"
    )
    slots: int = Field(
        32,
        ge=1,
        le=4096,
        description="segments that one thread decodes at a time: more throughput, longer steps",
    )
    kv_cache_mb: int = Field(
        0,
        ge=0,
        description="megabytes that the keys and values of each model may take: it gets fewer slots; 0: no limit",
    )
    encoder_cache_mb: int = Field(
        64, ge=0, description="megabytes of encoder memories that each model keeps across requests; 0: none"
    )
    result_cache_mb: int = Field(
        32, ge=0, description="megabytes of finished translations that each model keeps; 0: none"
    )
    coalesce: bool = Field(True, description="whether identical sentences in flight are decoded once")
    queue_source_tokens: int = Field(
        200_000,
        ge=1,
        description="source tokens that may wait for each model; beyond, calls are refused until some have left",
    )
    queue_mb: int = Field(
        64, ge=1, description="megabytes of their texts that may wait for each model; beyond, calls are refused as well"
    )
    max_delay_s: float = Field(
        1.0,
        ge=0,
        allow_inf_nan=False,
        description="seconds that interactive calls may have to wait for others, by the estimate; beyond, they are "
        "refused; 0: any",
    )
    max_contents: int = Field(1024, ge=1, description="texts in one call")
    max_text_bytes: int = Field(1_100_000, ge=1, description="UTF-8 bytes of one text")
    max_request_bytes: int = Field(8_388_608, ge=1, le=2**31 - 1, description="bytes of one message on the wire")
    max_connections: int = Field(
        800, ge=1, le=2**31 - 1, description="connections at a time; beyond, new ones are closed at once"
    )
    max_connection_calls: int = Field(
        1024, ge=1, le=2**31 - 1, description="calls at a time over one connection; its client keeps back what is more"
    )
    max_target_factor: float = Field(
        TARGET_FACTOR,
        ge=0,
        le=1000,
        description="target tokens of a sentence for each of its source tokens, at most; see the next",
    )
    max_target_offset: int = Field(
        TARGET_OFFSET, ge=1, description="target tokens of a sentence that come on top; more are cut off (LENGTH)"
    )
    stop_repetition: bool = Field(
        True, description="whether a translation that goes round in circles is stopped (REPETITION)"
    )
    step_timeout_s: float = Field(
        10.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds that a step may take; beyond, health is NOT_SERVING until steps go on",
    )
    shutdown_delay_s: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="seconds after SIGTERM or SIGINT that new calls are still taken, while health says NOT_SERVING",
    )
    drain_timeout_s: float = Field(
        30.0,
        ge=0,
        allow_inf_nan=False,
        description="seconds that running calls have to finish after SIGTERM or SIGINT",
    )
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="lines for people (console), JSON objects, or auto: for people on a terminal, else JSON"
    )
    log_requests: Literal["all", "errors", "none"] = Field(
        "all", description="which calls get a line in the log: all, those that fail, none"
    )
    otlp_endpoint: str = Field(
        "",
        description="URL of the OpenTelemetry collector that gets a trace of each call by OTLP over gRPC, such as "
        "http://127.0.0.1:4317; needs the extra `tracing`; empty: no traces",
    )

    @field_validator("address", "metrics_address")
    @classmethod
    def _is_address(cls, value: str) -> str:
        Address.parse(value)
        return value

    @field_validator("tls_key", "tls_client_ca")
    @classmethod
    def _goes_with_a_certificate(cls, value: str, info: ValidationInfo) -> str:
        certificate = bool(info.data.get("tls_certificate"))
        if value and not certificate:
            raise ValueError("must be left out where there is no tls_certificate")
        if info.field_name == "tls_key" and certificate and not value:
            raise ValueError("must be given, since there is a tls_certificate")
        return value

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s/]+/?", value):
            raise ValueError("must be http://host:port or https://host:port")
        return value

    def decoding_threads(self) -> int:
        """The number of threads, with 0 resolved to the CPU cores that this process may use; one drives a GPU."""
        return self.threads or (_cores() if self.device == "cpu" else 1)


def load(flags: Mapping[str, Any] | None = None, *, other_variables: Collection[str] = ()) -> Settings:
    """Read the settings.

    Args:
        flags: values given on the command line, by field name; they win over the environment.
        other_variables: names of the environment that are no settings and no mistake.

    Raises:
        SettingsError: at least one is unknown or impossible.
    """
    _refuse_unknown({name: value for name, value in os.environ.items() if name not in other_variables})
    try:
        return Settings(**(flags or {}))
    except ValidationError as error:
        raise SettingsError("; ".join(map(_describe, error.errors()))) from error


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not everywhere; it honours taskset and cpusets
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    """Stop at a misspelt variable, which would otherwise silently mean the default."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and not _KUBERNETES.fullmatch(name):
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise SettingsError(f"unknown setting {name}{hint}")


def _describe(error: Any) -> str:
    """Say in one line which setting is wrong, why, and what was given."""
    name = ".".join(map(str, error["loc"]))
    message = error["msg"].removeprefix("Value error, ").replace("Input should", "must")
    return f"{PREFIX}{name.upper()} (--{name.replace('_', '-')}): {message}; given: {error['input']!r}"
