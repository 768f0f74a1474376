"""docker-compose.yml: what its health checks wait for, and what its images are built with."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = (ROOT / "docker-compose.yml").read_text()


def seconds_to_start(check: str) -> int:
    [seconds] = re.findall(r"start[-_]period[:=] ?(\d+)s", check)
    return int(seconds)


def services() -> dict[str, str]:
    parts = re.split(r"^  (?=[\w-]+:$)", COMPOSE.split("\nservices:\n")[1].split("\nvolumes:\n")[0], flags=re.MULTILINE)
    return {service.partition(":")[0]: service for service in parts if service}


def test_every_health_check_bears_a_start_of_a_minute() -> None:
    """`docker compose up --wait` gives up on a container whose check fails three times after that."""
    checks = {name: service.partition("healthcheck:")[2] for name, service in services().items()}
    with_checks = {name: check for name, check in checks.items() if check}
    assert {"balancer", "prometheus", "grafana"} <= with_checks.keys()
    for name, check in with_checks.items():
        assert seconds_to_start(check) >= 60, name
    for image in ("Dockerfile", "Dockerfile.gpu"):
        instruction = (ROOT / "deploy" / image).read_text().partition("HEALTHCHECK")[2]
        assert seconds_to_start(instruction) >= 60, image


def test_a_replica_that_imports_models_has_what_that_needs() -> None:
    for name, extra in (("dragoman", "cpu"), ("dragoman-gpu", "gpu")):
        assert f"        EXTRAS: {extra}${{DRAGOMAN_MODELS:+,import}}\n" in services()[name]
