"""What the parsers of all commands have in common: an error in their arguments is one line."""

import argparse
from typing import Final, NoReturn

EXIT_BAD_ARGUMENTS: Final = 2


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with 2."""
        self.exit(EXIT_BAD_ARGUMENTS, f"{self.prog}: {' '.join(message.split())}\n")
