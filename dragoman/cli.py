"""The command line: a table of commands; the function of a command is loaded only when the command is called.

Most commands need dragoman-server, which may be absent. Its plugins add commands: each entry point of the group
`dragoman.commands` names a `Command`.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from types import MappingProxyType
from typing import NamedTuple, TextIO

from dragoman.exit_codes import EXIT_BAD_ARGUMENTS, EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_OK
from dragoman.loading import SERVER, load
from dragoman.spelling import did_you_mean


class Command(NamedTuple):
    """One command.

    Attributes:
        target: the function that runs the command, as "module:function"; takes the arguments, returns the exit code.
        extra: the extra of dragoman-server that installs the packages of the command.
        summary: one line for the help.
        extras: the extras of modules that only a part of the command needs.
    """

    target: str
    extra: str
    summary: str
    extras: Mapping[str, str] = MappingProxyType({})


COMMANDS = {
    "serve": Command("service.commands.serve:serve", "cpu", "serve models over gRPC"),
    "translate": Command(
        "dragoman.commands.translate:translate", "cpu", "translate arguments, or standard input by lines"
    ),
    "detect": Command(
        "dragoman.commands.detect:detect", "cpu", "detect the languages of arguments, or of lines of standard input"
    ),
    "score": Command(
        "dragoman.commands.score:score", "cpu", "say how probable given translations are, of standard input by lines"
    ),
    "models": Command("dragoman.commands.models:models", "cpu", "list the models of a folder or of a server"),
    "glossaries": Command("dragoman.commands.glossaries:glossaries", "cpu", "list the glossaries of a server"),
    "api-key": Command("plugins.access.command:api_key", "cpu", "make an API key, and its line for the server's file"),
    "train": Command("model.cli:train", "train", "train a model on a parallel corpus"),
    "evaluate": Command("export.cli:evaluate", "import", "score a checkpoint or a bundle: BLEU and chrF"),
    "export": Command("export.cli:export", "import", "turn a checkpoint into a bundle that can be served"),
    "import": Command("export.importing:import_", "import", "make a checkpoint, and a bundle, of a model of others"),
    "calibrate": Command(
        "export.quality:calibrate",
        "import",
        "fit the quality estimates of a bundle to references",
        {"matplotlib": "plots"},
    ),
    "inspect": Command(
        "export.inspecting:inspect",
        "train",
        "show what a checkpoint or a bundle consists of, and where it looks",
        {"matplotlib": "plots"},
    ),
    "load-test": Command("bench.load.command:main", "bench", "measure the latency and throughput of a server"),
    "bench": Command(
        "bench.cli:main",
        "bench",
        "measure the engine, alone and beside other programs",
        dict.fromkeys(("ctranslate2", "onnx", "safetensors"), "peers"),
    ),
}
_GROUP = "dragoman.commands"
_CLIENT_EXTRAS = ("documents",)  # extras of the distribution `dragoman`
_EXTRAS = {
    "filelock": "import",
    "lxml": "documents",
    "markdown_it": "documents",
    "onnxruntime": "cpu",
    "opentelemetry": "tracing",
    "polib": "documents",
    "torch": "train",
}
# Fields of requests, as errors name them, and their flags.
_FLAGS = {"model": "--model", "source_language_code": "--from", "target_language_code": "--to"}
_OPTION = re.compile(
    r"(?:options\.)?(?:sampling\.)?"
    "(alignments|alternatives|beam_size|glossary|length_penalty|protect_placeholders|quality_estimate|seed|"
    r"target_prefix|temperature|top_[kp])(?:[.\[].*)?"
)
# Fields that the description of another field names.
_IN_WORDS = {"options.sampling": "--temperature, --top-k, --top-p or --seed", "beam_size": "--beam-size"}
_PACKAGES = ("dragoman", "service", "plugins", "model", "export", "bench")


def all_commands() -> dict[str, Command]:
    """List the commands of the table and of the installed plugins."""
    return COMMANDS | {plugin.name: load(plugin.value) for plugin in entry_points(group=_GROUP)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: without the program's name; None: those of the process.

    Returns:
        The exit code: the command's own; 2, with one line on standard error, for an unknown command, a missing extra, a
        known error, or a standard stream that cannot be read or written; 130 after Ctrl-C; 141 when the reader of the
        output has left.
    """
    _open_streams()
    try:
        code = _run_flushed(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader has left, as `head` does
        _drop(sys.stdout)
        return EXIT_BROKEN_PIPE
    except OSError as error:
        _drop(sys.stdout)
        return _fail(f"dragoman: standard output: {error.strerror}")
    if arguments is None:
        gc.freeze()  # skip the garbage collection of all objects at the end of the process
    return code


def _open_streams() -> None:
    """Open the null device for each standard stream that is closed, as by `<&-`: else a socket takes its place.

    Input cannot be read there, nor output written: these are errors, as with a closed stream. Messages are dropped.
    """
    for name, mode, way in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            stream = open(os.open(os.devnull, way), mode, errors="replace")  # noqa: SIM115  # the lowest free number
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _run_flushed(arguments: list[str]) -> int:
    """Run a command and write out all that it printed, also if it exits by itself, as for `--help`."""
    try:
        code = _run(arguments)
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def _run(arguments: list[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        print(_help())
        return EXIT_OK
    if name == "--version":
        print(f"dragoman {version('dragoman')}")
        return EXIT_OK
    command = COMMANDS.get(name)
    if command is None:  # looking for plugins takes time, so only for other names
        commands = all_commands()
        command = commands.get(name)
    if command is None:
        more = "" if find_spec(SERVER) else "; plugins of dragoman-server, which is not installed, have more"
        hint = did_you_mean(name, commands) or f"; there are {', '.join(commands)}{more}"
        return _fail(f"dragoman: no command {name!r}{hint}")
    return _call(name, command, rest)


def _call(name: str, command: Command, arguments: list[str]) -> int:
    """Load a command and run it; an error that the user can correct ends in one line, any other in its traceback."""
    # gRPC reads the variable at import. Its log lines have another format, and foreign peers can cause them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from dragoman.errors import DragomanError

    try:
        code: int = load(command.target)(arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in _PACKAGES:
            raise
        return _fail(
            _server_of(name, command)
            if missing == SERVER
            else f"dragoman {name} needs the {_extra_of(missing, command)}"
        )
    except (DragomanError, OSError) as error:
        if isinstance(error, BrokenPipeError) or _is_of_output(error):
            raise
        return _fail(f"dragoman {name}: {_words(error)}")
    return code


def _is_of_output(error: Exception) -> bool:
    """Tell whether the error came from standard output: then writing to it fails again."""
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        try:
            sys.stdout.buffer.write(b"")  # where it is not buffered, there is nothing to flush
            sys.stdout.flush()
        except OSError:
            return True
    return False


def _drop(stream: TextIO) -> None:
    """Detach a standard stream: else the interpreter would meet the same error when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _words(error: Exception) -> str:
    """Describe an error without error numbers of the operating system, and with the flags of the command line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    violations = getattr(error, "violations", ())
    if violations and str(error).startswith(f"{violations[0].field}: "):
        said = "; ".join(f"{_flag_of(field)}: {description}" for field, description in violations)
        return re.sub("|".join(_IN_WORDS), lambda name: _IN_WORDS[name[0]], said)
    return str(error)


def _flag_of(field: str) -> str:
    """Name the flag that sets a field of a request; the field itself where there is no such flag."""
    if option := _OPTION.fullmatch(field):
        return f"--{option[1].replace('_', '-')}"
    return _FLAGS.get(field, field)


def _server_of(name: str, command: Command) -> str:
    """Say that dragoman-server is missing, and how to install it."""
    needs = f"dragoman {name} without --address" if command.target.startswith("dragoman.") else f"dragoman {name}"
    what = f"dragoman-server {version('dragoman')}, which is not installed"
    extras = "cpu,bench" if command.extra == "bench" else command.extra  # what is measured needs cpu
    return f'{needs} needs {what}; in a clone of Dragoman: pip install -e ./dragoman -e ".[{extras}]"'


def _extra_of(missing: str, command: Command) -> str:
    """Say how to install a missing module; some modules have an extra of their own, whatever the command."""
    extra = command.extras.get(missing) or _EXTRAS.get(missing, command.extra)
    of_client = extra in _CLIENT_EXTRAS and not find_spec(SERVER)
    distribution = "dragoman" if of_client else "dragoman-server"
    setup = "make train-setup in a clone of Dragoman, or " if extra == "train" else ""
    how = f'{setup}pip install "{distribution}[{extra}]"'
    return f'extra "{extra}" of {distribution} (no module {missing!r}): {how}'


def _fail(message: str) -> int:
    """Print a message as one line, if it can be printed, and return the exit code of an error."""
    try:
        print(" ".join(message.split()), file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)
    return EXIT_BAD_ARGUMENTS


def _help() -> str:
    commands = all_commands()
    width = max(map(len, commands))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in commands.items()]
    usage = "usage: dragoman COMMAND [ARGUMENTS]    (dragoman COMMAND --help says more; dragoman --version)"
    return "\n".join([usage, "", *lines])


if __name__ == "__main__":
    sys.exit(main())
