"""The server as one package: once it is imported, service, model, export and bench can be imported by their names.

Only the programs of Dragoman import it. Their own packages then come before all others of the same names.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# In a wheel the packages lie in this folder, in the repository beside it.
_PACKAGES = _HERE if (_HERE / "service").is_dir() else _HERE.parent
sys.path.insert(0, str(_PACKAGES))
