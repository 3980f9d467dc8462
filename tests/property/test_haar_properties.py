"""Haar coefficients of random counts over random trees: the counts come back, and groups are nodes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from protocol.tables.haar import HaarTree

GROUPS = st.recursive(st.just(0), lambda inner: st.lists(inner, min_size=1, max_size=6), max_leaves=40).filter(
    lambda found: isinstance(found, list)
)


def numbered(groups: Any, codes: Iterator[int]) -> Any:
    return [numbered(member, codes) if isinstance(member, list) else next(codes) for member in groups]


def leaves(groups: Any) -> list[int]:
    return [leaf for member in groups for leaf in (leaves(member) if isinstance(member, list) else [member])]


def all_groups(groups: Any) -> Iterator[Any]:
    yield groups
    for member in groups:
        if isinstance(member, list):
            yield from all_groups(member)


@st.composite
def trees(draw: st.DrawFn) -> Any:
    shape = draw(GROUPS)
    codes = draw(st.permutations(range(len(leaves(shape)))))
    return numbered(shape, iter(codes))


@given(trees(), st.data())
def test_counts_come_back_from_their_coefficients(groups: Any, data: st.DataObject) -> None:
    tree, size = HaarTree.over(groups), len(leaves(groups))
    counts = np.array(data.draw(st.lists(st.integers(0, 2**31), min_size=size, max_size=size)), dtype=np.int64)
    found = tree.coefficients(counts)
    assert found.dtype == np.int64
    assert sum(tree.cells) == len(found) == size - 1
    assert tree.counts(counts.sum(), found).tolist() == counts.tolist()
    assert tree.counts(counts.sum(), found, is_bounded=True).tolist() == counts.tolist()
    assert np.abs(found).max(initial=0) <= counts.sum()  # what a sum has room for


@given(trees(), st.data())
def test_bounded_counts_are_never_negative_and_add_up(groups: Any, data: st.DataObject) -> None:
    tree = HaarTree.over(groups)
    noise = np.array(data.draw(st.lists(st.integers(-500, 500), min_size=sum(tree.cells), max_size=sum(tree.cells))))
    found = tree.counts(100, noise, is_bounded=True)
    assert found.min() >= 0
    assert found.sum() == 100


@given(trees())
def test_every_group_is_a_node_and_a_node_comes_after_those_around_it(groups: Any) -> None:
    tree = HaarTree.over(groups)
    spans = {(first, end) for _, (first, _, end) in tree.nodes}
    for group in all_groups(groups):
        places = [tree.order.index(leaf) for leaf in leaves(group)]
        assert max(places) - min(places) == len(places) - 1
        assert len(places) == 1 or (min(places), max(places) + 1) in spans
    seen = {(0, len(tree.order))}
    for _, (first, middle, end) in tree.nodes:
        assert (first, end) in seen
        seen |= {(first, middle), (middle, end)}
