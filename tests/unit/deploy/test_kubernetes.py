"""deploy/kubernetes, as kustomize builds it: what its parts say of each other, of the server and of the image."""

import re
import tomllib
from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import pytest
import yaml

from dragoman.address import Address
from dragoman.v1 import translation_pb2 as pb
from plugins.documents.jobs import MAX_BYTES
from plugins.google.v3 import translation_service_pb2 as google_pb
from plugins.http.calls import DEFAULT_TIMEOUT_S
from service.settings import Settings, load
from service.telemetry.metrics import Metrics
from tests.kubernetes import kustomize
from tests.kubernetes.combinations import APART, LARGEST, NAMES, SETS, built
from tests.kubernetes.documents import config, container, container_ports, of_kind, pod
from tests.kubernetes.kustomize import COMPONENTS, MANIFESTS, ROOT, Document

if reason := kustomize.missing():
    pytest.skip(reason, allow_module_level=True)

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
DOCKERFILES = {name: (ROOT / "deploy" / name).read_text() for name in ("Dockerfile", "Dockerfile.gpu")}
ALERTS = yaml.safe_load((MANIFESTS / "components/prometheus-operator/prometheusrule.yaml").read_text())["spec"]


@pytest.fixture(params=NAMES)
def documents(request: pytest.FixtureRequest) -> list[Document]:
    return built(request.param)


def settings(documents: list[Document], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings that the server of the image has with these variables; it refuses unknown and impossible ones."""
    image = container(documents)["image"]
    dockerfile = DOCKERFILES["Dockerfile.gpu" if image.endswith("-gpu") else "Dockerfile"]
    variables = dict(re.findall(r"(DRAGOMAN_\w+)=(\S+)", dockerfile)) | config(documents)
    for variable in container(documents).get("env", []):
        source = variable["valueFrom"]["resourceFieldRef"]
        assert source == {"resource": "requests.cpu", "divisor": "1"}
        variables[variable["name"]] = container(documents)["resources"]["requests"]["cpu"]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load()


def values(node: Any, key: str) -> Iterator[Any]:
    """All that stands under a name, anywhere in a document."""
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == key)
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from values(child, key)


def test_every_component_is_built_alone_and_beside_all_that_it_goes_with() -> None:
    assert {(name,) for name in COMPONENTS} <= set(SETS)
    together = {pair for names in SETS for pair in combinations(sorted(names), 2)}
    apart = {tuple(sorted(pair)) for pair in APART}
    assert together | apart == set(combinations(COMPONENTS, 2))
    assert not together & apart


def unordered(node: Any) -> Any:
    """A document whose lists are equal if they hold the same in any order."""
    if isinstance(node, dict):
        return {name: unordered(value) for name, value in node.items()}
    return sorted(map(unordered, node), key=repr) if isinstance(node, list) else node


def test_components_may_be_named_in_any_order() -> None:
    """In a few sets, in which each pair that goes together occurs."""
    pairs = {names: set(combinations(names, 2)) for names in LARGEST}
    left = set.union(*pairs.values())
    while left:
        names = max(LARGEST, key=lambda names: len(pairs[names] & left))
        left.difference_update(pairs[names])
        assert unordered(kustomize.base_with(*names[::-1])) == unordered(kustomize.base_with(*names))


def test_the_page_lists_the_components() -> None:
    page = (ROOT / "docs/kubernetes.md").read_text()
    table = page.split("## Components")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE)) == COMPONENTS


class TestDocuments:
    def test_each_has_a_name_of_its_own_and_the_label(self, documents: list[Document]) -> None:
        names = [(document["kind"], document["metadata"]["name"]) for document in documents]
        assert len(set(names)) == len(names)
        for document in documents:
            if document["kind"] != "Namespace":
                assert document["metadata"]["labels"] == {"app.kubernetes.io/name": "dragoman"}

    def test_selectors_select_the_pods(self, documents: list[Document]) -> None:
        labels = pod(documents)["metadata"]["labels"]
        policies = of_kind(documents, "NetworkPolicy")
        selectors = [service["spec"]["selector"] for service in of_kind(documents, "Service")]
        selectors += [policy["spec"]["podSelector"]["matchLabels"] for policy in policies]
        for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
            selectors += [document["spec"]["selector"]["matchLabels"] for document in of_kind(documents, kind)]
        selectors += [selector["matchLabels"] for selector in values(pod(documents), "labelSelector")]
        assert len(selectors) >= 6
        assert [selector for selector in selectors if selector != labels] == []

    def test_what_is_named_is_there(self, documents: list[Document]) -> None:
        [deployment] = of_kind(documents, "Deployment")
        scalers = [*of_kind(documents, "HorizontalPodAutoscaler"), *of_kind(documents, "ScaledObject")]
        for target in (scaler["spec"]["scaleTargetRef"] for scaler in scalers):
            assert target["name"] == deployment["metadata"]["name"]
            assert target.get("kind", "Deployment") == deployment["kind"]
            assert target.get("apiVersion", "apps/v1") == deployment["apiVersion"]
        for measured in chain.from_iterable(values(scaler, "containerResource") for scaler in scalers):
            assert measured["container"] == container(documents)["name"]
            assert measured["name"] in container(documents)["resources"]["requests"]
        volumes = {volume["name"] for volume in pod(documents)["spec"]["volumes"]}
        assert {mount["name"] for mount in container(documents)["volumeMounts"]} == volumes
        claims = {claim["metadata"]["name"] for claim in of_kind(documents, "PersistentVolumeClaim")}
        assert set(values(pod(documents), "claimName")) == claims

    def test_nobody_but_the_autoscaler_sets_the_replicas(self, documents: list[Document]) -> None:
        [deployment] = of_kind(documents, "Deployment")
        assert "replicas" not in deployment["spec"]

    def test_the_image_is_of_this_version(self, documents: list[Document]) -> None:
        name, _, tag = container(documents)["image"].rpartition(":")
        gpu = "nvidia.com/gpu" in container(documents)["resources"]["limits"]
        assert tag == (f"{VERSION}-gpu" if gpu else VERSION)
        assert name.rpartition("/")[2] == "dragoman"


class TestPorts:
    def test_the_server_listens_where_the_container_says(self, documents: list[Document], monkeypatch) -> None:
        own = settings(documents, monkeypatch)
        listening = {"grpc": own.address, "http": own.http_address, "metrics": own.metrics_address}
        addresses = {name: Address.parse(value) for name, value in listening.items()}
        assert {name: address.port for name, address in addresses.items()} == container_ports(documents)
        assert {address.host for address in addresses.values()} == {"0.0.0.0"}

    def test_services_lead_to_ports_of_the_container(self, documents: list[Document]) -> None:
        ports = container_ports(documents)
        for service in of_kind(documents, "Service"):
            named = {port["targetPort"]: port["port"] for port in service["spec"]["ports"]}
            assert named == {"grpc": ports["grpc"], "http": ports["http"]}
        headless = [
            s["metadata"]["name"] for s in of_kind(documents, "Service") if s["spec"].get("clusterIP") == "None"
        ]
        assert headless == ["dragoman"]

    def test_routes_lead_to_services(self, documents: list[Document]) -> None:
        services = of_kind(documents, "Service")
        ports = {(s["metadata"]["name"], port["port"]): port["name"] for s in services for port in s["spec"]["ports"]}
        for kind, name in (("GRPCRoute", "grpc"), ("HTTPRoute", "http")):
            for backend in chain.from_iterable(values(of_kind(documents, kind), "backendRefs")):
                assert ports[backend["name"], backend["port"]] == name

    def test_callers_reach_the_ports_of_calls_and_prometheus_that_of_metrics(self, documents: list[Document]) -> None:
        allowed: dict[str, set[str]] = {}
        for policy in of_kind(documents, "NetworkPolicy"):
            for rule in policy["spec"].get("ingress", []):
                [origin] = rule["from"]
                labels = origin.get("namespaceSelector", {}).get("matchLabels", {})
                namespace = labels.get("kubernetes.io/metadata.name", "own")
                allowed.setdefault(namespace, set()).update(port["port"] for port in rule["ports"])
        routed = {ref["namespace"] for refs in values(documents, "parentRefs") for ref in refs}
        expected = {"own": {"grpc", "http"}} | {namespace: {"grpc", "http"} for namespace in routed}
        if of_kind(documents, "PodMonitor"):
            expected["monitoring"] = {"metrics"}
        assert allowed == expected
        assert set().union(*allowed.values()) <= container_ports(documents).keys()

    def test_nothing_leaves_but_what_fetches_models(self, documents: list[Document]) -> None:
        policies = {policy["metadata"]["name"]: policy["spec"] for policy in of_kind(documents, "NetworkPolicy")}
        assert policies["dragoman"]["policyTypes"] == ["Ingress", "Egress"]
        leaving = [
            port["port"] for policy in policies.values() for rule in policy.get("egress", []) for port in rule["ports"]
        ]
        assert set(leaving) == ({53, 443} if "initContainers" in pod(documents)["spec"] else set())

    def test_probes_ask_the_server(self, documents: list[Document], monkeypatch) -> None:
        """By gRPC, or over TLS by the image's own check, which the kubelet's probes do not speak."""
        own = settings(documents, monkeypatch)
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = container(documents)[name]
            if own.tls_certificate:
                assert "grpc" not in probe
                assert probe["exec"]["command"] == ["python", "/opt/dragoman/healthcheck.py"]
                copied = "COPY deploy/healthcheck.py /opt/dragoman/healthcheck.py"
                assert all(copied in dockerfile for dockerfile in DOCKERFILES.values())
            else:
                assert probe["grpc"] == {"port": container_ports(documents)["grpc"]}

    def test_a_step_that_stalls_makes_a_pod_unready_long_before_it_is_killed(self, documents, monkeypatch) -> None:
        times_s = {
            name: container(documents)[f"{name}Probe"]["periodSeconds"]
            * container(documents)[f"{name}Probe"]["failureThreshold"]
            for name in ("startup", "readiness", "liveness")
        }
        assert times_s["readiness"] * 3 <= times_s["liveness"]
        assert times_s["liveness"] >= 5 * settings(documents, monkeypatch).step_timeout_s
        assert times_s["startup"] == 300


class TestPod:
    def test_there_is_time_to_drain(self, documents: list[Document], monkeypatch) -> None:
        """docs/operating.md: longer than delay, drain, 10 s for slow readers, and the load of a bundle."""
        own = settings(documents, monkeypatch)
        assert own.shutdown_delay_s > 0
        grace_s = pod(documents)["spec"]["terminationGracePeriodSeconds"]
        assert grace_s > own.shutdown_delay_s + own.drain_timeout_s + 10
        assert "lifecycle" not in container(documents)

    def test_it_decodes_on_as_many_threads_as_it_has_cpus(self, documents: list[Document], monkeypatch) -> None:
        own = settings(documents, monkeypatch)
        assert "cpu" not in container(documents)["resources"]["limits"]
        cpus = int(container(documents)["resources"]["requests"]["cpu"])
        assert own.decoding_threads() == (1 if own.device == "cuda" else cpus)
        assert (own.device == "cuda") == ("nvidia.com/gpu" in container(documents)["resources"]["limits"])

    def test_it_has_the_memory_that_the_alert_means(self, documents: list[Document], monkeypatch) -> None:
        resources = container(documents)["resources"]
        assert resources["requests"]["memory"] == resources["limits"]["memory"]
        if settings(documents, monkeypatch).device == "cpu":
            assert resources["limits"]["memory"] == "1Gi"
            rules = chain.from_iterable(values(ALERTS, "rules"))
            [alert] = [rule for rule in rules if rule.get("alert") == "DragomanMemory"]
            assert "> 0.9 * 2 ^ 30" in alert["expr"]

    def test_it_passes_the_restricted_pod_security_standard(self, documents: list[Document]) -> None:
        spec = pod(documents)["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in (container(documents), *spec.get("initContainers", [])):
            assert each["securityContext"]["allowPrivilegeEscalation"] is False
            assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert each["securityContext"]["readOnlyRootFilesystem"] is True
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        assert not any("hostPort" in port for port in container(documents)["ports"])
        kinds = {kind for volume in spec["volumes"] for kind in volume.keys() - {"name"}}
        assert kinds <= {"emptyDir", "secret", "persistentVolumeClaim", "image"}

    def test_it_can_do_no_more_than_it_needs(self, documents: list[Document]) -> None:
        spec, security = pod(documents)["spec"], container(documents)["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        user = f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"
        assert all(f"USER {user}\n" in dockerfile for dockerfile in DOCKERFILES.values())
        mounts = container(documents)["volumeMounts"]
        assert [mount["mountPath"] for mount in mounts if not mount.get("readOnly")] == ["/tmp"]

    def test_the_documents_of_several_processes_fit_in_its_temporary_folder(self, documents: list[Document]) -> None:
        [folder] = [volume["emptyDir"] for volume in pod(documents)["spec"]["volumes"] if volume["name"] == "tmp"]
        assert int(folder["sizeLimit"].removesuffix("Mi")) * 2**20 > MAX_BYTES

    def test_models_by_their_names_are_imported_first_with_what_the_server_has(self, documents: list[Document]) -> None:
        for each in pod(documents)["spec"].get("initContainers", []):
            assert each["image"] == container(documents)["image"]
            assert each["envFrom"] == container(documents)["envFrom"]
            assert each["args"] == ["models", "--add", "$(DRAGOMAN_MODELS)"]
            [cache] = [mount for mount in each["volumeMounts"] if mount["name"] == "cache"]
            assert all(f"XDG_CACHE_HOME={cache['mountPath']} " in text for text in DOCKERFILES.values())
            assert cache | {"readOnly": True} in container(documents)["volumeMounts"]

    def test_the_files_of_the_settings_are_mounted(self, documents: list[Document], monkeypatch) -> None:
        own = settings(documents, monkeypatch)
        mounted = {mount["mountPath"]: mount["name"] for mount in container(documents)["volumeMounts"]}
        files = [own.tls_certificate, own.tls_key, own.tls_client_ca, own.api_keys]
        folders = {file.rpartition("/")[0] for file in files if file}
        assert folders == mounted.keys() - {"/tmp", "/models", "/cache"}
        named = any(volume["name"] == "cache" for volume in pod(documents)["spec"]["volumes"])
        assert own.models == (("firefox:en-de", "firefox:de-en") if named else ("/models",))


class TestAutoscaling:
    def test_the_query_of_keda_asks_for_metrics_and_the_job_that_exist(self) -> None:
        [scaler] = of_kind(kustomize.base_with("autoscaling-keda"), "ScaledObject")
        [trigger] = scaler["spec"]["triggers"]
        gauges = {family.name for family in Metrics().registry.collect() if family.type == "gauge"}
        named = set(re.findall(r"\bdragoman_\w+", trigger["metadata"]["query"]))
        assert named
        assert named <= gauges
        assert 'job="dragoman"' in trigger["metadata"]["query"]

    def test_keda_adds_pods_before_calls_are_refused(self, monkeypatch) -> None:
        documents = kustomize.base_with("autoscaling-keda")
        [scaler] = of_kind(documents, "ScaledObject")
        [trigger] = scaler["spec"]["triggers"]
        assert float(trigger["metadata"]["threshold"]) < settings(documents, monkeypatch).max_delay_s

    def test_both_scale_alike(self) -> None:
        [by_cpu] = of_kind(kustomize.base_with("autoscaling-cpu"), "HorizontalPodAutoscaler")
        [by_work] = of_kind(kustomize.base_with("autoscaling-keda"), "ScaledObject")
        assert by_cpu["spec"]["behavior"] == by_work["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        for bound in ("min", "max"):
            assert by_cpu["spec"][f"{bound}Replicas"] == by_work["spec"][f"{bound}ReplicaCount"]
        assert by_work["spec"]["minReplicaCount"] >= 2


class TestMonitoring:
    def test_the_rules_are_those_of_prometheus(self) -> None:
        [rule] = of_kind(kustomize.base_with("prometheus-operator"), "PrometheusRule")
        assert rule["spec"] == ALERTS
        assert len(rule["spec"]["groups"]) >= 4

    def test_the_job_is_that_of_the_rules(self) -> None:
        """Without jobLabel it would be namespace and name of the PodMonitor, and two alerts would never fire."""
        documents = kustomize.base_with("prometheus-operator")
        [monitor] = of_kind(documents, "PodMonitor")
        jobs = set(re.findall(r'job="(\w+)"', str(ALERTS)))
        assert jobs == {pod(documents)["metadata"]["labels"][monitor["spec"]["jobLabel"]]}

    def test_metrics_are_read_at_their_port(self) -> None:
        documents = kustomize.base_with("prometheus-operator")
        [monitor] = of_kind(documents, "PodMonitor")
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in container_ports(documents)


class TestGateway:
    def test_it_routes_the_services_of_callers(self) -> None:
        [route] = of_kind(kustomize.base_with("gateway"), "GRPCRoute")
        routed = {match["method"]["service"] for matches in values(route, "matches") for match in matches}
        answered = [*pb.DESCRIPTOR.services_by_name.values(), *google_pb.DESCRIPTOR.services_by_name.values()]
        assert routed == {service.full_name for service in answered}

    def test_it_waits_as_long_as_the_server(self) -> None:
        [route] = of_kind(kustomize.base_with("gateway"), "HTTPRoute")
        assert list(values(route, "timeouts")) == [{"request": f"{DEFAULT_TIMEOUT_S:g}s"}]

    @pytest.mark.parametrize("documents", ["gateway", "example"], indirect=True)
    def test_no_host_name_has_routes_of_both_kinds(self, documents: list[Document]) -> None:
        """A listener would accept only the older of them."""
        [grpc_route], [http_route] = of_kind(documents, "GRPCRoute"), of_kind(documents, "HTTPRoute")
        assert not set(grpc_route["spec"]["hostnames"]) & set(http_route["spec"]["hostnames"])

    def test_one_host_may_have_all_connections(self, monkeypatch) -> None:
        own = settings(kustomize.base_with("gateway"), monkeypatch)
        assert own.max_host_connections == own.max_connections


def test_the_example_takes_pods_of_the_restricted_standard_alone() -> None:
    [namespace] = of_kind(kustomize.example(), "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    inside = {document["metadata"].get("namespace") for document in kustomize.example()} - {None}
    assert inside == {namespace["metadata"]["name"]}
