"""Every message between the curator and a party: frozen, versioned, closed to unknown fields.

It does not know the order of messages (`protocol.run.curator`, `protocol.run.party`), or how bytes travel.

On the wire a message is MAGIC, the length of its header (4 bytes, big endian), the header as canonical JSON, and
its blob: ciphertexts or 64-bit words. Nothing is ever evaluated, and equal messages have equal bytes.
"""

import operator
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, FailFast, Field, TypeAdapter

from protocol.errors import MalformedMessage
from protocol.exact import Hash, canonical_json
from protocol.outside_json import complaint, read_as
from protocol.plan.plan import LONGEST_NAME, Frozen, Name, Plan
from protocol.text import checked_name

MAGIC = b"SUBN\x01"
LARGEST_TASK = 1 << 26  # bytes, with its blob
LARGEST_HEADER = 1 << 25
LARGEST_INVITATION = 1 << 22  # bytes: a schema of the largest size, and thousands of members

Index = Annotated[int, Field(ge=0, lt=1 << 20)]
INDEX_BYTES = 10  # an index in the header, at most, with the marks around it
ENVELOPE_BYTES = 1 << 14  # a header without lists, at most: also of a refusal with the longest reason
TAG_TEXT_BYTES = 32  # a tag of a pair in the header, at most
SEALED_BYTES = 200  # a sealed share of the group key in the header, at most
# The first mistake ends the reading of a list: a list of mistakes takes far more room than the message.
Variables = Annotated[tuple[Index, ...], FailFast()]
Family = tuple[Index, Variables]  # child, parents
Families = Annotated[tuple[Family, ...], FailFast()]
Tables = Annotated[tuple[Variables, ...], FailFast()]
Merged = tuple[
    Index, Annotated[tuple[Index, ...], Field(min_length=1), FailFast()]
]  # a variable; its codes' categories
Merging = Annotated[tuple[Merged, ...], FailFast()]
Contributions = Annotated[tuple[bytes, ...], FailFast()]
Tag = Annotated[bytes, Field(max_length=16)]
RunKey = Annotated[bytes, Field(min_length=32, max_length=32)]  # a party's exchange key of this run alone, public half
# Left out where it is empty, as in messages of programs that know no engines.
Engine = Annotated[str, Field(pattern=r"^[a-z]{0,20}$", exclude_if=lambda name: not name)]


class Message(Frozen):
    model_config = ConfigDict(hide_input_in_errors=True)

    plan: Hash  # of the plan that the message belongs to
    step: Name
    blob: Annotated[bytes, Field(exclude=True, repr=False)] = b""


class Invitation(Message):
    """Curator to party: the plan and its schema, to be accepted or refused."""

    kind: Literal["invitation"] = "invitation"
    proposal: Plan
    schema_text: str


class Acceptance(Message):
    """Party to curator: "I run this plan", with the party's exchange key of this run.

    The message carries the party's share of the group key, sealed for each other party.
    """

    kind: Literal["acceptance"] = "acceptance"
    exchange_key: RunKey
    signature: bytes  # under the plan's hash and the exchange key
    contributions: Contributions  # by recipient; empty for the party itself and where no group key is needed
    engine: Engine = ""  # the kind of engine that counts this party's rows; empty: the party's own program


class Keys(Frozen):
    """Keys that each party needs before the first sum in noise mode `selected`."""

    public_key: bytes
    modulus_proof: bytes
    indicator: bytes
    contributions: Contributions  # by sender, sealed to the recipient


class Joined(Frozen):
    """What every party is shown of each member's acceptance."""

    exchange_key: RunKey
    signature: bytes


Roster = Annotated[
    tuple[Joined, ...],
    FailFast(),
    Field(description="every member's signed exchange key, in the first task that a party gets after joining"),
]


class Count(Message):
    """Curator to party: the tables of one sum pass, or of one party's update."""

    kind: Literal["count"] = "count"
    roster: Roster = ()
    tables: Tables
    merged: Merging = ()  # variables with merged categories, numbered after the plan's own
    # A variable, and the codes of its grid with which its bins begin: in the first task after edges were found.
    edges: Annotated[Families, Field(exclude_if=operator.not_)] = ()
    keys: Keys | None = None
    masked: Variables = ()  # update=replace: tables whose former noise the predecessor takes out


class TakeBack(Message):
    """Curator to party (update=replace): take your noise out of these tables of your last update."""

    kind: Literal["take-back"] = "take-back"
    tables: Tables


class Contribution(Message):
    """Party to curator: the answer to `Count` and `TakeBack`, in the blob.

    In a pass the tags show for each other party which masks this party has used, and nothing of the masks.
    """

    kind: Literal["contribution"] = "contribution"
    tags: tuple[Tag, ...] = ()  # by party; empty for the party itself


class Place(Message):
    """Curator to party: the network so far; place your share of the variables, or pick further pairs (score M).

    With score M the blob holds a model of all tables released so far. For every clique of the model's tree it gives
    the weight of each combination of codes, as 64-bit words. Codes are those of the merged categories.
    """

    kind: Literal["place"] = "place"
    roster: Roster = ()
    families: Families
    further: Tables = ()  # pairs picked in addition to the network's
    frontier: Tables = ()  # update=turns: the pairs among which to pick
    merged: Merging = ()
    cliques: Tables = ()  # of the model's tree, from the root outwards
    parents: Variables = ()  # for every clique, the position of its parent in `cliques`


class Placed(Message):
    """Party to curator: the families that the party picked privately."""

    kind: Literal["placed"] = "placed"
    families: Families


class Learn(Message):
    """Curator to party (method independent): learn a model of your own rows."""

    kind: Literal["learn"] = "learn"
    roster: Roster = ()


class Learned(Message):
    """Party to curator: the party's network, and the noisy tables of its maximal families in the blob."""

    kind: Literal["learned"] = "learned"
    families: Families


class Refusal(Message):
    """Party to curator: "I do not answer this task", with a reason that tells nothing about rows. Ends the run."""

    kind: Literal["refusal"] = "refusal"
    culprit: Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(checked_name)] = ""  # an accused party
    reason: Annotated[str, Field(min_length=1, max_length=2000)]


Task = Invitation | Count | TakeBack | Place | Learn
Reply = Acceptance | Contribution | Placed | Learned | Refusal
AnyMessage = Annotated[Task | Reply, Field(discriminator="kind")]

_ADAPTER: TypeAdapter[Task | Reply] = TypeAdapter(AnyMessage)


def encode(message: Task | Reply) -> bytes:
    header = canonical_json(message.model_dump(mode="json"))
    return MAGIC + len(header).to_bytes(4, "big") + header + message.blob


def decode(data: bytes, sender: str) -> Task | Reply:
    """The message in `data`; `MalformedMessage` names the sender as its culprit."""
    header, blob = _split(data, sender)
    try:
        message = read_as(_ADAPTER, header, LARGEST_HEADER)
    except ValueError as error:
        raise MalformedMessage(sender, f"sent no valid message of version 1: {complaint(error, 'header')}") from None
    if canonical_json(message.model_dump(mode="json")) != header:
        # Retry safety: a message has exactly one spelling, so that a task already answered is recognised by its hash.
        raise MalformedMessage(sender, "sent a message whose header is not in canonical JSON")
    if blob and not isinstance(message, Contribution | Learned | Place):
        raise MalformedMessage(
            sender, f"sent a message of kind {message.kind!r}, which ends with its header, but {len(blob)} bytes follow"
        )
    return message.model_copy(update={"blob": blob}) if blob else message


def _split(data: bytes, sender: str) -> tuple[bytes, bytes]:
    start = len(MAGIC) + 4
    if data[:4] != MAGIC[:4] or len(data) < start:
        raise MalformedMessage(
            sender, f"sent bytes that are no message: expected a message that starts with {MAGIC[:4]!r}"
        )
    if data[4:5] != MAGIC[4:]:
        raise MalformedMessage(
            sender, f"speaks protocol version {data[4]}, this side speaks {MAGIC[4]}: update one of them"
        )
    length = int.from_bytes(data[len(MAGIC) : start], "big")
    if length > min(LARGEST_HEADER, len(data) - start):
        raise MalformedMessage(sender, f"announced a header of {length} bytes, but {len(data) - start} bytes follow")
    return data[start : start + length], data[start + length :]
