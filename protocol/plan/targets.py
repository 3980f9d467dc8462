"""What a table is for, as its operator says it: attributes, or sets of attributes, that matter most.

It does not know what follows from it (`protocol.picks.by_model`).
"""

from collections.abc import Sequence

from protocol.errors import PlanError
from protocol.text import printable

_LARGEST = 3  # attributes in a set


def targets_of(text: str, names: Sequence[str]) -> tuple[frozenset[int], ...]:
    """Return the sets of attributes, by their places: `income, age+sex` is two sets."""
    if not text.isprintable():  # plans are shown on pages and terminals, with their line breaks
        raise PlanError(f"target {printable(text)!r} holds characters that cannot be shown: name attributes alone")
    return tuple(_set_of(part.strip(), names) for part in text.split(",")) if text else ()


def _set_of(text: str, names: Sequence[str]) -> frozenset[int]:
    # The name of an attribute may hold a plus.
    wanted = [text] if text in names else [name.strip() for name in text.split("+")]
    for name in wanted:
        if name not in names:
            raise PlanError(
                f"target {printable(name)!r} is no attribute of the schema: name attributes with commas between, or "
                "sets of them as age+sex"
            )
    if len(set(wanted)) > _LARGEST:
        raise PlanError(f"target {printable(text)!r} has {len(set(wanted))} attributes: name at most {_LARGEST} a set")
    return frozenset(map(names.index, wanted))
