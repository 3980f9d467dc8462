"""Bounds on what fruitless requests leave behind: a curator that keeps asking fills neither ledger nor audit log.

It does not know why something is refused. Fruitless are refusals, and runs that end without a charge.
"""

from collections.abc import Sequence

LONGEST_REASON = 2000  # of a refusal that is sent
MOST_UNDECIDED = 25  # requests that may wait for the data owner at once
MOST_FRUITLESS = 100  # since the last charge; after them no run is joined without the data owner
_MOST_REASONS = 20
_LONGEST_OF_MANY = 300


def bounded(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons, however many and long a plan makes them, in a bounded length."""
    shown = tuple(reason[:_LONGEST_OF_MANY] for reason in reasons[:_MOST_REASONS])
    more = len(reasons) - len(shown)
    return (*shown, f"and {more} more reasons") if more else shown
