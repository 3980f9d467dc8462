"""A curator that slips a party of its own into a run, or only says that somebody takes part.

Each attack gets an answer where a party does not ask to see everybody's signature under the plan.

It does not know any party's rows beyond their number.
"""

from collections.abc import Sequence

import pytest

from crypto.sealing import ExchangeKey
from crypto.signing import sign
from protocol.errors import CURATOR, FailedCheck
from protocol.messages.signatures import ACCEPTANCE_CONTEXT, acceptance_text
from protocol.messages.tasks import Joined, Reply, Task
from protocol.run import party as participant
from tests.support.small_runs import BITS, Driver, identity, random_codes, terms_of

ROWS = (30, 20, 10)
VICTIM, CAREFUL, SLIPPED_IN = 0, 1, 2  # the last one's keys are the curator's own


def begun(method: str = "dp-subn") -> Driver:
    """All have joined; the first task is out."""
    driver = Driver(terms_of(BITS, ROWS, noise="distributed", method=method), random_codes(BITS, ROWS))
    driver.finish_step()
    return driver


def first_task(driver: Driver) -> Task:
    return driver.tasks()[VICTIM]


def roster_of(task: Task) -> Sequence[Joined]:
    return tuple(getattr(task, "roster", ()))


def shown(task: Task, roster: Sequence[Joined]) -> Task:
    return task.model_copy(update={"roster": tuple(roster)})


def asked(driver: Driver, task: Task) -> Reply:
    return driver.answer(VICTIM, task)


def joined(driver: Driver, party: int, context: bytes = ACCEPTANCE_CONTEXT, key: bytes | None = None) -> Joined:
    """This party's signature under the plan and its own exchange key of the run, or another one."""
    state = driver.parties[party]
    assert state is not None
    key = state.run_key.public if key is None else key
    text = acceptance_text(driver.terms.plan_hash, key)
    return Joined(exchange_key=key, signature=sign(identity(party).signing, context, text))


def without_careful(driver: Driver) -> list[Joined]:
    """What the curator can show of a plan that a careful data owner did not accept: all but that one's signature."""
    own = joined(driver, SLIPPED_IN)
    return [joined(driver, VICTIM), own, own]


@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
def test_everybody_sees_everybodys_signature_before_the_first_answer(method: str) -> None:
    driver = begun(method)
    members = driver.terms.plan.members
    assert all(len(roster_of(task)) == len(members) for task in driver.tasks().values())
    driver.finish_step()
    while driver.state.step is not None:  # and nobody carries them again
        assert not any(roster_of(task) for task in driver.tasks().values())
        driver.finish_step()


@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
def test_one_careful_data_owner_keeps_a_stranger_out_for_all(method: str) -> None:
    """The victim accepted without comparing; the careful one did not. Nobody's rows are asked about."""
    driver = begun(method)
    with pytest.raises(FailedCheck, match="cannot show that party-2 has signed this plan") as refusal:
        asked(driver, shown(first_task(driver), without_careful(driver)))
    assert refusal.value.culprit == CURATOR


@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
def test_who_does_not_ask_for_signatures_answers(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "check_roster", lambda _terms, _task: None)
    driver = begun(method)
    assert asked(driver, shown(first_task(driver), without_careful(driver))).step == driver.terms.steps[1].name


def test_two_views_of_one_run_do_not_fit_together() -> None:
    """The careful one signed a plan without the stranger: its signature is none under the victim's plan."""
    driver = begun()
    other = terms_of(BITS, ROWS[:2], noise="distributed")
    roster = without_careful(driver)
    roster[CAREFUL] = joined(Driver(other, random_codes(BITS, ROWS[:2])).run_to("correlations"), CAREFUL)
    with pytest.raises(FailedCheck, match="cannot show that party-2 has signed this plan"):
        asked(driver, shown(first_task(driver), roster))


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_too_few_or_too_many_signatures_are_refused(count: int) -> None:
    driver = begun()
    roster = (list(roster_of(first_task(driver))) * 2)[:count]
    with pytest.raises(FailedCheck, match=f"shows {count} signatures under the plan before the first task, expected 3"):
        asked(driver, shown(first_task(driver), roster))


def test_signatures_in_another_order_or_of_another_purpose_are_refused() -> None:
    driver = begun()
    right = list(roster_of(first_task(driver)))
    for wrong in (right[::-1], [joined(driver, party, b"another purpose") for party in range(3)]):
        with pytest.raises(FailedCheck, match="cannot show that party-1 has signed this plan"):
            asked(driver, shown(first_task(driver), wrong))
    assert asked(driver, first_task(driver)).step == "correlations"


def test_the_curators_own_exchange_key_in_a_members_place_is_refused() -> None:
    """With it, the curator would know the masks between the victim and that member."""
    driver = begun()
    roster = list(roster_of(first_task(driver)))
    roster[CAREFUL] = roster[CAREFUL].model_copy(update={"exchange_key": ExchangeKey.generate().public})
    with pytest.raises(FailedCheck, match="cannot show that party-2 has signed this plan"):
        asked(driver, shown(first_task(driver), roster))


def test_a_member_whose_exchange_key_hides_nothing_is_named() -> None:
    driver = begun()
    roster = list(roster_of(first_task(driver)))
    roster[CAREFUL] = joined(driver, CAREFUL, key=bytes(32))
    with pytest.raises(FailedCheck, match="has joined with an exchange key that hides nothing") as refusal:
        asked(driver, shown(first_task(driver), roster))
    assert refusal.value.culprit == "party-2"


def test_a_roster_comes_once() -> None:
    driver = begun()
    roster = roster_of(first_task(driver))
    driver.finish_step()
    with pytest.raises(FailedCheck, match="shows signatures again"):
        asked(driver, shown(first_task(driver), roster))
