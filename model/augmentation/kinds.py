"""The names of the kinds of augmentation, in the order of their application."""

from typing import Literal

# join: append further sentences; no-stop: remove the final stop; typos: errors in the source; lower, title: the source;
# caps: both sides; times: change times that one side has with a.m. or p.m.; numbers: change numbers that one side has
# with a point and the other with a comma; names: change the names that both sides share; copies, stand-ins: put items
# to copy into both sides.
Kind = Literal[
    "join", "no-stop", "typos", "lower", "title", "caps", "emoji", "times", "numbers", "names", "copies", "stand-ins"
]
