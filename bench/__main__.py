"""`python -m bench NAME`: as `dragoman bench NAME`, whatever extras are installed."""

import sys

from bench.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
