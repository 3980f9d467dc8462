"""Blame for contributions that do not add up: the parties at fault, as far as the tags of the pairs tell.

It does not know contributions, masks or keys. The argument is in `blame.md`.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

Tags = Mapping[int, Sequence[bytes]]  # by party: its tag for each other party
Pair = tuple[int, int]


def disagreeing(tags: Tags) -> list[Pair]:
    """The pairs of parties whose two tags for each other differ."""
    return [(one, other) for one, other in combinations(sorted(tags), 2) if tags[one][other] != tags[other][one]]


def at_fault(pairs: Sequence[Pair]) -> tuple[int, ...]:
    """The parties of which one at least made other masks; a single party if it alone explains every pair.

    Two honest parties of one task agree. So every disagreeing pair has a party that is at fault.
    """
    involved = sorted({party for pair in pairs for party in pair})
    in_all = tuple(party for party in involved if all(party in pair for pair in pairs))
    return in_all or tuple(involved)


def in_words(names: Sequence[str], pairs: Sequence[Pair]) -> str:
    """What the tags tell, as a sentence; an honest one where they tell nothing."""
    if not pairs:
        return (
            "every two parties agree on their masks, so that one party sent other numbers than its masked counts; "
            "which one cannot be told without opening the contributions of single parties"
        )
    found = at_fault(pairs)
    if len(found) == 1:
        others = [names[other] for pair in pairs for other in pair if other not in found]
        return f"{names[found[0]]} made other masks than {', '.join(others)}"
    if len(pairs) == 1:
        one, other = (names[party] for party in pairs[0])
        return f"{one} and {other} made different masks for each other, so that one of the two is at fault"
    shown = "; ".join(f"{names[one]} and {names[other]}" for one, other in pairs)
    return f"several pairs of parties made different masks for each other ({shown}), and no single party explains all"
