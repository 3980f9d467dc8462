"""Ancestral sampling on small networks whose rows or frequencies are known by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.ancestral_sampling import ConditionalNetwork
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain, Variable
from protocol.tables.encoding import Block
from protocol.tables.marginal import Table

TWO = Domain.of_sizes([2, 3])
CHAIN = Network.of([Family(0), Family(1, (0,))], TWO)


def rows(model: ConditionalNetwork, count: int, stream: Stream, batch: int = 1 << 16) -> NDArray[np.int64]:
    batches = [np.stack(columns, axis=1).astype(np.int64) for columns in model.sample(count, stream, batch)]
    return np.concatenate(batches)


def keyed() -> Stream:
    return Stream.keyed(b"a seed", "sampling")


def test_certain_values_are_drawn_always() -> None:
    table = Table((0, 1), np.array([[0, 0, 0], [0, 7, 0]]))
    assert np.unique(rows(ConditionalNetwork.fit(CHAIN, [table], TWO, [], 7), 5000, keyed()), axis=0).tolist() == [
        [1, 1]
    ]


def test_values_follow_their_parents() -> None:
    table = Table((0, 1), np.array([[0, 0, 5], [5, 0, 0]]))
    drawn = rows(ConditionalNetwork.fit(CHAIN, [table], TWO, [], 10), 5000, keyed())
    assert np.unique(drawn, axis=0).tolist() == [[0, 2], [1, 0]]
    assert 2300 < drawn[:, 0].sum() < 2700  # 5000 fair coins: 5.6 standard deviations on either side


def test_words_become_codes_by_their_place_among_the_cumulative_weights() -> None:
    one = Domain.of_sizes([4])
    model = ConditionalNetwork.fit(Network((Family(0),)), [Table((0,), np.array([1, 0, 2, 1]))], one, [], 4)
    quarters = keyed().words32(1000) >> 30
    expected = np.array([0, 2, 2, 3])[quarters]
    assert rows(model, 1000, keyed())[:, 0].tolist() == expected.tolist()


def test_a_word_at_the_threshold_belongs_to_the_larger_code() -> None:
    # Otherwise a leading code without weight would be drawn by a word of zeros.
    one = Domain.of_sizes([2])
    word = int(keyed().words32(1)[0]) >> 1
    for weight, code in ((word, 1), (word + 1, 0)):
        table = Table((0,), np.array([weight, 2**31 - weight]))
        assert rows(ConditionalNetwork.fit(Network((Family(0),)), [table], one, [], 2**31), 1, keyed()).tolist() == [
            [code]
        ]


def test_a_parent_configuration_without_mass_takes_the_marginal_of_the_child() -> None:
    # Variable 0 comes out 1 by a table of its own; the family's table has seen no such row, but 1 and 2 in variable 1.
    alone = Table((0,), np.array([0, 9]), variance=0.5)
    family = Table((0, 1), np.array([[0, 5, 4], [0, 0, 0]]), variance=1.0)
    drawn = rows(ConditionalNetwork.fit(CHAIN, [alone, family], TWO, [], 9), 5000, keyed())
    assert np.unique(drawn, axis=0).tolist() == [[1, 1], [1, 2]]
    assert abs(np.mean(drawn[:, 1] == 1) - 5 / 9) < 0.05


def test_a_table_without_rows_gives_uniform_values() -> None:
    drawn = rows(ConditionalNetwork.fit(CHAIN, [Table((0, 1), np.zeros((2, 3)))], TWO, [], 0), 6000, keyed())
    assert np.abs(np.unique(drawn, axis=0, return_counts=True)[1] - 1000).max() < 200


# Two bits hold three values (11 decodes to none); variable 2 stands between them.
BITS = Domain.of_sizes([2, 2, 2])
THREE_VALUES = Block((0, 1), np.array([[True, True], [True, False]]))


def test_bits_that_are_not_in_one_family_never_make_an_invalid_code() -> None:
    independent = Network((Family(1), Family(2), Family(0)))
    tables = [Table((v,), np.array([10, 30])) for v in range(3)]
    drawn = rows(ConditionalNetwork.fit(independent, tables, BITS, [THREE_VALUES], 40), 4000, keyed())
    assert not (drawn[:, 0] & drawn[:, 1]).any()
    # Bit 1 is 1 in three of four rows and leaves bit 0 no choice; otherwise bit 0 is as its table says.
    assert abs(drawn[:, 1].mean() - 3 / 4) < 0.05
    assert abs(drawn[drawn[:, 1] == 0, 0].mean() - 3 / 4) < 0.1


def test_a_restriction_may_leave_only_codes_that_the_table_has_not_seen() -> None:
    # Bit 0 is certainly 1, so that bit 1 has to be 0, which its table (and hence its marginal) excludes.
    independent = Network((Family(0), Family(1), Family(2)))
    tables = [Table((0,), np.array([0, 8])), Table((1,), np.array([0, 8])), Table((2,), np.array([8, 0]))]
    drawn = rows(ConditionalNetwork.fit(independent, tables, BITS, [THREE_VALUES], 8), 1000, keyed())
    assert np.unique(drawn, axis=0).tolist() == [[1, 0, 0]]


def test_codes_that_stand_for_nothing_are_not_drawn_in_a_single_variable_either() -> None:
    one = Domain.of_sizes([4])
    for counts in ([0, 0, 9, 0], [0, 0, 0, 0]):
        block = Block((0,), np.array([True, False, False, True]))
        model = ConditionalNetwork.fit(Network((Family(0),)), [Table((0,), np.array(counts))], one, [block], 9)
        assert np.unique(rows(model, 200, keyed())).tolist() == [0, 3]


def test_generalised_parents_are_read_from_their_base_variable() -> None:
    domain = Domain((Variable("A", 4, 0), Variable("B", 2, 1), Variable("A'", 2, 0, (0, 1, 1, 0))))
    network = Network.of([Family(0), Family(1, (2,))], domain)
    tables = [Table((0,), np.array([5, 5, 5, 5])), Table((1, 2), np.array([[10, 0], [0, 10]]))]
    drawn = rows(ConditionalNetwork.fit(network, tables, domain, [], 20), 1000, keyed())
    assert np.unique(drawn, axis=0).tolist() == [[0, 0], [1, 1], [2, 1], [3, 0]]


def test_columns_come_in_the_order_of_the_variables_and_in_small_integers() -> None:
    domain = Domain.of_sizes([1, 256, 257])
    network = Network((Family(2), Family(1), Family(0)))
    tables = [Table((v,), np.eye(domain.sizes[v])[-1]) for v in range(3)]
    (columns,) = ConditionalNetwork.fit(network, tables, domain, [], 1).sample(10, keyed())
    assert [column.dtype for column in columns] == [np.uint8, np.uint8, np.uint16]
    assert [column.tolist() for column in columns] == [[0] * 10, [255] * 10, [256] * 10]


def test_the_same_stream_gives_the_same_rows() -> None:
    model = ConditionalNetwork.fit(CHAIN, [Table((0, 1), np.array([[1, 2, 3], [6, 5, 4]]))], TWO, [], 21)
    first, again = (rows(model, 1000, keyed(), batch=300) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != rows(model, 1000, Stream.keyed(b"another seed"), batch=300).tolist()


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (7, [7]), (10, [10]), (25, [10, 10, 5])])
def test_rows_come_in_batches(count: int, sizes: list[int]) -> None:
    model = ConditionalNetwork.fit(CHAIN, [Table((0, 1), np.ones((2, 3)))], TWO, [], 6)
    assert [len(columns[0]) for columns in model.sample(count, keyed(), batch=10)] == sizes


def test_sorting_gives_the_codes_of_one_search_per_row() -> None:
    """Rows drawn from a seed stay the same, however many of them are drawn at once."""
    domain, random, count = Domain.of_sizes([7, 5, 4]), np.random.default_rng(4), 3000
    network = Network.of([Family(0), Family(1, (0,)), Family(2, (0, 1))], domain)
    tables = [Table(f.variables, random.integers(-2, 9, domain.shape(f.variables))) for f in network.families]
    model, stream = ConditionalNetwork.fit(network, tables, domain, [], 100), keyed()
    found: list[NDArray[np.int64]] = []
    for draw in model.draws:
        situation = sum((code * place for code, place in zip(found, (5, 1), strict=False)), np.zeros(count, np.int64))
        situation = found[0] if len(found) == 1 else situation
        keys = situation.astype(np.uint64) << np.uint64(31) | stream.words32(count) >> np.uint32(1)
        size = domain.sizes[draw.family.child]
        found.append(np.searchsorted(draw.thresholds, keys, side="right") - situation * (size - 1))
    assert (rows(model, count, keyed()) == np.stack(found, axis=1)).all()
