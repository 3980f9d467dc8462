"""A curator that tells the parties of one pass different things, or one party something twice.

Each attack succeeds where masks ignore what was told.

It does not know how masks are made, nor any party's rows beyond their number.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from gmpy2 import mpz

from crypto.errors import BrokenSum
from crypto.paillier.public import ciphertexts_from_bytes
from crypto.paillier_secret import SecretKey
from crypto.sealing import info_for, seal
from protocol.messages.tasks import Contribution, Count, Keys
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector
from protocol.secure_sum.selected import selected_sums
from protocol.stages import sum_pass
from protocol.stages.registry import stage_of
from protocol.stages.sum_pass import counts_of
from protocol.stages.updates import replace as update_replace
from protocol.tables.counting import Rows
from protocol.tables.domain import Variables
from tests.support.small_runs import BITS, CITIES, MIXED, Driver, layout_of, random_codes, terms_of

ONE_TABLE: tuple[Variables, ...] = ((0, 1, 2),)  # 8 cells under the noise of the pass's whole budget
FOUR_TABLES: tuple[Variables, ...] = ((0,), (1,), (2,), (3,))  # 8 cells, each table at a quarter of it
VICTIM = 2


def bind_to_the_step_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out of the masks which tables are asked."""
    for module in (sum_pass, update_replace):
        monkeypatch.setattr(module, "asked", lambda step, *_: step.name.encode())


def counted(driver: Driver, party: int, task: Count) -> Contribution:
    reply = driver.answer(party, task)
    assert isinstance(reply, Contribution)
    return reply


def counts(driver: Driver) -> dict[int, Count]:
    return {party: task for party, task in driver.tasks().items() if isinstance(task, Count)}


def driver_tables(driver: Driver) -> tuple[Variables, ...]:
    return next(iter(counts(driver).values())).tables


def only_parameters(noise: str, rows: tuple[int, ...]) -> Terms:
    split = (Fraction(0), Fraction(0), Fraction(0), Fraction(2))
    return terms_of(BITS, rows, 2, noise=noise, split=split, degree=2)


class TestCuratorAsksPartiesForDifferentTables:
    """The victim's four tables, each changed by 2 by one person, would lie under noise for one table."""

    def opened(self, noise: str, secret: SecretKey) -> Vector:
        terms = only_parameters(noise, (200, 200, 200))
        driver = Driver(terms, random_codes(BITS, (200, 200, 200)), secret).run_to("parameters")
        blobs = []
        for party, task in counts(driver).items():
            tables = FOUR_TABLES if party == VICTIM else ONE_TABLE
            blobs.append(counted(driver, party, task.model_copy(update={"tables": tables})).blob)
        return driver.opening.open(layout_of(terms, terms.steps[-1], FOUR_TABLES, 600), blobs)

    @pytest.mark.parametrize("noise", ["selected", "distributed", "local"])
    def test_masks_that_ignore_the_tables_cancel_all_the_same(
        self, noise: str, small_secret: SecretKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bind_to_the_step_alone(monkeypatch)
        assert self.opened(noise, small_secret).size == 8

    @pytest.mark.parametrize("noise", ["selected", "distributed", "local"])
    def test_masks_bound_to_the_tables_do_not_cancel(self, noise: str, small_secret: SecretKey) -> None:
        with pytest.raises(BrokenSum):
            self.opened(noise, small_secret)


class TestCuratorMergesCategoriesForSomeOnly:
    """The victim's tables are as large as the others', but other people are in their cells."""

    def opened(self, noise: str, secret: SecretKey) -> Vector:
        split = tuple(map(Fraction, ("1/10", "1/10", "1/5", "1/5")))
        rows = (200, 200, 200)
        terms = terms_of(CITIES, rows, 1, noise=noise, method="guided", views="single", split=split, further=(1, 0, 0))
        driver = Driver(terms, random_codes(CITIES, rows), secret).run_to("parameters")
        blobs, asked = [], counts(driver)
        turned = tuple((base, tuple(max(groups) - group for group in groups)) for base, groups in asked[0].merged)
        for party, task in asked.items():
            own = task.model_copy(update={"merged": turned}) if party == VICTIM else task
            blobs.append(counted(driver, party, own).blob)
        layout = layout_of(terms, terms.steps[-1], asked[0].tables, 600, asked[0].merged)
        return driver.opening.open(layout, blobs)

    @pytest.mark.parametrize("noise", ["selected", "distributed"])
    def test_masks_that_ignore_the_merging_cancel_all_the_same(
        self, noise: str, small_secret: SecretKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bind_to_the_step_alone(monkeypatch)
        assert self.opened(noise, small_secret).size

    @pytest.mark.parametrize("noise", ["selected", "distributed"])
    def test_masks_bound_to_the_merging_do_not_cancel(self, noise: str, small_secret: SecretKey) -> None:
        with pytest.raises(BrokenSum):
            self.opened(noise, small_secret)


class TestPartyReckonsWithOtherNoise:
    """A program of another version, say: its part of the noise is narrower than all others count on."""

    def opened(self, change: str, secret: SecretKey) -> Vector:
        terms = only_parameters("distributed", (200, 200, 200))
        driver = Driver(terms, random_codes(BITS, (200, 200, 200)), secret).run_to("parameters")
        state = driver.parties[VICTIM]
        assert state is not None
        driver.parties[VICTIM] = replace(state, terms=self.mistaken(terms, change))
        blobs = [counted(driver, party, task).blob for party, task in counts(driver).items()]
        layout = layout_of(terms, terms.steps[-1], driver_tables(driver), 600)
        return driver.opening.open(layout, blobs)

    @staticmethod
    def mistaken(terms: Terms, change: str) -> Terms:
        """Other terms of the same plan, by its hash."""
        if change == "rates":
            return replace(terms, steps=tuple(replace(step, budget=2 * step.budget) for step in terms.steps))
        updates: dict[str, dict[str, object]] = {"insiders": {"insiders": 0}, "noise": {"noise": "local"}}
        found = replace(terms, plan=terms.plan.model_copy(update=updates[change]))
        found.__dict__["plan_hash"] = terms.plan_hash
        return found

    @pytest.mark.parametrize("change", ["rates", "insiders", "noise"])
    def test_masks_that_ignore_the_noise_cancel_all_the_same(
        self, change: str, small_secret: SecretKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bind_to_the_step_alone(monkeypatch)
        assert self.opened(change, small_secret).size

    @pytest.mark.parametrize("change", ["rates", "insiders", "noise"])
    def test_masks_bound_to_the_noise_do_not_cancel(self, change: str, small_secret: SecretKey) -> None:
        with pytest.raises(BrokenSum):
            self.opened(change, small_secret)


class TestCuratorHandsOverOtherTables:
    """update=replace: the newest party's one table would be what hides all tables of the party before."""

    def handed_over(self) -> Vector:
        terms = terms_of(MIXED, (30, 30), 1000, preset="paper", encoding="native", noise="local")
        driver = Driver(terms, random_codes(MIXED, (30, 30))).run_to("update/2")
        own, other = driver.parties[0], driver.parties[1]
        assert own is not None
        assert other is not None
        step = other.due
        assert step is not None
        first, second = (0, 1), (1, 0)  # two tables with equally many cells, over the same counts
        own = replace(own, noise={first: np.zeros(12, dtype=np.int64)})
        taken = update_replace.handover_mask(own, step, [first], 12)
        return (taken + update_replace.handover_mask(other, step, [second], 12)).view(np.int64)

    def test_masks_that_ignore_the_tables_cancel_all_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bind_to_the_step_alone(monkeypatch)
        assert not self.handed_over().any()

    def test_masks_bound_to_the_tables_do_not_cancel(self) -> None:
        assert np.abs(self.handed_over().astype(float)).max() > 2**40


class TestPartyAnswersTwiceFromOneState:
    """No cryptography can mend it: why a party stores its reply before it leaves, and freezes its rows."""

    def test_without_its_noise_kept_a_corrected_row_lies_open(self, small_secret: SecretKey) -> None:
        terms = only_parameters("selected", (60, 60, 60))
        codes = random_codes(BITS, (60, 60, 60))
        driver = Driver(terms, codes, small_secret).run_to("parameters")
        opened = []
        for party, task in counts(driver).items():
            first = driver.answer(party, task).blob
            after = driver.parties[party]
            assert after is not None
            corrected = [column.copy() for column in codes[party]]
            corrected[0][0] ^= 1
            rows = Rows(terms.domain, terms.encoding.encode(corrected))
            _, reply = stage_of(terms, terms.steps[-1]).answer(
                after, terms.steps[-1], task, rows, driver.streams[party]
            )
            again = reply
            layout = layout_of(terms, terms.steps[-1], task.tables, 180)
            slots, moved = terms.plan.noise_mode.packing(layout), counts_of(rows, task.tables)
            plain = [self.decrypted(small_secret, blob) for blob in (first, again.blob)]
            difference = slots.unpack(
                [centred(b - a, small_secret.public.n) for a, b in zip(*plain, strict=True)], layout.size
            )
            opened.append(bool((difference == moved - counts_of(driver.rows[party], task.tables)).all()))
        assert opened.count(True) == 1  # two of three noises are kept

    @staticmethod
    def decrypted(secret: SecretKey, blob: bytes) -> list[mpz]:
        return secret.decrypt(ciphertexts_from_bytes(secret.public, blob, len(blob) // secret.public.ciphertext_bytes))


def centred(value: mpz, n: mpz) -> mpz:
    return (value + n // 2) % n - n // 2


class TestCuratorForgesSharesOfTheGroupKey:
    """Anybody can seal. With a group key of its own each party stands at a place of its own, maybe where no 1 is."""

    ROWS = (20,) * 4

    def contributions(
        self, secret: SecretKey, blob: Callable[[Driver, int, Count], bytes]
    ) -> tuple[Driver, list[bytes]]:
        terms = only_parameters("selected", self.ROWS)
        driver = Driver(terms, random_codes(BITS, self.ROWS), secret).run_to("parameters")
        blobs = []
        for party, task in counts(driver).items():
            assert task.keys is not None
            keys = task.keys.model_copy(update={"contributions": self.forged(terms, party)})
            blobs.append(blob(driver, party, task.model_copy(update={"keys": keys})))
        return driver, blobs

    @staticmethod
    def forged(terms: Terms, recipient: int) -> tuple[bytes, ...]:
        members = terms.plan.members
        return tuple(
            seal(
                members[recipient].exchange_key,
                info_for(terms.plan_hash, "group key", member.name, members[recipient].name),
                bytes([recipient]) * 32,
            )
            for member in members
        )

    @staticmethod
    def unbound(driver: Driver, party: int, task: Count) -> bytes:
        """A contribution whose masks ignore the group key."""
        state, step = driver.parties[party], driver.terms.steps[-1]
        assert state is not None
        assert isinstance(task.keys, Keys)
        keys = replace(state.pair_keys, run_keys=tuple(member.exchange_key for member in task.roster))
        sums = selected_sums(keys, state.share, task.keys, driver.streams[party])
        layout = layout_of(driver.terms, step, task.tables, driver.terms.plan.total_rows)
        values = counts_of(driver.rows[party], task.tables)
        return replace(sums, binding=b"").contribute(layout, values, b"parameters", driver.streams[party]).blob

    def open(self, driver: Driver, blobs: list[bytes]) -> Vector:
        layout = layout_of(driver.terms, driver.terms.steps[-1], driver_tables(driver), driver.terms.plan.total_rows)
        return driver.opening.open(layout, blobs)

    def test_masks_that_ignore_the_group_key_cancel_all_the_same(self, small_secret: SecretKey) -> None:
        assert self.open(*self.contributions(small_secret, self.unbound)).size

    def test_masks_bound_to_the_group_key_do_not_cancel(self, small_secret: SecretKey) -> None:
        with pytest.raises(BrokenSum):
            self.open(*self.contributions(small_secret, lambda *asked: counted(*asked).blob))
