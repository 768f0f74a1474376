"""Scripts that are written without blanks between words."""

import re
from typing import Final

# For use inside [] in a pattern: the blocks of Thai, Lao, Burmese, Khmer, kana and Han, with their extensions.
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED_CHARACTER: Final = re.compile(f"[{UNSPACED}]")
