"""Sparse logs: the first of many like events are told, later ones whenever their number has doubled.

It does not know the events.
"""

FIRST_TOLD = 100


def is_told(count: int) -> bool:
    """Whether a log tells of the event that is number `count`."""
    hundreds, rest = divmod(count, FIRST_TOLD)
    return count <= FIRST_TOLD or (not rest and not hundreds & (hundreds - 1))
