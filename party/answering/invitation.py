"""Examination of an invitation before it is answered: the data set, the price, and the verdict of the rules.

It does not know the ledger's requests or how an answer is made. It uses nothing of the rows but their number.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from party import source
from party.answering.mistakes import no_task_stops_the_party
from party.answering.policy import Verdict, judge
from party.answering.refusals import MOST_FRUITLESS, MOST_UNDECIDED, bounded
from party.answering.run_rows import Loaded
from party.errors import PolicyRefusal
from party.home.home import OpenHome
from party.home.settings import dataset_for
from protocol.errors import CURATOR, DataError, FailedCheck, PeerError, PlanError, SchemaError
from protocol.messages.tasks import LARGEST_INVITATION, Invitation
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.tables.schema import Schema

JOINING = "joining"


@dataclass(frozen=True)
class Examined:
    dataset: str | None  # of this party's, with the plan's schema
    price: Fraction
    delta: Fraction
    verdict: Verdict
    # If the verdict rests on them:
    terms: Terms | None = field(default=None, repr=False)
    table: Loaded | None = field(default=None, repr=False)


def examined(opened: OpenHome, task: Invitation, size: int, smallest_key: int) -> Examined:
    """Apply the data owner's rules to an invitation of so many bytes; if it cannot work, refuse it with its reason."""
    dataset, price, delta = None, Fraction(0), Fraction(0)
    try:
        if size > LARGEST_INVITATION:
            raise FailedCheck(CURATOR, f"invites with {size:,} bytes, an invitation has {LARGEST_INVITATION:,} at most")
        schema = _schema_of(task)
        # What costs little is looked at first: terms are worked out for a plan that this party could join.
        me = place_in(opened, task.proposal)
        dataset = dataset_for(opened.home, opened.settings, schema.hash)
        if dataset is None:
            raise PolicyRefusal(f"this party has no data set with the schema {schema.hash[:12]}...")
        with no_task_stops_the_party(task.step):
            terms = agree(task.proposal, schema, smallest_key)
        price, delta = terms.price(me), terms.delta(me)
        check_people(opened, dataset, terms, me)
        rows, table = loaded(opened, dataset, terms.agreed)
        _check_rows(terms, me, rows)
        budget, rules = opened.budget(opened.account_of(dataset)), opened.settings
        is_fruitless = opened.ledger.fruitless() >= MOST_FRUITLESS
        verdict = judge(rules.policy, opened.peers, terms, me, budget, is_fruitless=is_fruitless)
        if verdict.decision == "ask" and len(opened.ledger.requests("asked")) >= MOST_UNDECIDED:
            raise PolicyRefusal(f"{MOST_UNDECIDED} requests wait for the data owner already: ask again later")
        return Examined(dataset, price, delta, Verdict(verdict.decision, bounded(verdict.reasons)), terms, table)
    except (PlanError, SchemaError, PeerError, PolicyRefusal) as error:
        return Examined(dataset, price, delta, Verdict("refuse", bounded([str(error)])))


def loaded(opened: OpenHome, dataset: str, schema: Schema) -> tuple[int, Loaded]:
    """The number of the data set's rows, and its columns of codes or its place in an engine.

    Privacy: only the data owner may know which value of which row does not fit; the refusal does not repeat it.
    """
    if dataset not in opened.settings.datasets:
        raise PolicyRefusal(f"this party no longer has the data set {dataset!r}")
    try:
        return source.table(opened.home.path, opened.settings.datasets[dataset], schema, opened.keys.choosing)
    except DataError as error:
        raise PolicyRefusal(
            f"the table of {opened.curator.name} cannot be read under this schema; `subn-party check` shows its data "
            "owner why"
        ) from error


def check_people(opened: OpenHome, dataset: str, terms: Terms, me: int) -> None:
    """Refuse a plan that does not protect all rows of a person in this party's table, or says it is checked otherwise.

    Privacy: a plan with several rows per person says that persons have several. A data set without a person key takes
    part only if its data owner has said how many they have at most.
    """
    plan, found, member = terms.plan, opened.settings.datasets.get(dataset), terms.plan.members[me]
    if found is None:
        return  # `loaded` says so
    if member.rows_per_person != found.checked_bound:
        raise PlanError(
            f"{member.name} has {_bound_words(found.checked_bound)}, the plan says "
            f"{_bound_words(member.rows_per_person)}: offer the data set again, then ask for a new plan"
        )
    if found.rows_per_person is None and found.checked_bound is None and plan.rows_per_person > 1:
        raise PolicyRefusal(
            f"the plan is for persons with up to {plan.rows_per_person} rows, and the data set of {member.name} names "
            "no person key: its data owner sets person_key in party.toml, or rows_per_person if nobody has more rows"
        )
    if (found.rows_per_person or 1) > plan.rows_per_person:
        raise PolicyRefusal(
            f"persons have up to {found.rows_per_person} rows at {member.name}, the plan protects "
            f"{plan.rows_per_person}: ask for a plan with rows_per_person={found.rows_per_person}"
        )


def _bound_words(bound: int | None) -> str:
    return "no person key" if bound is None else f"at most {bound} row{'s' * (bound > 1)} per person"


def place_in(opened: OpenHome, plan: Plan) -> int:
    """This party's index among the plan's members, found by its signing key; name and exchange key must match too."""
    identity, name = opened.keys.identity, opened.curator.name
    own = (identity.signing.public, identity.exchange.public)
    for place, member in enumerate(plan.members):
        if member.signing_key == own[0]:
            if (member.name, member.signing_key, member.exchange_key) != (name, *own):
                raise PlanError(f"the plan knows {name} under another name or exchange key: ask for a new plan")
            return place
    raise PlanError(f"the signing key of {name} is not in the plan's roster: ask for a new plan")


def _schema_of(task: Invitation) -> Schema:
    if task.plan != task.proposal.hash() or task.step != JOINING:
        raise FailedCheck(CURATOR, "invites under the hash of another plan, or to another step than joining")
    schema = Schema.parse(task.schema_text)
    if schema.to_json() != task.schema_text:
        raise FailedCheck(CURATOR, "sends a schema in another form than the canonical one")
    return schema


def _check_rows(terms: Terms, me: int, rows: int) -> None:
    member = terms.plan.members[me]
    if rows != member.rows:
        raise PlanError(
            f"{member.name} holds {rows} rows, the plan says {member.rows}: offer the data set again, then "
            "ask for a new plan"
        )
