"""deploy/kubernetes by the published schemas: no field that they do not know, none missing, no impossible value."""

import json
import re
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain

import kubernetes_validate
import pytest
import yaml

from tests.kubernetes import custom_resources, kustomize
from tests.kubernetes.combinations import LARGEST
from tests.kubernetes.kustomize import ROOT, Document, base_with, example

if reason := kustomize.missing():
    pytest.skip(reason, allow_module_level=True)

# The first two are in docs/kubernetes.md; the last is the newest that has schemas.
OLDEST, WITH_IMAGE_VOLUMES, NEWEST = "1.30", "1.35", "1.37"
PAGE = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def _models() -> None:
    try:
        custom_resources.fetch()
    except custom_resources.NoModelsError as error:
        pytest.skip(f"custom resources are not checked: {error}")


def different(documents: Iterable[Document]) -> list[Document]:
    """Each of them once: most components leave most documents as they are."""
    return list({json.dumps(document, sort_keys=True): document for document in documents}.values())


def every_document() -> list[Document]:
    sets = [(), *LARGEST]
    return different(chain(example(), *(base_with(*names) for names in sets)))


@pytest.mark.parametrize("version", [OLDEST, WITH_IMAGE_VOLUMES, NEWEST])
def test_kubernetes_knows_every_field(version: str) -> None:
    documents = [document for document in every_document() if not custom_resources.is_known(document)]
    assert {document["kind"] for document in documents} >= {"Deployment", "Service", "NetworkPolicy"}
    for document in documents:
        if version != OLDEST or not has_image_volume(document):
            assert kubernetes_validate.validate(document, version, strict=True) == version


def has_image_volume(document: Document) -> bool:
    return document["kind"] == "Deployment" and any(
        "image" in volume for volume in document["spec"]["template"]["spec"]["volumes"]
    )


def test_the_page_names_the_versions() -> None:
    assert f"Kubernetes {OLDEST} or newer" in PAGE
    assert re.search(rf"^\| `models-image` .* \| Kubernetes {WITH_IMAGE_VOLUMES} \|$", PAGE, flags=re.MULTILINE)


def test_manifests_in_the_page_are_right() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    manifests = [manifest for block in blocks for manifest in yaml.safe_load_all(block) if "apiVersion" in manifest]
    checked = [manifest for manifest in manifests if "kustomize" not in manifest["apiVersion"]]
    assert checked
    for manifest in checked:
        kubernetes_validate.validate(manifest, OLDEST, strict=True)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_a_misspelt_field_is_found(version: str) -> None:
    [deployment] = [deepcopy(document) for document in base_with() if document["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    container["livenessProbe"]["failureTreshold"] = 6
    with pytest.raises(kubernetes_validate.ValidationError, match="'failureTreshold' was unexpected"):
        kubernetes_validate.validate(deployment, version, strict=True)


@pytest.mark.usefixtures("_models")
class TestCustomResources:
    def test_their_projects_know_every_field(self) -> None:
        documents = [document for document in every_document() if custom_resources.is_known(document)]
        kinds = {document["kind"] for document in documents}
        assert kinds == {"GRPCRoute", "HTTPRoute", "PodMonitor", "PrometheusRule", "ScaledObject"}
        assert custom_resources.problems(documents) == ""

    def test_misspelt_fields_and_impossible_values_are_found(self) -> None:
        scaler, route, monitor = (
            deepcopy(document)
            for name, kind in (
                ("autoscaling-keda", "ScaledObject"),
                ("gateway", "GRPCRoute"),
                ("prometheus-operator", "PodMonitor"),
            )
            for document in base_with(name)
            if document["kind"] == kind
        )
        scaler["spec"]["minReplicasCount"] = scaler["spec"].pop("minReplicaCount")
        route["spec"]["hostnames"] = ["Translate.example.com"]
        monitor["spec"]["podMetricsEndpoints"][0]["interval"] = "15 seconds"
        found = custom_resources.problems([scaler, route, monitor])
        assert "'\"minReplicasCount\"' does not exist in type 'IScaledObjectSpec'" in found
        assert "data/spec/hostnames/0 must match pattern" in found
        assert "data/spec/podMetricsEndpoints/0/interval must match pattern" in found
