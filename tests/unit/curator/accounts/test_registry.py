"""Who takes part: operators' keys, codes, enrolment, rotation, offers, and the members that a plan may name."""

import pytest

from crypto.randomness import Stream
from curator.accounts.registry import CODE_LIFE_MS, Directory
from curator.errors import Conflict, Forbidden, NotFound
from curator.store.store import Store
from protocol.errors import PlanError
from tests.support.curator import START, Clock
from tests.support.small_runs import BITS, MIXED, identity

STREAM = Stream.keyed(b"test", "directory")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(tmp_path, clock):
    store = Store.open(f"sqlite:///{tmp_path / 'curator.db'}")
    yield Directory(store, clock)
    store.close()


def keys(number: int) -> tuple[bytes, bytes]:
    return identity(number).signing.public, identity(number).exchange.public


def enrol(directory: Directory, name: str, number: int = 0) -> None:
    code, _ = directory.new_code(name, STREAM)
    directory.enrol(code, name, *keys(number))


def refused(call, kind: type[Exception]) -> str:
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


# Operators' keys


def test_operator_keys_are_random_and_only_hashes_are_kept(directory, tmp_path):
    key = directory.new_operator_key("anna", STREAM)
    assert len(bytes.fromhex(key)) == 32
    assert [(found.label, found.created) for found in directory.operator_keys()] == [("anna", START)]
    assert key.encode() not in (tmp_path / "curator.db").read_bytes() + (tmp_path / "curator.db-wal").read_bytes()


def test_operator_keys_are_revoked_by_label(directory):
    for label in ("anna", "ben", "anna"):
        directory.new_operator_key(label, STREAM)
    directory.revoke_operator_key("anna")
    assert [found.label for found in directory.operator_keys()] == ["ben"]
    assert "no operator's key called 'anna'" in refused(lambda: directory.revoke_operator_key("anna"), NotFound)


# Enrolment


def test_a_code_enrols_its_party_once(directory, clock):
    code, expires = directory.new_code("clinic", STREAM)
    assert expires == START + CODE_LIFE_MS
    record = directory.enrol(code, "clinic", *keys(0))
    assert (record.name, record.signing_key, record.enrolled, record.revoked) == ("clinic", keys(0)[0], START, None)
    assert directory.parties() == [record]
    assert "has been used" in refused(lambda: directory.enrol(code, "clinic", *keys(1)), Forbidden)


def test_an_enrolment_whose_answer_was_lost_can_be_made_again(directory, clock):
    code, _ = directory.new_code("clinic", STREAM)
    record = directory.enrol(code, "clinic", *keys(0))
    clock.now += CODE_LIFE_MS
    assert directory.enrol(code, "clinic", *keys(0)) == record
    assert directory.parties() == [record]
    another, _ = directory.new_code("other", STREAM)
    for wrong in (code[:-1] + "x", another):
        refused(lambda w=wrong: directory.enrol(w, "clinic", *keys(0)), Forbidden)
    mixed = keys(0)[0], keys(1)[1]
    assert "has been used" in refused(lambda: directory.enrol(code, "clinic", *mixed), Forbidden)
    directory.rotate("clinic", *keys(2))
    assert "has been used" in refused(lambda: directory.enrol(code, "clinic", *keys(0)), Forbidden)
    directory.rotate("clinic", *keys(0))
    directory.revoke("clinic")
    assert "has been used" in refused(lambda: directory.enrol(code, "clinic", *keys(0)), Forbidden)


def test_a_code_is_for_its_name_and_day(directory, clock):
    code, _ = directory.new_code("clinic", STREAM)
    for wrong, name in ((code, "other"), ("0" * 30, "clinic")):
        assert "no enrolment code for" in refused(lambda w=wrong, n=name: directory.enrol(w, n, *keys(0)), Forbidden)
    clock.now += CODE_LIFE_MS
    assert "has expired" in refused(lambda: directory.enrol(code, "clinic", *keys(0)), Forbidden)
    assert directory.parties() == []


def test_a_refused_enrolment_does_not_use_the_code(directory):
    enrol(directory, "first", 0)
    code, _ = directory.new_code("clinic", STREAM)
    assert "belongs to a party already" in refused(lambda: directory.enrol(code, "clinic", *keys(0)), Conflict)
    directory.enrol(code, "clinic", *keys(1))


def test_names_are_taken_once(directory):
    first, _ = directory.new_code("clinic", STREAM)
    second, _ = directory.new_code("clinic", STREAM)
    directory.enrol(first, "clinic", *keys(0))
    assert "a party called 'clinic' already" in refused(lambda: directory.enrol(second, "clinic", *keys(1)), Conflict)
    assert "a party called 'clinic' already" in refused(lambda: directory.new_code("clinic", STREAM), Conflict)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", " a", "a ", "curator", "operator", "the parties"])
def test_names_that_would_mislead_are_refused(directory, name):
    with pytest.raises(Forbidden, match=r"a party's name has|no party can be called"):
        directory.new_code(name, STREAM)


def test_parties_come_in_pages(directory):
    for number, name in enumerate(("c", "a", "b")):
        enrol(directory, name, number)
    assert [party.name for party in directory.parties(2)] == ["a", "b"]
    assert [party.name for party in directory.parties(2, after="b")] == ["c"]


# Rotation and revocation


def test_keys_rotate(directory):
    enrol(directory, "clinic", 0)
    directory.rotate("clinic", *keys(1))
    assert directory.parties()[0].signing_key == keys(1)[0]


def test_keys_do_not_rotate_to_those_of_another_party(directory):
    enrol(directory, "clinic", 0)
    enrol(directory, "other", 1)
    assert "belongs to a party already" in refused(lambda: directory.rotate("clinic", *keys(1)), Conflict)
    assert "no party called 'nobody'" in refused(lambda: directory.rotate("nobody", *keys(2)), NotFound)


def test_a_revoked_party_keeps_the_time_of_its_revocation(directory, clock):
    enrol(directory, "clinic")
    directory.revoke("clinic")
    clock.advance(5)
    directory.revoke("clinic")
    assert directory.parties()[0].revoked == START
    assert "no party called 'nobody'" in refused(lambda: directory.revoke("nobody"), NotFound)


# Offers, schemas, members


def test_an_offer_brings_its_schema(directory):
    enrol(directory, "clinic")
    directory.offer("clinic", "patients", BITS, 30)
    assert directory.schema(BITS.hash) == BITS
    assert [(one.hash, one.title) for one in directory.schemas()] == [(BITS.hash, "")]
    assert "no schema" in refused(lambda: directory.schema(MIXED.hash), NotFound)


def test_a_schema_is_kept_once_and_pages_are_by_hash(directory):
    for schema in (BITS, MIXED, BITS):
        directory.add_schema(schema)
    first, second = sorted([BITS.hash, MIXED.hash])
    assert [one.hash for one in directory.schemas(1)] == [first]
    assert [one.hash for one in directory.schemas(1, after=first)] == [second]


def test_the_newest_offer_counts(directory, clock):
    enrol(directory, "clinic")
    for dataset, schema, rows in (("old", BITS, 30), ("new", BITS, 31), ("other", MIXED, 5), ("old", BITS, 32)):
        clock.advance(1)
        directory.offer("clinic", dataset, schema, rows)
    assert len(directory.offers()) == 3
    assert [member.rows for member in directory.members(BITS.hash, None)] == [32]


def test_members_are_those_asked_for_in_their_order(directory):
    for number, name in enumerate(("a", "b", "c")):
        enrol(directory, name, number)
        directory.offer(name, "rows", BITS, 10 + number)
    assert [(m.name, m.rows) for m in directory.members(BITS.hash, ["c", "a"])] == [("c", 12), ("a", 10)]
    directory.revoke("a")
    assert [member.name for member in directory.members(BITS.hash, None)] == ["b", "c"]
    assert "revoked" in refused(lambda: directory.members(BITS.hash, ["a"]), PlanError)
    assert "no party 'x'" in refused(lambda: directory.members(BITS.hash, ["x"]), PlanError)
    assert "b offers no rows of the schema" in refused(lambda: directory.members(MIXED.hash, ["b"]), PlanError)
