"""The JSON that curator and parties exchange beside tasks: requests and answers, closed to unknown fields.

It does not know how requests are served or signed, and what only operators ask.
"""

from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from protocol.exact import Exact, Hash, canonical_json
from protocol.messages.run_states import RunStateName
from protocol.options import MOST_ROWS_OF_A_PERSON
from protocol.text import checked_name

# A party's runs and receipts are told in pages of so many, ordered by run and step. A shorter page is the last.
MOST_LISTED = 500
LONGEST_POLL = 30  # seconds that the curator holds a request for which it has nothing yet

# The last part of a problem's `type` that a party has to tell from others: another answer has been promised or taken.
OTHER_BYTES = "other-bytes"

# Names go into paths, files and logs: letters, digits and a few marks, no blanks at the ends.
_NAME = r"^[\w](?:[\w .()&'-]{0,98}[\w.)])?$"
PartyName = Annotated[str, Field(pattern=_NAME, examples=["hospital-1"]), AfterValidator(checked_name)]
DatasetName = Annotated[str, Field(pattern=_NAME, examples=["patients"]), AfterValidator(checked_name)]
RunId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,100}$")]
ReceiptPlace = Annotated[
    str, Field(pattern=r"^[0-9A-Za-z_-]{1,100}/[a-z]+(/[0-9]{1,6})?$", description="run and step of the last receipt")
]
StepName = Annotated[str, Field(pattern=r"^[a-z]+(/[0-9]{1,6})?$", examples=["correlations", "update/2"])]
PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["5d" * 32])]
Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$", examples=["a7" * 64])]
_Amount = Annotated[Exact, Field(ge=0), WithJsonSchema({"type": "string"})]


class Asked(BaseModel):
    """Base of request bodies."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    def to_json(self) -> bytes:
        return canonical_json(self.model_dump(mode="json", by_alias=True))


class Told(BaseModel):
    """Base of answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


# What parties ask


class Enrolment(Asked):
    """Signed with the new key: whoever enrols a key holds it."""

    code: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,200}$")]
    name: PartyName
    signing_key: PublicKey
    exchange_key: PublicKey


class Rotation(Asked):
    """Signed with the old key; `signature` is the new one's."""

    signing_key: PublicKey
    exchange_key: PublicKey
    signature: Signature


def rotation_text(name: str, signing_key: str, exchange_key: str) -> bytes:
    """What the new signing key signs: that both keys are this party's. Keys are in hexadecimal digits."""
    return canonical_json({"name": name, "signing_key": signing_key, "exchange_key": exchange_key})


class OfferBody(Asked):
    """ "I hold this many rows of this schema, at most so many of a person"; null if no person key tells that."""

    schema_text: Annotated[str, Field(alias="schema", min_length=2, max_length=1 << 20)]
    rows: Annotated[int, Field(ge=1, le=2 * 10**9, examples=[20000])]
    rows_per_person: Annotated[
        Annotated[int, Field(ge=1, le=MOST_ROWS_OF_A_PERSON)] | None, Field(exclude_if=lambda bound: bound is None)
    ] = None


class Claim(Asked):
    """ "My answer to this step will have this SHA-256", with the receipt for it: sent before the answer."""

    digest: Hash
    receipt: Signature


# What parties are told


class Introduction(Told):
    """Believed only by whom it is proved to: by the pin in an enrolment code."""

    curator_key: PublicKey
    ca: Annotated[str, Field(description="PEM; empty where every machine trusts the certificate")]


class Enrolled(Told):
    name: str
    curator_key: PublicKey


class OwnRun(Told):
    run: RunId
    plan: Hash
    state: RunStateName
    reason: str | None
    culprit: str | None

    @property
    def place(self) -> str:
        """The position from which the page goes on that follows this run."""
        return self.run


class SentReceipt(Told):
    run: RunId
    plan: Hash
    step: str
    charge: Annotated[_Amount, Field(description="exact epsilon")]
    delta: _Amount = Fraction(0)
    digest: Hash
    signature: Signature

    @property
    def place(self) -> str:
        """The position from which the page goes on that follows this receipt."""
        return f"{self.run}/{self.step}"


class Peer(Told):
    name: str
    signing_key: PublicKey
    exchange_key: PublicKey
    revoked: bool


class CuratorTime(Told):
    time_ms: Annotated[int, Field(description="milliseconds since 1970, UTC")]
