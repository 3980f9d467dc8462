"""Encodings: how attributes become variables, and back.

It does not know labels, bins or missing tokens (`schema`, `coding`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.domain import Variables


@dataclass(frozen=True, eq=False)
class Block:
    """The base variables of one attribute, and which combinations of their codes decode to a value."""

    variables: Variables
    valid: NDArray[np.bool_]  # one axis per variable
