"""How tests of properties draw examples where each of them runs real graphs, which takes long."""

from typing import Final

from hypothesis import Phase, settings

ON_GRAPHS: Final = settings(max_examples=10)
# Threads never run twice alike, so a failure is reported as it was found.
ON_THREADS: Final = settings(ON_GRAPHS, phases=[Phase.explicit, Phase.reuse, Phase.generate])
