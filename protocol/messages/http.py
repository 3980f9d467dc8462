"""Receipts: what a party has signed for the answers that it delivered, as the curator keeps them.

It does not know the ledger, or how receipts travel.
"""

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from protocol.exact import Exact
from protocol.plan.plan import Frozen, Name

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Receipt(Frozen):
    run: Name
    plan: Hash
    step: Name
    charge: Annotated[Exact, Field(ge=0)]  # epsilon
    delta: Annotated[Exact, Field(ge=0)] = Fraction(0)
    digest: Hash  # of the reply
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
