"""Finds what is asked for in the documents that kustomize makes."""

from tests.kubernetes.kustomize import Document


def of_kind(documents: list[Document], kind: str) -> list[Document]:
    """All of a kind, such as Service."""
    return [document for document in documents if document["kind"] == kind]


def pod(documents: list[Document]) -> Document:
    """The template of the pods."""
    [deployment] = of_kind(documents, "Deployment")
    return deployment["spec"]["template"]


def container(documents: list[Document]) -> Document:
    """The one container of a pod."""
    [only] = pod(documents)["spec"]["containers"]
    return only


def container_ports(documents: list[Document]) -> dict[str, int]:
    """Its ports by their names."""
    return {port["name"]: port["containerPort"] for port in container(documents)["ports"]}


def config(documents: list[Document]) -> dict[str, str]:
    """The variables of the ConfigMap that it reads."""
    [config_map] = of_kind(documents, "ConfigMap")
    [source] = container(documents)["envFrom"]
    assert source == {"configMapRef": {"name": config_map["metadata"]["name"]}}
    return config_map["data"]
