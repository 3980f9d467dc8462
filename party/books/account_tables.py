"""What the ledger's tables say about accounts: spent, set aside, and spent under names that nobody claims.

It does not know which changes are allowed (`party.books.ledger`).
"""

from fractions import Fraction
from sqlite3 import Connection

from party.books.budget import NOTHING, Amounts, Claims, added
from party.books.ledger_tables import CLAIMED, Request, claimed_by, requests_in, total

_CHARGES = """
SELECT dataset, source, budget, charge, answers.delta AS delta FROM answers JOIN requests USING (run)
UNION ALL
SELECT dataset, source, budget, charge, delta FROM recovered
"""
_SPENT = f"SELECT charge, delta FROM ({_CHARGES}) WHERE {CLAIMED}"  # noqa: S608 - nothing of it comes from outside
_UNCLAIMED = f"""
SELECT dataset, charge, delta FROM ({_CHARGES})
WHERE (charge != '0' OR delta != '0') AND coalesce({CLAIMED}, 0) = 0
"""  # noqa: S608 - nothing of it comes from outside


def spent_on(db: Connection, claims: Claims) -> Amounts:
    return total(db.execute(_SPENT, claimed_by(claims)))


def reserved_on(db: Connection, claims: Claims) -> Amounts:
    active = [one for one in requests_in(db, "active") if _is_claimed(one, claims)]
    return added(*((one.reserved, one.reserved_delta) for one in active))


def unclaimed_in(db: Connection, claims: Claims) -> dict[str, Amounts]:
    """What was spent or is set aside outside these claims, by the name of the data set that paid."""
    found: dict[str, Amounts] = {}
    for dataset, charge, delta in db.execute(_UNCLAIMED, claimed_by(claims)):
        found[dataset] = added(found.get(dataset, NOTHING), (Fraction(charge), Fraction(delta)))
    for one in requests_in(db, "active"):
        if one.dataset is not None and not _is_claimed(one, claims):
            found[one.dataset] = added(found.get(one.dataset, NOTHING), (one.reserved, one.reserved_delta))
    return found


def _is_claimed(request: Request, claims: Claims) -> bool:
    return claims.has(request.dataset or "", request.source, request.budget)
