"""Phase 3's bookkeeping of noise: whose is in a statistic, seen from what the parties remember."""

from fractions import Fraction

import numpy as np
import pytest

from crypto.sampling.laplace import laplace_variance
from protocol.tables.counting import Rows
from tests.support.small_runs import MIXED, Driver, pooled, random_codes, terms_of

ROWS = (400, 300, 200, 100)


def replacing() -> Driver:
    split = (Fraction(2), Fraction(1), Fraction(1), Fraction(1))
    wishes = {"split": split, "insiders": 0, "noise": "local", "update": "replace"}
    terms = terms_of(MIXED, ROWS, 10, theta=Fraction(1, 100), frontier_theta=Fraction(1, 100), **wishes)
    return Driver(terms, random_codes(MIXED, ROWS))


def exact_counts(run: Driver, first: int, last: int, variables) -> np.ndarray:
    codes = random_codes(MIXED, ROWS)[first : last + 1]
    return Rows(run.terms.domain, run.terms.encoding.encode(pooled(MIXED, codes))).table(variables)


def test_one_share_of_noise_stays_and_it_is_the_newest():
    run = replacing()
    kept_on = 0
    for newest in range(4):
        run.run_to(f"update/{newest + 1}").finish_step()
        remembered = run.parties[newest].noise
        for statistic in run.state.knowledge.statistics.values():
            table = statistic.table
            first = next(k for k in range(newest + 1) if sum(ROWS[k : newest + 1]) == statistic.rows)
            noise = table.counts - exact_counts(run, first, newest, table.variables)
            assert (noise.ravel() == remembered[table.variables]).all()
            assert noise.any()
            kept_on += first < newest
    assert kept_on > 0  # some families went on, so that noise was taken out of them


def test_the_published_variance_is_that_of_one_share():
    run = replacing().run_to("update/4")
    run.finish_step()
    step = next(step for step in run.terms.steps if step.name == "update/4")
    statistics = run.state.knowledge.statistics.values()
    variance = laplace_variance(step.budget / len(statistics) / 2)
    assert {statistic.table.variance for statistic in statistics} == {variance}


def test_what_the_predecessor_sends_says_nothing_by_itself():
    """Taken back noise travels under a mask: neither it nor the newest table alone can be read."""
    run = replacing().run_to("update/2")
    noise = run.parties[0].noise
    tasks = run.tasks()
    replies = {party: run.answer(party, task) for party, task in tasks.items()}
    taken = np.frombuffer(replies[0].blob, dtype="<i8")
    plain = -np.concatenate([noise[table] for table in tasks[0].tables])
    assert taken.shape == plain.shape
    assert np.abs(taken).min() > 10**9 > np.abs(plain).max()
    masked = tasks[1].masked[0]
    sizes = [run.terms.domain.cells(table) for table in tasks[1].tables]
    start = sum(sizes[:masked])
    newest = np.frombuffer(replies[1].blob, dtype="<i8")[start : start + sizes[masked]]
    assert np.abs(newest).min() > 10**9


def test_accumulated_statistics_hold_a_share_of_every_party():
    split = (Fraction(2), Fraction(1), Fraction(1), Fraction(1))
    wishes = {"split": split, "noise": "local", "theta": Fraction(1, 100), "frontier_theta": Fraction(1, 100)}
    run = Driver(terms_of(MIXED, ROWS, 10, **wishes), random_codes(MIXED, ROWS)).run_to("parameters")
    known = run.state.knowledge
    for statistic in known.statistics.values():
        delivered = [one for one in known.released if one.table.variables == statistic.table.variables]
        since = [one for one in delivered if one.step.startswith("update")]
        going_on = since[-1:]
        for one in reversed(since[:-1]):
            if sum(part.rows for part in going_on) < statistic.rows:
                going_on.append(one)
        assert sum(one.rows for one in going_on) == statistic.rows
        assert (sum(one.table.counts for one in going_on) == statistic.table.counts).all()
        assert statistic.table.variance == pytest.approx(sum(one.table.variance for one in going_on))


def test_joint_rounds_accumulate_everybodys_rows():
    wishes = {"noise": "local", "update": "joint", "rounds": 3, "frontier_theta": Fraction(1, 100)}
    run = Driver(terms_of(MIXED, ROWS, 10, **wishes), random_codes(MIXED, ROWS)).run_to("parameters")
    rows = {statistic.rows for statistic in run.state.knowledge.statistics.values()}
    assert rows <= {sum(ROWS) * rounds for rounds in (1, 2, 3)}
    assert max(rows) == 3 * sum(ROWS)
