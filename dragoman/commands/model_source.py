"""The models of a command: in a folder or on a server, and the choice of one of them."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from tqdm import tqdm

from dragoman import access
from dragoman.access import API_KEY_VARIABLE, Access
from dragoman.answers import Model
from dragoman.arguments import language, server_address
from dragoman.channel import ADDRESS_VARIABLE, NO_TLS
from dragoman.client import Client
from dragoman.errors import (
    DeadlineExceededError,
    DragomanError,
    InvalidRequestError,
    ServerUnavailableError,
    UnauthenticatedError,
    UnknownLanguagePairError,
    UnknownModelError,
)
from dragoman.language import AUTO, HasLanguages, described, specificity, translates
from dragoman.patience import Patience

LIST_TIMEOUT_S: Final = 10.0
# Begins what a server tells programs that call it without a key.
_FOR_PROGRAMS: Final = ": send "


class Named(HasLanguages, Protocol):
    """A model of a server, or the manifest of a bundle."""

    @property
    def name(self) -> str:
        """The name of the model."""


_Listed = TypeVar("_Listed", bound=Named)
_Told = TypeVar("_Told")


class _TellingClient(Client):
    """A client that tells the user, once in a call, that it waits for a server that was there before."""

    _told: Patience | None = None  # of the call in which it was told

    def _pause_s(self, error: DragomanError, patience: Patience) -> float:
        pause_s = super()._pause_s(error, patience)
        if self._has_answered and self._told is not patience and isinstance(error, ServerUnavailableError):
            self._told = patience
            tqdm.write(f"dragoman: {error.message}; trying again for {self._timeout_s:g} s", file=sys.stderr)
        return pause_s


def add_arguments(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the flags that :func:`parse` reads; returns the group of mutually exclusive flags."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--models",
        metavar="NAME",
        help="a bundle, a folder with bundles, or another name of models as for dragoman serve (default: the models "
        "that come with the server; DRAGOMAN_MODELS)",
    )
    place.add_argument(
        "--address",
        type=server_address,
        metavar="HOST:PORT",
        help=f"a server to ask, instead of working in this process ({ADDRESS_VARIABLE}, unless --models is given)",
    )
    access.add_arguments(parser)
    return place


def add_choice(
    parser: argparse.ArgumentParser,
    source: Callable[[str], str] = language,
    source_help: str = "source language, such as en",
) -> None:
    """Add the flags that :func:`chosen` reads."""
    add = parser.add_argument
    add("--model", metavar="NAME", help="name of the model; not needed if only one can be meant")
    add("--from", dest="source", type=source, metavar="CODE", help=source_help)
    add("--to", dest="target", type=language, metavar="CODE", help="target language, such as de")


def chosen(options: argparse.Namespace) -> tuple[str, str, str]:
    """Give the name, source and target for :func:`choose`."""
    return options.model or "", options.source or "", options.target or ""


def parse(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[argparse.Namespace, Access]:
    """Read the arguments of a command; exits with code 2 if they contradict each other."""
    options = parser.parse_args(arguments)
    if options.models == "":
        parser.error("argument --models: must be a name of models, is empty")
    if not options.models:
        options.address = address_of(parser, options.address)
    if not options.address and (flag := access.given(options)):
        parser.error(f"argument {flag}: needs --address")
    return options, access.of(parser, options)


def address_of(parser: argparse.ArgumentParser, given: str | None) -> str | None:
    """Choose the server's address: the given one, else that of the environment; None: no server."""
    named = os.environ.get(ADDRESS_VARIABLE)
    if given or not named:
        return given
    try:
        return server_address(named)
    except argparse.ArgumentTypeError as error:
        parser.error(f"{ADDRESS_VARIABLE}: {error}")


@contextmanager
def connected(address: str, let_in: Access, timeout_s: float) -> Iterator[Client]:
    """Give a client that waits for a busy server, and says that it waits for one that is away; errors name the flags.

    Raises:
        ServerUnavailableError: no server answers at the address.
        UnauthenticatedError: the server asks for a key.
        OSError: a TLS file cannot be used.
    """
    with _TellingClient(
        address,
        timeout_s=timeout_s,
        wait_when_busy=True,
        api_key=let_in.api_key,
        credentials=let_in.credentials(),
    ) as client:
        try:
            yield client
        except ServerUnavailableError as error:
            if NO_TLS not in error.message:
                raise
            raise ServerUnavailableError(f"{error.message} (--tls-ca, --tls-cert, --tls-key)") from error
        except UnauthenticatedError as error:
            if let_in.api_key:
                raise
            said = error.message.partition(_FOR_PROGRAMS)[0]
            raise UnauthenticatedError(f"{said}: give one with --api-key KEY or {API_KEY_VARIABLE}") from error


def served(client: Client, address: str) -> list[Model]:
    """List the models of a server; raises as :func:`first_list`."""
    return first_list(client.list_models, address)


def first_list(ask: Callable[..., list[_Told]], address: str) -> list[_Told]:
    """Get a list from a server, in the first call to this server.

    Args:
        ask: a method of the client that returns a list.
        address: the address of the server.

    Raises:
        DragomanError: the server does not answer, or answers with an error.
    """
    try:
        return ask(timeout_s=LIST_TIMEOUT_S)
    except DeadlineExceededError as error:
        raise ServerUnavailableError(f"{address} did not answer within {LIST_TIMEOUT_S:g} s") from error


def choose(models: Sequence[_Listed], name: str, source: str, target: str) -> _Listed:
    """Find the one model that fits the arguments.

    Args:
        models: the available models.
        name: the name of the model; "": any.
        source: BCP-47 code of the source language; "": any.
        target: BCP-47 code of the target language; "": any.

    Raises:
        UnknownModelError: no model has the name.
        UnknownLanguagePairError: no model translates between the languages.
        InvalidRequestError: several models fit (the message lists them), or the model has several target languages and
            no target is given.
    """
    named = [model for model in models if name in ("", model.name)]
    if not named:
        raise UnknownModelError(f"no model {name!r}; there are: {', '.join(model.name for model in models) or 'none'}")
    fitting = [model for model in named if translates(model, source, target)]
    if not fitting:
        wanted = f"from {source or 'any language'} to {target or 'any language'}"
        raise UnknownLanguagePairError(f"no model translates {wanted}; there are: {_described(named)}")
    if source and target:  # for en-GB, a model of en-GB is preferred to one of en
        closeness = [specificity(model, source, target) for model in fitting]
        fitting = [model for model, fit in zip(fitting, closeness, strict=True) if fit == max(closeness)]
    if len(fitting) > 1:
        raise InvalidRequestError(
            f"there are several models, say which with --model, --from or --to: {_described(fitting)}"
        )
    [model] = fitting
    if not target and len(model.target_languages) > 1:
        raise InvalidRequestError(
            f"model {model.name} writes {len(model.target_languages)} languages, say which with --to"
        )
    return model


def detects(models: Sequence[Named], name: str, source: str, target: str) -> bool:
    """Tell whether the detected language of each text chooses the model; arguments as for :func:`choose`.

    True for the source "auto". Without arguments, True if there are several models and each text has just one choice.
    """
    if name or source or target:
        return source == AUTO
    sources = [code for model in models for code in model.source_languages]
    return len(models) > 1 and len(set(sources)) == len(sources) and has_one_target(models)


def has_one_target(models: Sequence[Named]) -> bool:
    """Tell whether each source language has exactly one target language, so that no target need be given."""
    targets: dict[str, set[str]] = {}
    for model in models:
        for source in model.source_languages:
            targets.setdefault(source, set()).update({*model.target_languages} - {source})
    return all(len(codes) == 1 for codes in targets.values())


def _described(models: Sequence[Named]) -> str:
    return ", ".join(f"{model.name} ({described(model)})" for model in models)
