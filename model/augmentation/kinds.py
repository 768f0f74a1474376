"""The kinds of augmentation by their names, in the order in which they are applied."""

from typing import Literal

# join: further sentences behind; no-stop: no final stop; typos: errors in the source; lower, title: the source;
# caps: both sides; times: others in place of those with a.m. or p.m.; names: others in place of those that both sides
# share; copies, stand-ins: what a translation copies, put into both.
Kind = Literal["join", "no-stop", "typos", "lower", "title", "caps", "emoji", "times", "names", "copies", "stand-ins"]
