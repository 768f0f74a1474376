import importlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS, Command, all_commands, main
from dragoman.errors import BundleError

PYPROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


@pytest.fixture
def define(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Gives a command another function: `run` of a module of the given source."""

    def define_command(name: str, source: str) -> None:
        (tmp_path / "command_of_a_test.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "command_of_a_test", raising=False)
        monkeypatch.setitem(COMMANDS, name, Command("command_of_a_test:run", COMMANDS[name].extra, ""))

    return define_command


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Gives the only line on standard error, when nothing went to standard output."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.rstrip("\n")


@pytest.mark.parametrize("name", all_commands())
def test_every_command_is_a_function_that_exists(name: str) -> None:
    module, _, function = all_commands()[name].target.partition(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("name", all_commands())
def test_every_command_names_an_extra_that_exists(name: str) -> None:
    assert all_commands()[name].extra in PYPROJECT["optional-dependencies"]


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out = capsys.readouterr().out
    for name, command in all_commands().items():
        assert f"  {name} " in out
        assert command.summary in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dragoman {PYPROJECT['version']}\n"


@pytest.mark.parametrize(("name", "meant"), [("serv", "serve"), ("transalte", "translate"), ("loadtest", "load-test")])
def test_a_misspelt_command_is_asked_for(name: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert one_line(capsys) == f"dragoman: no command {name!r}; did you mean {meant}?"


@pytest.mark.parametrize("name", ["frobnicate", "--verbose", "", "two\nlines"])
def test_an_unknown_command_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    line = one_line(capsys)
    assert repr(name) in line
    assert all(command in line for command in all_commands())


def test_bulk_is_a_command_of_a_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(all_commands()) - set(COMMANDS) == set(PYPROJECT["entry-points"]["dragoman.commands"]) == {"bulk"}
    with pytest.raises(SystemExit, match="0"):
        main(["bulk", "--help"])
    assert capsys.readouterr().out.startswith("usage: dragoman bulk ")


def test_without_the_server_an_unknown_command_may_be_one_of_its_plugins(monkeypatch, capsys) -> None:
    monkeypatch.setattr("dragoman.cli.entry_points", lambda group: ())
    monkeypatch.setattr("dragoman.cli.find_spec", lambda name: None)
    assert main(["bulk"]) == 2
    assert one_line(capsys).endswith("; plugins of dragoman-server, which is not installed, have more")


def test_a_command_gets_its_arguments_and_gives_its_exit_code(
    define: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    define("models", "def run(arguments):\n    print(arguments)\n    return 7\n")
    assert main(["models", "--a", "b"]) == 7
    assert capsys.readouterr().out == "['--a', 'b']\n"


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("train", "no_torch", "train"),
        ("serve", "no_numbers", "cpu"),
        ("load-test", "no_plots.lines", "bench"),
        ("bench", "no_plots.lines", "bench"),
        ("evaluate", "no_scores", "import"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_missing_module_names_its_extra(name, module, extra, inside, define, capsys) -> None:
    define(name, f"def run(arguments):\n    import {module}\n" if inside else f"import {module}\n")
    assert main([name]) == 2
    line = one_line(capsys)
    missing = module.partition(".")[0]
    assert line.startswith(f'dragoman {name} needs the extra "{extra}" of dragoman-server (no module {missing!r}): ')
    assert line.endswith(f'pip install "dragoman-server[{extra}]"')
    assert ("make train-setup" in line) == (extra == "train")


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (["serve"], "dragoman serve"),
        (["translate", "a"], "dragoman translate without --address"),
        (["models"], "dragoman models without --address"),
        (["bench", "overload"], "dragoman bench"),
    ],
)
def test_without_the_server_a_line_says_what_to_install(arguments, needs, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "dragoman_server", None)
    assert main(arguments) == 2
    version = PYPROJECT["version"]
    assert one_line(capsys) == (
        f"{needs} needs dragoman-server {version}, which is not installed; "
        f'in a clone of Dragoman: pip install -e ./dragoman -e ".[{"cpu,bench" if arguments[0] == "bench" else "cpu"}]"'
    )


@pytest.mark.parametrize(("missing", "distribution"), [([], "dragoman-server"), (["dragoman_server"], "dragoman")])
def test_an_extra_that_both_have_is_named_of_what_is_installed(missing, distribution, tmp_path) -> None:
    (tmp_path / "a.po").write_text('msgid "a"\nmsgstr ""\n')
    code = (
        f"import sys; sys.modules |= dict.fromkeys({['polib', *missing]})\n"
        "from dragoman.cli import main\n"
        "sys.exit(main(['translate', '--file', 'a.po', '--out', 'b.po']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    needs = f"needs the extra \"documents\" of {distribution} (no module 'polib')"
    assert done.stderr == f'dragoman translate {needs}: pip install "{distribution}[documents]"\n'


@pytest.mark.parametrize(
    ("module", "extra"), [("onnxruntime", "cpu"), ("opentelemetry.sdk", "tracing"), ("torch.nn", "train")]
)
def test_some_modules_name_an_extra_of_their_own(module: str, extra: str, define, capsys) -> None:
    for name in ("export", "bench"):
        define(name, f"raise ModuleNotFoundError(name={module!r})\n")
        assert main([name]) == 2
        assert f'extra "{extra}"' in one_line(capsys)


def test_programs_to_compare_with_are_in_an_extra_of_their_own() -> None:
    code = (
        "import sys; sys.modules['ctranslate2'] = None\n"
        "from dragoman.cli import main\n"
        "sys.exit(main(['bench', 'compare']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith('dragoman bench needs the extra "peers" of dragoman-server')


@pytest.mark.parametrize("source", ["import service.no_such_file\n", "raise ModuleNotFoundError('by hand')\n"])
def test_a_missing_module_of_ours_is_a_fault_and_shows_it(source: str, define) -> None:
    define("serve", source)
    with pytest.raises(ModuleNotFoundError):
        main(["serve"])


def test_a_known_error_is_one_line(define, capsys) -> None:
    define(
        "serve",
        f"from {BundleError.__module__} import *\ndef run(arguments):\n    raise BundleError('a\\nb')\n",
    )
    assert main(["serve"]) == 2
    assert one_line(capsys) == "dragoman serve: a b"


def test_a_missing_file_is_one_line(define, capsys) -> None:
    define("train", "def run(arguments):\n    open('/no/such/file')\n")
    assert main(["train"]) == 2
    assert one_line(capsys) == "dragoman train: /no/such/file: No such file or directory"


def test_ctrl_c_is_quiet(define, capsys) -> None:
    define("train", "def run(arguments):\n    raise KeyboardInterrupt\n")
    assert main(["train"]) == 130
    assert capsys.readouterr() == ("", "")


def test_any_other_error_keeps_its_traceback(define) -> None:
    define("train", "def run(arguments):\n    return 1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        main(["train"])


def test_a_reader_that_left_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        ended = subprocess.run([sys.executable, "-m", "dragoman.cli", "--help"], stdout=pipe, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_standard_output_that_is_full_is_named_though_it_is_not_buffered() -> None:
    models = Path(__file__).parents[3] / "models" / "en-de" / "bundle"
    arguments = [sys.executable, "-u", "-m", "dragoman.cli", "models", "--models", str(models)]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (2, "dragoman: standard output: No space left on device\n")


@pytest.mark.parametrize("command", ["--help", "api-key alice", "translate --help"])
def test_a_standard_output_that_is_full_is_named(command: str) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    arguments = [sys.executable, "-m", "dragoman.cli", *command.split()]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "dragoman: standard output: No space left on device"


@pytest.mark.parametrize("command", ["frobnicate", "serve --models /nope"])
def test_a_standard_error_that_is_full_changes_no_exit_code(command: str) -> None:
    arguments = [sys.executable, "-m", "dragoman.cli", *command.split()]
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run(arguments, stderr=full).returncode == 2


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_the_place_of_a_standard_stream_that_is_closed_is_taken(closed: str) -> None:
    code = (
        "import os, sys\nfrom dragoman.cli import main\ncode = main(['frobnicate'])\n"
        "print(code, sys.stderr.isatty(), *map(os.get_inheritable, range(3)))"
    )
    command = f'exec "$0" -c "$1" {closed}'
    ended = subprocess.run(["sh", "-c", command, sys.executable, code], capture_output=True, text=True, input="")
    assert ended.stdout == "2 False True True True\n"
    assert ended.stderr.count("\n") == ("2>&-" not in closed)


def test_with_all_standard_streams_closed_a_command_has_its_exit_code() -> None:
    command = 'exec "$0" -m dragoman.cli --version <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", command, sys.executable]).returncode == 2


@pytest.mark.parametrize("command", ["--help", "api-key alice", "translate --help"])
def test_a_standard_output_that_is_closed_is_named(command: str) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    shell = f'exec "$0" -m dragoman.cli {command} >&-'
    ended = subprocess.run(["sh", "-c", shell, sys.executable], stderr=subprocess.PIPE, text=True, env=buffered)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "dragoman: standard output: Bad file descriptor"


def test_the_package_is_the_command_line(capfd) -> None:
    done = subprocess.run([sys.executable, "-m", "dragoman", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"dragoman {PYPROJECT['version']}\n")


@pytest.mark.parametrize(
    ("field", "flag"),
    [
        ("target_language_code", "--to"),
        ("source_language_code", "--from"),
        ("options.beam_size", "--beam-size"),
        ("options.sampling.top_k", "--top-k"),
        ("beam_size", "--beam-size"),
        ("options.protect_placeholders", "--protect-placeholders"),
        ("options.glossary.names[0]", "--glossary"),
        ("options.glossary.entries", "--glossary"),
        ("contents", "contents"),
    ],
)
def test_fields_of_a_request_are_named_by_their_flags(
    define: Callable[[str, str], None], capsys: pytest.CaptureFixture[str], field: str, flag: str
) -> None:
    define(
        "translate",
        f"""
from dragoman.errors import InvalidRequestError
def run(arguments):
    raise InvalidRequestError("{field}: is bad (and 1 more)", violations=[("{field}", "is bad"), ("model", "is not")])
""",
    )
    assert main(["translate"]) == 2
    assert one_line(capsys) == f"dragoman translate: {flag}: is bad; --model: is not"


def test_what_is_wrong_with_a_field_names_others_by_their_flags(
    define: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    define(
        "translate",
        """
from service.calls.limits import bad_beam, invalid
def run(arguments):
    raise invalid([*bad_beam(4, 1.0, 5, 32, sampled=True)])
""",
    )
    assert main(["translate"]) == 2
    assert one_line(capsys) == (
        "dragoman translate: --beam-size: must be at most 1 with --temperature, --top-k, --top-p or --seed, is 4; "
        "--alternatives: must be at most --beam-size, which is 4, is 5"
    )
