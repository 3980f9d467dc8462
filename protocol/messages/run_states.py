"""The states of a run, by the names that the curator's interface uses.

It does not know when a run changes its state. It loads no library, so that a command can show its help at once.
"""

from typing import Literal

RunStateName = Literal["joining", "running", "finished", "failed", "refused", "cancelled", "timed_out"]
ACTIVE: tuple[RunStateName, ...] = ("joining", "running")
ENDS: tuple[RunStateName, ...] = ("finished", "failed", "refused", "cancelled", "timed_out")
