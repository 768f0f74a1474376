"""Routes that are kept: for whom, and how long."""

from types import SimpleNamespace

import pytest

from dragoman.v1 import translation_pb2 as pb
from service.handlers.planning import Routes
from service.handlers.route import Route
from service.options import RequestOptions
from service.registry.catalog import Catalog, Choice


def request(text: str = "a", **fields: object) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=[text], **{"model": "m", **fields})


@pytest.fixture
def catalog() -> Catalog:
    return Catalog([])


@pytest.fixture
def route() -> Route:
    return Route(Choice(SimpleNamespace(), "en", "de"), RequestOptions())


def test_a_request_for_other_texts_has_the_same_route(catalog, route) -> None:
    routes = Routes()
    assert routes.find(request(), catalog) is None
    routes.keep(request(), catalog, route)
    assert routes.find(request("b", request_id="i", all_or_nothing=True), catalog) is route


@pytest.mark.parametrize(
    "other",
    [
        {"model": "n"},
        {"source_language_code": "en"},
        {"target_language_code": "de"},
        {"mime_type": "text/html"},
        {"priority": pb.PRIORITY_BULK},
        {"options": {"beam_size": 2}},
        {"options": {"target_prefix": "a"}},
    ],
)
def test_a_request_that_asks_for_anything_else_has_another(catalog, route, other: dict) -> None:
    routes = Routes()
    routes.keep(request(), catalog, route)
    assert routes.find(request(**other), catalog) is None
    routes.keep(request(**other), catalog, route)
    assert routes.find(request(**other), catalog) is route


def test_routes_are_those_of_the_models_that_are_served_now(catalog, route) -> None:
    routes = Routes()
    routes.keep(request(), catalog, route)
    assert routes.find(request(), Catalog([])) is None
    routes.keep(request(model="n"), Catalog([]), route)
    assert routes.find(request(), catalog) is None


@pytest.mark.parametrize("options", [{"sampling": {}}, {"glossary": {"names": ["g"]}}, {"target_prefix": "a" * 2_000}])
def test_what_is_drawn_or_may_change_or_is_large_is_not_kept(catalog, route, options: dict) -> None:
    routes = Routes()
    routes.keep(request(options=options), catalog, route)
    assert routes.find(request(options=options), catalog) is None


def test_the_number_of_routes_is_bounded(catalog, route) -> None:
    routes = Routes()
    for number in range(1_025):
        routes.keep(request(model=str(number)), catalog, route)
    assert routes.find(request(model="0"), catalog) is None
    assert routes.find(request(model="1024"), catalog) is route
