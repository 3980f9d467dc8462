"""All quantities that the audit looks at, with the batches of a short run and of a long one.

It does not know how a quantity is attacked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import get_args

from protocol.options import Choice, Noise, Privacy, ScoreName
from tests.audit import broken, dependence, papers, picks, runs, totals, wavelets
from tests.audit.quantity import Finding, Quantity


@dataclass(frozen=True)
class Entry:
    name: str
    make: Callable[[], Quantity]
    quick: int  # batches
    long: int

    def audited(self, is_long: bool, doubt: float) -> Finding:
        return self.make().audited(self.name, self.long if is_long else self.quick, doubt)


def audited(entry: Entry, doubt: float) -> Finding:
    """The long audit of one quantity: a function by name, which another process can be asked for."""
    return entry.audited(is_long=True, doubt=doubt)


def _releases() -> Iterator[Entry]:
    for privacy in get_args(Privacy):
        for noise in get_args(Noise):
            quick, long = (1, 12) if noise == "selected" else (5, 250)
            for who in ("curator", "insider"):
                make = partial(totals.total, noise, privacy, who == "insider")
                yield Entry(f"total, {noise}, {privacy}, {who}", make, quick, long)
        yield Entry(f"own tables, {privacy}", partial(totals.own_tables, privacy), 5, 100)
        yield Entry(f"number by which columns depend, {privacy}", partial(dependence.number, privacy), 5, 250)
        yield Entry(f"columns with wavelet noise, {privacy}", partial(wavelets.wavelets, privacy), 1, 200)
    yield Entry("tables of update=replace", partial(totals.replaced, as_the_paper=False), 5, 100)
    yield Entry("single contribution, distributed", partial(broken.single_plain, masked=True), 2, 50)
    yield Entry("single contribution, selected", partial(broken.single_encrypted, masked=True), 1, 20)


def _picks() -> Iterator[Entry]:
    for privacy in get_args(Privacy):
        for score in get_args(ScoreName):
            for choice in get_args(Choice):
                make = partial(picks.pick, score, choice, privacy)
                yield Entry(f"pick, score {score}, {choice}, {privacy}", make, 2, 40)


def _runs() -> Iterator[Entry]:
    for privacy in get_args(Privacy):
        for method in runs.METHODS:
            long = 100 if method in runs.SLOW else 200
            yield Entry(f"whole run, {method}, {privacy}, insider", partial(runs.whole_run, method, privacy), 1, long)


PERSON = totals.Person(rows=3, parties=2)
UNDERSTATED: tuple[tuple[int, int, Privacy], ...] = ((1, 2, "pure"), (3, 1, "pure"), (1, 2, "zcdp"))


def _persons() -> Iterator[Entry]:
    """A person with 3 rows at each of 2 parties."""
    for privacy in get_args(Privacy):
        for who in ("curator", "insider"):
            make = partial(totals.total, "distributed", privacy, who == "insider", PERSON)
            yield Entry(f"total, 3 rows at 2 parties, distributed, {privacy}, {who}", make, 3, 100)
        for method in ("papers", "independent"):
            make_run = partial(runs.whole_run, method, privacy, PERSON)
            yield Entry(f"whole run, 3 rows at 2 parties, {method}, {privacy}, insider", make_run, 1, 100)


def _broken() -> Iterator[Entry]:
    yield Entry("update=replace, priced as in the paper", partial(totals.replaced, as_the_paper=True), 3, 100)
    yield Entry("one share against an insider", broken.one_share, 1, 4)
    yield Entry("Laplace noise in floating point", broken.float_noise, 2, 20)
    yield Entry("no masks, distributed", partial(broken.single_plain, masked=False), 3, 50)
    yield Entry("no masks, selected", partial(broken.single_encrypted, masked=False), 1, 4)
    yield Entry("sensitivity understated, total", broken.understated_sensitivity, 3, 50)
    yield Entry("sensitivity understated, pick", partial(picks.pick, "R", "exponential", "pure", 3), 8, 40)
    yield Entry("parts of noise that reckon with no insider", broken.parts_without_insiders, 5, 50)
    for rows, parties, privacy in UNDERSTATED:
        make = partial(totals.total, "distributed", privacy, True, PERSON, totals.Person(rows, parties))
        yield Entry(f"3 rows at 2 parties, priced as {rows} at {parties}, {privacy}", make, 6, 50)
    yield Entry("dependence of columns that a row moves by one", partial(dependence.number, "pure", True), 5, 50)
    yield Entry("wavelet noise for a row in one level alone", partial(wavelets.wavelets, "pure", True), 10, 50)
    yield Entry("Gaussian noise of a quarter of its deviation", broken.narrow_gaussian, 3, 50)
    yield Entry("noise on conditionals, as in PrivABN", papers.noisy_conditionals, 3, 50)
    yield Entry("parent sets kept without noise, as in PrivABN", papers.greedy_candidates, 3, 50)
    yield Entry("pairs above a threshold, as in JTree", papers.threshold_of_pairs, 5, 50)


RELEASED = [*_releases(), *_picks(), *_runs(), *_persons()]
BROKEN = list(_broken())
