"""Whole runs in one process, with real cryptography on small keys: what is spent, what is released, what comes out."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.experiments.simulation import Simulation, simulate
from protocol.plan.terms import Terms
from protocol.run.synthesis import synthetic_codes
from protocol.stages.registry import stage_of
from protocol.tables.counting import Rows
from protocol.tables.schema import Schema
from tests.support.effort import mostly_exhaustive
from tests.support.small_runs import BITS, MIXED, NO_NOISE, identity, pooled, random_codes, terms_of

METHODS = ("dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent")
NOISES = ("selected", "distributed", "local")
UPDATES = ("accumulate", "replace", "joint")
ENCODINGS = ("native", "binary", "gray", "hierarchical")
ROWS = {2: (25, 15), 3: (20, 15, 5), 4: (16, 12, 8, 4)}


def run(schema: Schema, parties: int, real: bool, epsilon: object = 3, **wishes: Any) -> tuple[Simulation, Any]:
    rows = ROWS[parties]
    if wishes.get("update") == "replace":
        wishes["insiders"] = 0
    terms = terms_of(schema, rows, epsilon, **wishes)
    codes = random_codes(schema, rows)
    stream = Stream.keyed(b"end to end")
    return simulate(terms, codes, [identity(k) for k in range(parties)], stream, real), codes


def check_books(done: Simulation) -> None:
    terms = done.terms
    assert done.state.step is None
    assert done.spent == [terms.price(party) for party in range(terms.plan.parties)]
    assert max(done.spent) <= terms.plan.epsilon
    assert list(done.stages) == list(dict.fromkeys(step.stage for step in terms.steps))
    assert all(phase.bytes > 0 for phase in done.stages.values())
    uses_paillier = terms.plan.uses_paillier
    passes = {step.stage for step in terms.steps[1:] if stage_of(terms, step).is_sum}
    for phase in done.stages.values():
        assert (phase.ciphertexts > 0) == (uses_paillier and phase.name in passes and phase.cells > 0)


def check_rows(done: Simulation, schema: Schema, rows: int = 50) -> None:
    batches = list(synthetic_codes(done.terms, done.state.knowledge, rows, Stream.keyed(b"rows")))
    columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
    assert [len(column) for column in columns] == [rows] * len(schema.names)
    assert all(column.min() >= 0 and column.max() < size for column, size in zip(columns, schema.sizes, strict=True))


def combinations_of() -> Iterator[tuple[str, str, str, str]]:
    for method, noise, encoding in product(METHODS, NOISES, ENCODINGS):
        for update in UPDATES if method == "dp-subn" else UPDATES[:1]:
            yield method, noise, update, encoding


@pytest.mark.parametrize("parties", mostly_exhaustive([2, 3, 4], {1}))
@pytest.mark.parametrize(("method", "noise", "update", "encoding"), list(combinations_of()))
def test_every_combination_runs_with_real_cryptography(method, noise, update, encoding, parties):
    done, _ = run(MIXED, parties, True, method=method, noise=noise, update=update, encoding=encoding)
    check_books(done)
    check_rows(done, MIXED)


@pytest.mark.parametrize("insiders", mostly_exhaustive([0, 1, 2], {1}))
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("update", ["accumulate", "joint"])
@pytest.mark.parametrize("choice", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("score", mostly_exhaustive(["I", "F", "R"], {2}))
def test_every_combination_runs_without_cryptography(insiders, noise, update, choice, score):
    wishes = {"insiders": insiders, "noise": noise, "update": update, "choice": choice, "score": score}
    done, _ = run(BITS, 3, False, rounds=3, **wishes)
    assert done.spent == [done.terms.price(party) for party in range(3)]
    check_rows(done, BITS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", ["paper", "sound"])
@pytest.mark.parametrize("schema", [BITS, MIXED], ids=["bits", "mixed"])
def test_every_preset_runs_with_real_cryptography(method, preset, schema):
    done, _ = run(schema, 3, True, method=method, preset=preset)
    check_books(done)


@pytest.mark.parametrize(
    "split", [("0", "0", "0", "1"), ("1", "0", "0", "1"), ("0", "1", "0", "1"), ("1", "0", "1", "1")]
)
def test_phases_can_be_left_out(split):
    done, _ = run(MIXED, 3, True, split=tuple(map(Fraction, split)))
    check_books(done)
    check_rows(done, MIXED)


@pytest.mark.parametrize("picks", [(5, 0, 0), (0, 0, 5), (0, 5, 0)])
def test_one_party_may_place_everything(picks):
    done, _ = run(BITS, 3, True, picks=picks)
    check_books(done)
    assert sorted(f.child for f in done.state.knowledge.network.families) == list(range(5))


def test_a_frontier_may_be_empty():
    done, _ = run(BITS, 3, True, epsilon="1/100", update="joint")
    assert "update" in done.stages
    assert done.stages["update"].cells == 0
    check_books(done)


# Without noise every released number is exact


def rows_of(terms: Terms, codes: Any) -> Rows:
    return Rows(terms.domain, terms.encoding.encode(codes))


@pytest.mark.parametrize("real", [True, False], ids=["real", "clear"])
@pytest.mark.parametrize(("method", "noise", "update", "encoding"), list(combinations_of()))
def test_released_tables_are_the_pooled_counts_where_noise_is_nothing(method, noise, update, encoding, real):
    done, codes = run(MIXED, 3, real, NO_NOISE, method=method, noise=noise, update=update, encoding=encoding)
    terms, known = done.terms, done.state.knowledge
    everybody = rows_of(terms, pooled(MIXED, codes))
    single = {f"update/{k + 1}": rows_of(terms, codes[k]) for k in range(3) if update == "accumulate"}
    assert known.released
    for one in known.released:
        if method == "independent":
            counted = [rows_of(terms, own) for own in codes if len(own[0]) == one.rows]
        else:
            counted = [single.get(one.step, everybody)]
        assert [rows.count for rows in counted] == [one.rows]
        assert (one.table.counts == counted[0].table(one.table.variables)).all(), one.step


@pytest.mark.parametrize("update", ["accumulate", "replace"])
def test_statistics_count_every_row_once_where_noise_is_nothing(update):
    done, codes = run(MIXED, 4, True, NO_NOISE, update=update)
    terms, sizes = done.terms, ROWS[4]
    statistics = done.state.knowledge.statistics
    newest_first = {sum(sizes[start:]): start for start in range(4)}
    for statistic in statistics.values():
        start = newest_first[statistic.rows]  # a family that changed began anew with a later party
        counted = rows_of(terms, pooled(MIXED, codes[start:]))
        assert (statistic.table.counts == counted.table(statistic.table.variables)).all()
    assert any(statistic.rows == sum(sizes) for statistic in statistics.values())


def test_real_and_clear_runs_agree_where_noise_is_nothing():
    tables = []
    for real in (True, False):
        done, _ = run(MIXED, 3, real, NO_NOISE, split=(1000, 0, 0, 10**5))
        tables.append([(one.table.variables, one.table.counts.tolist()) for one in done.state.knowledge.released])
    assert tables[0] == tables[1]
