"""Clusters of cliques: the noise that their division leaves, by hand, and how near a quick search comes to the best."""

import math

import numpy as np
import pytest

from protocol.model.clusters import MOST_EXACT, clusters, total_noise
from protocol.model.triangulation import TableGraph

# Example 2 of the JTree paper, which says 8,960 for the first: 8 times 4^2 (4 + 24 + 36 + 8) is 9,216.
SIZES = (2, 2, 3, 4, 3, 2)
CLIQUES = ((0, 1), (1, 2, 3), (2, 3, 4), (3, 5))
ENOUGH = (10**6,) * 60


@pytest.mark.parametrize(
    ("division", "noise"),
    [
        ([((0, 1), 1), ((1, 2, 3), 1), ((2, 3, 4), 1), ((3, 5), 1)], 9216),
        ([((0, 1, 2, 3), 2), ((2, 3, 4, 5), 2)], 7680),
        ([((0, 1, 3, 5), 2), ((1, 2, 3, 4), 2)], 6656),
    ],
)
def test_the_total_noise_is_the_papers(division, noise):
    assert 8 * total_noise(SIZES, tuple(division), grows_by_root=False) == noise


def test_the_best_division_of_the_papers_example_is_found():
    assert set(clusters(SIZES, CLIQUES, False, ENOUGH)) == {(0, 1, 3, 5), (1, 2, 3, 4)}


def test_where_noise_grows_by_the_root_fewer_cliques_are_merged():
    many = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    assert len(clusters(SIZES, many, True, ENOUGH)) > len(clusters(SIZES, many, False, ENOUGH))


def test_no_cluster_is_larger_than_its_number_allows():
    limits = tuple(60 // (many + 1) for many in range(len(CLIQUES)))
    found = clusters(SIZES, CLIQUES[:1] + CLIQUES[3:], False, limits)
    assert max(math.prod(SIZES[v] for v in one) for one in found) <= limits[len(found) - 1]
    assert clusters(SIZES, CLIQUES, False, (1,) * len(CLIQUES)) == CLIQUES  # nothing is admitted but what there is


@pytest.mark.parametrize("count", [3, 8, 9, 25])
def test_every_clique_lies_in_a_cluster(count):
    data = np.random.default_rng(count)
    sizes = tuple(int(size) for size in data.integers(2, 5, count + 2))
    cliques = tuple((v, v + 1, v + 2) for v in range(count))
    found = clusters(sizes, cliques, False, (10**9,) * count)
    assert len(found) < count
    assert all(any(set(clique) <= set(one) for one in found) for clique in cliques)


def test_the_quick_search_comes_near_the_best_division(monkeypatch):
    data, ratios = np.random.default_rng(7), []
    for _ in range(150):
        sizes = tuple(int(size) for size in data.integers(2, 6, 9))
        pairs = [tuple(sorted(data.choice(9, 2, replace=False).tolist())) for _ in range(8)]
        cliques = tuple(one for one in TableGraph(sizes, pairs).cliques() if len(one) > 1)
        if not 4 <= len(cliques) <= MOST_EXACT:
            continue
        noise = []
        for exact in (MOST_EXACT, 0):
            monkeypatch.setattr("protocol.model.clusters.MOST_EXACT", exact)
            clusters.cache_clear()
            found = clusters(sizes, cliques, False, (10**9,) * len(cliques))
            noise.append(_noise(sizes, cliques, found))
        ratios.append(noise[1] / noise[0])
    clusters.cache_clear()
    assert len(ratios) > 20
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < 1.06
    assert max(ratios) < 1.5


def _noise(sizes, cliques, found):
    """The least noise of these clusters: each clique is derived from the smallest cluster that holds it."""
    many = dict.fromkeys(found, 0)
    for clique in cliques:
        home = min((one for one in found if set(clique) <= set(one)), key=lambda one: math.prod(sizes[v] for v in one))
        many[home] += 1
    return total_noise(sizes, tuple(many.items()), grows_by_root=False)
