"""`subn verify` on a result of real processes: the genuine one is accepted, whatever is tampered with is not.

An outsider changes bytes; a dishonest curator changes what it likes and signs again.
"""

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from crypto.signing import SigningKey
from curator.home.keys import CuratorKeys
from curator.results.publication import PUBLISHED
from curator.subn import main
from protocol.run.manifest import Edges, Manifest, signed, verify_manifest
from tests.end_to_end.cluster import Cluster
from tests.end_to_end.conftest import PARTIES

FILES = ("manifest.json", *PUBLISHED)


@pytest.fixture(scope="module")
def published(home: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run, folder = home.finished(*PARTIES[:3], update="joint"), tmp_path_factory.mktemp("published")
    for name in FILES:
        (folder / name).write_bytes(home.get(run, name))
    return folder


@pytest.fixture
def copy(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "copy")
    return tmp_path / "copy"


def verified(home: Cluster, folder: Path, *more: str) -> int:
    return main(["verify", str(folder / "manifest.json"), "--curator-key", home.public, *more])


def rejected(home: Cluster, folder: Path, why: str, capsys: pytest.CaptureFixture[str], *more: str) -> None:
    assert verified(home, folder, *more) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("subn: not verified: ")
    assert why in complaint


def test_the_genuine_result_is_accepted(home: Cluster, published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(home, published, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == sorted(set(FILES) - {"manifest.json"})
    assert found["spent"] == dict.fromkeys(PARTIES[:3], "2")
    done = home.subn("verify", published / "manifest.json")
    assert (done.returncode, done.stdout.startswith("verified: run")) == (0, True)


# By an outsider


def _in_json(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        file = folder / "manifest.json"
        found = json.loads(file.read_text())
        change(found)
        file.write_text(json.dumps(found))

    return tamper


def _in_file(name: str) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[-2] ^= 1
        (folder / name).write_bytes(data)

    return tamper


def _cut(folder: Path) -> None:
    data = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(data[: len(data) // 2])


def _signed_by_another(folder: Path) -> None:
    manifest = verify_manifest((folder / "manifest.json").read_bytes(), {})
    other = SigningKey.generate()
    changed = manifest.model_copy(update={"curator_key": other.public})
    (folder / "manifest.json").write_bytes(signed(changed, other))


OUTSIDERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "another table": (_in_file("table.csv"), "table.csv is not the file that was published"),
    "another network": (_in_file("network.json"), "network.json is not the file"),
    "other noisy tables": (_in_file("tables.json"), "tables.json is not the file"),
    "another report": (_in_file("report.json"), "report.json is not the file"),
    "half a manifest": (_cut, "this is not a manifest of version 1"),
    "another version": (_in_json(lambda m: m["manifest"].update(version=2)), "this is not a manifest of version 1"),
    "an unknown field": (_in_json(lambda m: m.update(note="trust me")), "this is not a manifest of version 1"),
    "a lower price": (_in_json(lambda m: m["manifest"]["parties"][0].update(spent="1")), "changed after signing"),
    "another end": (_in_json(lambda m: m["manifest"].update(finished="2020-01-01")), "changed after signing"),
    "another curator": (_signed_by_another, "another curator than the one that you named"),
}


@pytest.mark.parametrize("kind", OUTSIDERS)
def test_what_an_outsider_changes_is_rejected(
    home: Cluster, copy: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    tamper, why = OUTSIDERS[kind]
    tamper(copy)
    rejected(home, copy, why, capsys)


def test_another_table_under_any_name_is_rejected(
    home: Cluster, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy / "mine.csv"
    other.write_text("work,grade\n")
    rejected(home, copy, "table.csv is not the file", capsys, "--table", str(other))


# By the curator itself


def _plan(**changes: Any) -> Callable[[Manifest], Manifest]:
    return lambda m: m.model_copy(update={"plan": m.plan.model_copy(update=changes)})


def _first(**changes: Any) -> Callable[[Manifest], Manifest]:
    return lambda m: m.model_copy(update={"parties": (m.parties[0].model_copy(update=changes), *m.parties[1:])})


def _paid_step(m: Manifest) -> int:
    return next(place for place, receipt in enumerate(m.parties[0].receipts) if receipt.charge)


def _receipt(**changes: Any) -> Callable[[Manifest], Manifest]:
    def change(m: Manifest) -> Manifest:
        receipts, place = list(m.parties[0].receipts), _paid_step(m)
        receipts[place] = receipts[place].model_copy(update=changes)
        return _first(receipts=tuple(receipts))(m)

    return change


def _without_receipt(m: Manifest) -> Manifest:
    receipts, place = m.parties[0].receipts, _paid_step(m)
    spent = m.parties[0].spent - receipts[place].charge
    return _first(receipts=receipts[:place] + receipts[place + 1 :], spent=spent)(m)


def _foreign_acceptance(m: Manifest) -> Manifest:
    return _first(acceptance=m.parties[1].acceptance)(m)


def _unknown_attribute(m: Manifest) -> Manifest:
    return m.model_copy(update={"network": (*m.network, Edges(attribute="income", parents=()))})


CURATORS: dict[str, tuple[Callable[[Manifest], Manifest], str]] = {
    "a smaller epsilon": (_plan(epsilon=Fraction(1)), "no party can have agreed to this plan"),
    "a larger epsilon": (_plan(epsilon=Fraction(3)), "did not sign this plan"),
    "another run": (_plan(run="another"), "did not sign this plan"),
    "fewer insiders": (_plan(insiders=0), "did not sign this plan"),
    "an acceptance of somebody else": (_foreign_acceptance, "Nord did not sign this plan"),
    "a lower sum": (_first(spent=Fraction(1)), "spent 1, but its receipts add up to 2"),
    "a lower charge": (_receipt(charge=Fraction(0)), "says 0, the plan says"),
    "another answer": (_receipt(reply="0" * 64), "did not sign its receipt"),
    "a missing receipt": (_without_receipt, "receipts do not match the"),
    "a missing party": (lambda m: m.model_copy(update={"parties": m.parties[1:]}), "records of other parties"),
    "other places": (lambda m: m.model_copy(update={"parties": m.parties[::-1]}), "records of other parties"),
    "an unknown attribute": (_unknown_attribute, "names 'income', which the schema does not have"),
    "another schema": (
        lambda m: m.model_copy(update={"schema_text": m.schema_text.replace("clerk", "judge")}),
        "no party can have agreed to this plan",
    ),
}


@pytest.mark.parametrize("kind", CURATORS)
def test_what_the_curator_changes_and_signs_again_is_rejected(
    home: Cluster, copy: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    change, why = CURATORS[kind]
    file = copy / "manifest.json"
    key = CuratorKeys.load(home.folder / "curator", "").signing
    genuine = verify_manifest(file.read_bytes(), {})
    assert signed(genuine, key) == file.read_bytes()  # the attacker's tool is the real one
    file.write_bytes(signed(change(genuine), key))
    rejected(home, copy, why, capsys)
