"""The page of the Python client: the public names of the package `dragoman`, from signatures and docstrings."""

from collections.abc import Iterator
from pathlib import Path

from griffe import (
    Alias,
    Attribute,
    Class,
    Docstring,
    DocstringElement,
    DocstringSection,
    DocstringSectionKind,
    Function,
    Parameter,
    ParameterKind,
    load,
)

import dragoman
from docs.generators.markdown import code, one_line, paragraphs, table

ROOT = Path(__file__).parents[2]
MODULES = ("client", "options", "glossary", "answers", "errors")
HEAD = """# The Python client

Made by `make docs` from the signatures and docstrings of the package `dragoman`.
[Getting started](../getting-started.md#3-translate-in-python) has programs to begin with."""
OF_ASYNC_CLIENT = """Arguments, signatures and errors are those of `Client` where none stand here.
`await` each call; go through what it yields with `async for`."""
HEAD_OF_ERRORS = """## Errors

[Errors](../errors.md) says of each when it comes, and what to do."""
LINE_WIDTH = 100
TITLES = {
    DocstringSectionKind.parameters: "Arguments",
    DocstringSectionKind.attributes: "Attributes",
    DocstringSectionKind.returns: "Returns",
    DocstringSectionKind.yields: "Yields",
    DocstringSectionKind.raises: "Raises",
}


def page() -> str:
    """Write the page."""
    package = load("dragoman", search_paths=[ROOT], docstring_parser="google")
    classes = [each for module in MODULES for each in package[module].classes.values() if _is_public(each)]
    root = package["errors.DragomanError"]
    errors = [each for each in classes if root in each.mro()]
    parts = [HEAD]
    for each in classes:
        if each not in (root, *errors):
            parts += _class(each, as_in=package["client.Client"] if each.name == "AsyncClient" else None)
    rows = [(f"`{each.name}`", f"`{each.bases[0]}`", one_line(_docstring(each).value)) for each in errors]
    parts += [HEAD_OF_ERRORS, *_class(root, level=3), table(("class", "base", "what it means"), rows)]
    return "\n\n".join(parts) + "\n"


def _is_public(each: Class | Alias) -> bool:
    return each.name in dragoman.__all__ and not each.is_alias  # an alias is imported, and described where it is from


def _class(each: Class, level: int = 2, as_in: Class | None = None) -> Iterator[str]:
    """Describe a class, then its public methods, each below a heading of its own, without what is as in `as_in`."""
    yield f"{'#' * level} {each.name}"
    made, made_first = each.functions.get("__init__"), as_in.functions["__init__"] if as_in else None
    if made and not _takes_the_same(made, made_first):
        yield code(_signature(made, f"class {each.name}"), "python")
    yield from _described(each, as_in)
    if as_in:
        yield OF_ASYNC_CLIENT
    for name, method in each.functions.items():
        if not name.startswith("_"):
            first = as_in.functions.get(name) if as_in else None
            yield f"{'#' * (level + 1)} {each.name}.{name}"
            if not _takes_the_same(method, first):
                yield code(_signature(method, _definition(method)), "python")
            yield from _described(method, first)


def _takes_the_same(method: Function, first: Function | None) -> bool:
    return first is not None and list(_parameters(method)) == list(_parameters(first))


def _definition(method: Function) -> str:
    """Name a method; an asynchronous generator is called without `await`, and so is shown without `async`."""
    is_awaited = "async" in method.labels and not str(method.returns).startswith("AsyncIterator")
    return f"{'async ' * is_awaited}def {method.name}"


def _signature(method: Function, head: str) -> str:
    """Write a signature on one line, or, where it is long, each parameter on a line of its own."""
    parameters = list(_parameters(method))
    end = f") -> {method.returns}" if method.returns and method.name != "__init__" else ")"
    line = f"{head}({', '.join(parameters)}{end}"
    if len(line) <= LINE_WIDTH:
        return line
    return "\n".join([f"{head}(", *(f"    {parameter}," for parameter in parameters), end])


def _parameters(method: Function) -> Iterator[str]:
    is_open = True
    for parameter in list(method.parameters)[1:]:  # without self
        if is_open and parameter.kind is ParameterKind.keyword_only:
            is_open = False
            yield "*"
        yield _parameter(parameter, method)


def _parameter(parameter: Parameter, method: Function) -> str:
    if parameter.kind is ParameterKind.var_keyword:
        return f"**{parameter.name}: {parameter.annotation}"
    default = f" = {_value(str(parameter.default), method)}" if parameter.default else ""
    return f"{parameter.name}: {parameter.annotation}{default}"


def _value(default: str, method: Function) -> str:
    """Give the value of a constant that a signature names."""
    constant = method.module.members.get(default)
    if isinstance(constant, Alias):
        constant = constant.final_target
    return str(constant.value) if isinstance(constant, Attribute) else default


def _described(of: Class | Function, as_in: Class | Function | None = None) -> Iterator[str]:
    """Give the sections of a docstring, without those that another docstring has, and arguments that are as there."""
    known = (
        {line for section in _docstring(as_in).parsed for line in _section(section).splitlines()} if as_in else set()
    )
    for section in _docstring(of).parsed:
        lines = _section(section).splitlines()
        if not all(line in known or (as_in and f"as in `{as_in.name}`" in line) for line in lines):
            yield "\n".join(lines)


def _docstring(of: Class | Function) -> Docstring:
    assert of.docstring, f"{of.path} has no docstring"
    return of.docstring


def _section(section: DocstringSection) -> str:
    if section.kind is DocstringSectionKind.text:
        return paragraphs(section.value)
    rows = "\n".join(_row(each) for each in section.value)
    return f"{TITLES[section.kind]}:\n\n{rows}"


def _row(each: DocstringElement) -> str:
    """Name one parameter, attribute, result or error, with its type where it has one."""
    kind = f"`{each.annotation}`" if each.annotation else ""
    if name := getattr(each, "name", ""):
        kind = f"`{name}` ({kind})" if kind else f"`{name}`"
    return f"- {kind}: {one_line(each.description)}"
