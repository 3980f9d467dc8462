"""Taxonomies: groups of a categorical attribute's values, nested as people write them, or by the values' prefixes.

It does not know attributes.

`{"circulation": {"heart": ["I20", "I21"]}}` names groups. `{"prefix": [1, 3]}` groups values with the same first
character, and inside these groups values with the same first three, as codes of diagnoses, drugs, trades and places
are made.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from protocol.tables.kinds.attribute import LONGEST_NAME, first_duplicate, is_clean, quoted

DEEPEST_TAXONOMY = 30
_PREFIX = "prefix"
_LONGEST_PREFIX = 100

Path = tuple[str, ...]


def paths(taxonomy: Mapping[Any, Any], values: Sequence[str]) -> dict[str, Path]:
    """Groups from the root down, for every value that the taxonomy names."""
    if _is_by_prefix(taxonomy):
        lengths = taxonomy[_PREFIX]
        return {value: tuple(value[:length] for length in lengths if length < len(value)) for value in values}
    return dict(_leaves(taxonomy, ()))


def problems(taxonomy: Mapping[Any, Any], values: Sequence[str]) -> Iterator[str]:
    if _is_by_prefix(taxonomy):
        yield from _prefix_problems(taxonomy)
        return
    try:
        leaves = [leaf for leaf, _ in _leaves(taxonomy, ())]
    except ValueError as error:
        yield str(error)
        return
    if (leaf := first_duplicate(leaves)) is not None:
        yield f'field "taxonomy": the value {quoted(leaf)} is named twice; a value belongs to one group'
    known = set(values)
    if (unknown := next((leaf for leaf in leaves if leaf not in known), None)) is not None:
        yield f'field "taxonomy": {quoted(unknown)} is not one of the values; correct it or add it to `values`'


def _is_by_prefix(taxonomy: Mapping[Any, Any]) -> bool:
    lengths = taxonomy.get(_PREFIX)
    return isinstance(lengths, list | tuple) and any(not isinstance(length, str) for length in lengths)


def _prefix_problems(taxonomy: Mapping[Any, Any]) -> Iterator[str]:
    lengths: Sequence[object] = taxonomy[_PREFIX]
    whole = [length for length in lengths if isinstance(length, int) and not isinstance(length, bool)]
    if len(whole) < len(lengths) or whole != sorted({*whole}) or not 1 <= whole[0] <= whole[-1] <= _LONGEST_PREFIX:
        yield (
            'field "taxonomy": the lengths of prefixes must be whole numbers from 1 to '
            f"{_LONGEST_PREFIX} in rising order, such as [1, 3]"
        )
    if len(lengths) > DEEPEST_TAXONOMY:
        yield f'field "taxonomy": it has more than {DEEPEST_TAXONOMY} levels'
    if len(taxonomy) > 1:
        yield 'field "taxonomy": it groups by prefix and names groups too; do one of both'


def _leaves(group: object, path: Path) -> Iterator[tuple[str, Path]]:
    """Find every leaf below `group`, with the names of the groups that hold it. Raises ValueError."""
    if len(path) > DEEPEST_TAXONOMY:
        raise ValueError(f'field "taxonomy": it has more than {DEEPEST_TAXONOMY} levels')
    if path and not group:
        raise ValueError(f'field "taxonomy": the group {quoted(path[-1])} is empty; remove it or fill it')
    if isinstance(group, Mapping):
        for name, inner in group.items():
            if not isinstance(name, str) or not is_clean(name):
                raise ValueError('field "taxonomy": the name of a group must be a text without control characters')
            if len(name) > LONGEST_NAME:
                raise ValueError(f'field "taxonomy": the name of a group has more than {LONGEST_NAME} characters')
            yield from _leaves(inner, (*path, name))
    elif isinstance(group, list | tuple) and all(isinstance(leaf, str) for leaf in group):
        yield from ((leaf, path) for leaf in group)
    else:
        raise ValueError(f'field "taxonomy": the group {quoted(path[-1])} must be a list of values or hold groups')
