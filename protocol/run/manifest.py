"""The manifest of a result, from which anybody verifies off-line the acceptances, the charges and the files.

It does not know files: their digests are given.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from crypto.errors import BrokenSeal
from crypto.paillier.public import SMALLEST_BITS
from crypto.signing import SigningKey, sign, verify
from protocol.errors import ManifestError, OperatorError
from protocol.exact import Exact, Hash, canonical_json
from protocol.messages.signatures import ACCEPTANCE_CONTEXT, RECEIPT, acceptance_text, receipt_text_of_digest
from protocol.messages.tasks import Engine, RunKey
from protocol.outside_json import LARGEST_FILE, complaint, read_as
from protocol.plan.plan import Frozen, Name, Plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.stages.dependence import rows_below
from protocol.stages.knowledge import Knowledge
from protocol.tables.schema import Schema

MANIFEST_CONTEXT = b"manifest of a result"


class Receipt(Frozen):
    """A party's signed statement of one answer and its price."""

    step: Name
    charge: Exact  # epsilon
    delta: Exact = Fraction(0)
    reply: Hash  # SHA-256 of the answer's bytes
    signature: bytes


class PartyRecord(Frozen):
    name: Name
    spent: Exact  # epsilon
    delta: Exact = Fraction(0)  # spent
    exchange_key: RunKey
    acceptance: bytes  # the party's signature under the plan's hash and its exchange key of the run
    engine: Engine = ""  # that counted its rows, as the party says; empty: its own program
    receipts: tuple[Receipt, ...]


class Edges(Frozen):
    """One family of the network; `party` is set only if every party has a network of its own."""

    attribute: str
    parents: tuple[str, ...]
    party: str = ""


class Dependence(Frozen):
    """How strongly columns depend on each other, as one noisy number of rows, and what followed from it."""

    measured: int
    below: int  # with less, every column was counted alone
    alone: bool


class Cost(Frozen):
    """Traffic of one stage of the run.

    Privacy: its time is left out, since it would tell the public how long parties took to answer.
    """

    name: str
    cells: Annotated[int, Field(ge=0)]
    ciphertexts: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]


class Manifest(Frozen):
    version: Literal[1] = 1
    plan: Plan
    schema_text: str
    curator_key: Annotated[bytes, Field(min_length=32, max_length=32)]
    parties: tuple[PartyRecord, ...]
    network: tuple[Edges, ...]
    phases: tuple[Cost, ...]
    dependence: Annotated[Dependence | None, Field(exclude_if=lambda found: found is None)] = None  # if asked for
    outputs: Mapping[str, Hash]  # SHA-256 of every published file, by name
    software: Mapping[str, str]
    finished: str  # time of the end, in ISO 8601


class SignedManifest(Frozen):
    manifest: Manifest
    signature: bytes


_MANIFEST: TypeAdapter[SignedManifest] = TypeAdapter(SignedManifest)


def signed(manifest: Manifest, key: SigningKey) -> bytes:
    """The manifest's file: canonical JSON with the curator's signature."""
    signature = sign(key, MANIFEST_CONTEXT, _text(manifest))
    return canonical_json(SignedManifest(manifest=manifest, signature=signature).model_dump(mode="json")) + b"\n"


def edges(terms: Terms, known: Knowledge) -> tuple[Edges, ...]:
    networks = [("", known.network)]
    if known.models:
        names = [member.name for member in terms.plan.members]
        networks = list(zip(names, [model.network for model in known.models], strict=True))
    return tuple(
        Edges(
            attribute=terms.domain.variables[family.child].name,
            parents=tuple(terms.domain.names(family.parents)),
            party=name,
        )
        for name, network in networks
        for family in network.families
    )


def dependence(terms: Terms, known: Knowledge) -> Dependence | None:
    if known.dependence is None:
        return None
    counted = [one for one in known.released if one.step == "correlations"]
    alone = all(len(one.table.variables) == 1 for one in counted)
    return Dependence(measured=known.dependence, below=rows_below(terms), alone=alone)


def verify_manifest(
    data: bytes,
    digests: Mapping[str, str],
    curator_key: bytes | None = None,
    smallest_key: int = SMALLEST_BITS,
) -> Manifest:
    """The manifest, if it proves its claims; `digests` are the SHA-256 of the files at hand, by name."""
    manifest = _parsed(data)
    _check_curator(manifest, curator_key)
    terms = _agreed(manifest.manifest, smallest_key)
    _check_parties(manifest.manifest, terms)
    _check_network(manifest.manifest, terms)
    _check_dependence(manifest.manifest, terms)
    _check_files(manifest.manifest, digests)
    return manifest.manifest


def _text(manifest: Manifest) -> bytes:
    return canonical_json(manifest.model_dump(mode="json"))


def _parsed(data: bytes) -> SignedManifest:
    try:
        return read_as(_MANIFEST, data, LARGEST_FILE)
    except ValueError as error:
        raise ManifestError(f"this is not a manifest of version 1: {complaint(error, 'the file')}") from None


def _check_curator(found: SignedManifest, expected: bytes | None) -> None:
    key = found.manifest.curator_key
    if expected is not None and key != expected:
        raise ManifestError("the manifest is signed by another curator than the one that you named")
    try:
        verify(key, MANIFEST_CONTEXT, _text(found.manifest), found.signature)
    except BrokenSeal:
        raise ManifestError("the curator's signature is not valid: the manifest was changed after signing") from None


def _agreed(manifest: Manifest, smallest_key: int) -> Terms:
    try:
        return agree(manifest.plan, Schema.parse(manifest.schema_text), smallest_key)
    except OperatorError as error:
        raise ManifestError(f"no party can have agreed to this plan: {error}") from error


def _check_parties(manifest: Manifest, terms: Terms) -> None:
    names = [member.name for member in terms.plan.members]
    if [record.name for record in manifest.parties] != names:
        raise ManifestError(f"the manifest has records of other parties than the plan's, which are {', '.join(names)}")
    for party, record in enumerate(manifest.parties):
        _check_acceptance(terms, party, record)
        _check_receipts(terms, party, record)


def _check_acceptance(terms: Terms, party: int, record: PartyRecord) -> None:
    member = terms.plan.members[party]
    try:
        text = acceptance_text(terms.plan_hash, record.exchange_key)
        verify(member.signing_key, ACCEPTANCE_CONTEXT, text, record.acceptance)
    except BrokenSeal:
        raise ManifestError(f"{record.name} did not sign this plan") from None


def _check_receipts(terms: Terms, party: int, record: PartyRecord) -> None:
    steps = [step for step in terms.steps if party in step.parties]
    if [receipt.step for receipt in record.receipts] != [step.name for step in steps]:
        raise ManifestError(
            f"{record.name}'s receipts do not match the {len(steps)} steps that the plan has for this party"
        )
    for step, receipt in zip(steps, record.receipts, strict=True):
        for what, said, due in (("", receipt.charge, step.charge(party)), ("delta ", receipt.delta, step.delta(party))):
            if said != due:
                raise ManifestError(
                    f"{record.name}'s receipt for {step.name!r} says {what}{said}, the plan says {what}{due}"
                )
        _check_receipt(terms, party, receipt)
    for what, said, parts in (
        ("", record.spent, [receipt.charge for receipt in record.receipts]),
        ("a delta of ", record.delta, [receipt.delta for receipt in record.receipts]),
    ):
        if said != (total := sum(parts, Fraction(0))):
            raise ManifestError(
                f"the manifest says that {record.name} spent {what}{said}, but its receipts add up to {what}{total}"
            )


def _check_receipt(terms: Terms, party: int, receipt: Receipt) -> None:
    member = terms.plan.members[party]
    text = receipt_text_of_digest(terms.plan_hash, receipt.step, receipt.charge, receipt.reply, receipt.delta)
    try:
        verify(member.signing_key, RECEIPT, text, receipt.signature)
    except BrokenSeal:
        raise ManifestError(f"{member.name} did not sign its receipt for {receipt.step!r}") from None


def _check_network(manifest: Manifest, terms: Terms) -> None:
    known = {variable.name for variable in terms.domain.variables}
    for family in manifest.network:
        unknown = {family.attribute, *family.parents} - known
        if unknown:
            raise ManifestError(f"the network names {sorted(unknown)[0]!r}, which the schema does not have")


def _check_dependence(manifest: Manifest, terms: Terms) -> None:
    found = manifest.dependence
    if (found is not None) != bool(terms.plan.dependence):
        raise ManifestError("the manifest and its plan differ in whether the dependence of columns was asked for")
    if found is not None and (found.below, found.alone) != (rows_below(terms), found.measured < rows_below(terms)):
        raise ManifestError(
            f"the manifest says that columns were {'' if found.alone else 'not '}counted alone for a dependence of "
            f"{found.measured:,} rows, but the plan's bound is {rows_below(terms):,}"
        )


def _check_files(manifest: Manifest, digests: Mapping[str, str]) -> None:
    for name, digest in digests.items():
        if name not in manifest.outputs:
            known: Sequence[str] = sorted(manifest.outputs)
            raise ManifestError(f"the manifest does not list the file {name!r}; it lists {', '.join(known)}")
        if manifest.outputs[name] != digest:
            raise ManifestError(f"{name} is not the file that was published: its SHA-256 differs")
