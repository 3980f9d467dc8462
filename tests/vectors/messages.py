"""One good message of every kind (of `count` also its variants), from fixed numbers: what the vectors are made of."""

from collections.abc import Mapping
from fractions import Fraction

from protocol.messages.tasks import (
    Acceptance,
    Contribution,
    Count,
    Invitation,
    Joined,
    Keys,
    Learn,
    Learned,
    Place,
    Placed,
    Refusal,
    Reply,
    TakeBack,
    Task,
)
from protocol.plan.plan import Member, Plan

HASH = "0123456789abcdef" * 4
PLAN = Plan(
    run="vectors",
    schema_hash="ab" * 32,
    members=tuple(
        Member(name=name, rows=rows, signing_key=bytes([rows]) * 32, exchange_key=bytes(range(32)))
        for name, rows in (("Sankt Älle", 3), ("clinic", 250))
    ),
    method="dp-subn",
    preset="paper",
    epsilon=Fraction(4, 5),
    split=(Fraction(1, 5), Fraction(1, 5), Fraction(1, 10), Fraction(1, 5)),
    insiders=0,
    noise="selected",
    update="replace",
    rounds=1,
    encoding="binary",
    score="I",
    choice="exponential",
    picks=(2, 3),
    theta=Fraction(6),
    frontier_theta=Fraction(2),
    degree=None,
    cover_objective="paper",
    cover_budgets="equal",
    key_bits=3072,
    rows=253,
)
_KEYS = Keys(
    public_key=b"\x80\x01", modulus_proof=b"\x7f" * 3, indicator=b"\xff" * 5, contributions=(b"", b"\x00sealed\xfe")
)
_RUN_KEY = bytes(range(100, 132))
_JOINED = Joined(exchange_key=_RUN_KEY, signature=bytes(range(64)))
_FAMILIES = ((2, ()), (0, (2,)), (1, (0, 2)))

MESSAGES: Mapping[str, Task | Reply] = {
    "invitation": Invitation(plan=PLAN.hash(), step="joining", proposal=PLAN, schema_text='{"title":"é"}'),
    "acceptance": Acceptance(
        plan=HASH, step="joining", exchange_key=_RUN_KEY, signature=bytes(64), contributions=(b"", b"\x01\x02")
    ),
    "acceptance without group key": Acceptance(
        plan=HASH, step="joining", exchange_key=_RUN_KEY, signature=b"\xff" * 64, contributions=()
    ),
    "count": Count(plan=HASH, step="parameters", tables=((0, 1), (2,))),
    "count with the roster": Count(plan=HASH, step="correlations", roster=(_JOINED, _JOINED), tables=((0, 1), (2,))),
    "count with keys": Count(plan=HASH, step="correlations", tables=((0, 1, 2),), keys=_KEYS),
    "count with masked tables": Count(plan=HASH, step="update/2", tables=((0, 1), (2, 1)), masked=(1,)),
    "count of merged categories": Count(plan=HASH, step="parameters", tables=((0, 3),), merged=((2, (0, 1, 1)),)),
    "take-back": TakeBack(plan=HASH, step="update/2", tables=((2, 1),)),
    "contribution": Contribution(plan=HASH, step="parameters", blob=bytes(range(16))),
    "contribution with tags": Contribution(
        plan=HASH, step="parameters", tags=(bytes(16), b"", b"\xff" * 16), blob=bytes(range(16))
    ),
    "empty contribution": Contribution(plan=HASH, step="update/1"),
    "place": Place(plan=HASH, step="initial/2", families=_FAMILIES[:1]),
    "place by the model": Place(
        plan=HASH,
        step="further/3",
        families=_FAMILIES[:1],
        further=((1, 2),),
        merged=((2, (0, 1, 1)),),
        cliques=((0, 2), (1, 2)),
        parents=(0, 0),
        blob=bytes(range(64)),
    ),
    "placed": Placed(plan=HASH, step="initial/2", families=_FAMILIES[1:]),
    "learn": Learn(plan=HASH, step="models"),
    "learned": Learned(plan=HASH, step="models", families=_FAMILIES, blob=b"\x00" * 8 + b"\xff" * 8),
    "refusal": Refusal(plan=HASH, step="joining", reason="the settings allow epsilon 1/2, the plan costs 4/5"),
    "refusal that accuses": Refusal(plan=HASH, step="correlations", reason="it does not open", culprit="clinic"),
}
