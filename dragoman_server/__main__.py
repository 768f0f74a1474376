"""`python -m dragoman_server MODULE [ARGUMENTS]`: run a module of the server's packages, such as bench.peers.serve."""

import runpy
import sys


def main() -> None:
    """Run the module as a program, with the arguments after its name."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m dragoman_server MODULE [ARGUMENTS]")
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
