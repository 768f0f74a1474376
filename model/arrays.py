"""Arrays of weights, and the types in which a checkpoint stores them."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

Array = NDArray[Any]
DType = np.dtype[Any]

BFLOAT16: Final[DType] = np.dtype(bfloat16)
# By their names in the format safetensors.
TYPES: Final[Mapping[str, DType]] = {"F32": np.dtype(np.float32), "F16": np.dtype(np.float16), "BF16": BFLOAT16}
