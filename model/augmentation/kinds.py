"""The kinds of augmentation by their names, in the order in which they are applied."""

from typing import Literal

# join: further sentences behind; no-stop: no final stop; typos: errors in the source; lower, title: the source;
# caps: both sides; copies, stand-ins: what a translation copies, in both.
Kind = Literal["join", "no-stop", "typos", "lower", "title", "caps", "emoji", "copies", "stand-ins"]
