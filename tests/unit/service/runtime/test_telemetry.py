"""onnxruntime tells nobody that it runs."""

import os
import subprocess
import sys
from pathlib import Path

# Its telemetry would make a database in the home folder and run a thread.
_IMPORT = "import service.runtime.sessions; import pathlib, sys; sys.exit(any(pathlib.Path.home().iterdir()))"


def test_the_telemetry_of_onnxruntime_is_off(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    for other in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        environment.pop(other, None)
    environment |= {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", _IMPORT], env=environment, check=True, timeout=120)
