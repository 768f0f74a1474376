"""`python -m dragoman_server MODULE [ARGUMENTS]`: run a module of the server's packages, such as bench.gpu."""

import argparse
import runpy
import sys
from importlib.util import find_spec

from dragoman.arguments import Parser


def main() -> None:
    """Run the module as a program, with the arguments after its name; one line and 2 if there is no such module."""
    parser = Parser("python -m dragoman_server", description="Run a module of the server's packages as a program.")
    parser.add_argument("module", help="its name, such as bench.gpu")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the module")
    options = parser.parse_args()
    if not _exists(options.module):
        parser.error(f"argument module: there is no module {options.module!r}")
    sys.argv = [options.module, *options.arguments]
    runpy.run_module(options.module, run_name="__main__", alter_sys=True)


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor a package that would hold it
        return False


if __name__ == "__main__":
    main()
