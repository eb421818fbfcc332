"""NumPy arrays whose dtype is known at run time only, as those of imported files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""An array of any shape and dtype."""

ArrayType = np.dtype[Any]
"""The dtype of such an array."""
