"""Pages of the list of models."""

import pytest

from dragoman.bundle import Manifest
from dragoman.errors import InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from service.answer import listed
from service.validation import check_page

NAMES = ["de-en", "en-de", "en-fr", "fr-en", "it-en"]


@pytest.fixture
def manifests(manifest: Manifest) -> list[Manifest]:
    return [manifest.model_copy(update={"name": name}) for name in NAMES]


def pages(manifests: list[Manifest], size: int) -> list[list[str]]:
    found, token = [], ""
    while True:
        page = listed(manifests, pb.ListModelsRequest(page_size=size, page_token=token))
        found.append([model.name for model in page.models])
        if not (token := page.next_page_token):
            return found


@pytest.mark.parametrize("size", [0, 5, 6, 2**31 - 1])
def test_all_models_fit_one_page_unless_it_is_to_be_smaller(manifests, size) -> None:
    assert pages(manifests, size) == [NAMES]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_pages_hold_each_model_once_in_order(manifests, size) -> None:
    assert pages(manifests, size) == [NAMES[start : start + size] for start in range(0, len(NAMES), size)]


def test_a_token_stays_good_when_its_model_goes(manifests) -> None:
    token = listed(manifests, pb.ListModelsRequest(page_size=2)).next_page_token
    del manifests[1]
    rest = listed(manifests, pb.ListModelsRequest(page_token=token))
    assert [model.name for model in rest.models] == NAMES[2:]


def test_no_models_are_an_empty_last_page() -> None:
    assert listed([], pb.ListModelsRequest(page_size=1)) == pb.ListModelsResponse()


def test_a_negative_page_is_an_error() -> None:
    check_page(pb.ListModelsRequest(page_size=0))
    with pytest.raises(InvalidRequestError, match=r"^page_size: must not be negative, is -1$"):
        check_page(pb.ListModelsRequest(page_size=-1))
