"""`subn-party doctor` and `subn-curator doctor` beside real services: all well, and each thing that can be wrong."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from curator.home.certificates import Certificates
from curator.home.x509 import SERVER_DAYS, Pair, certificates_in, key_in, new_server_certificate, utc_now
from tests.end_to_end.cluster import Cluster, cluster, command, wait

MARKED = "zzz-marked-value"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("doctor") / "c") as found:
        found.add("sound", "other")
        found.enrol("sound", "other")
        found.acquaint("sound", "other")
        found.serve("sound", "other")
        found.finished("sound", "other")
        yield found


def party(home: Cluster, code: int, name: str = "sound") -> dict[str, list[dict[str, str]]]:
    """Findings by what was looked at."""
    return by_subject(home.sites[name].cli("doctor", code=code))


def curator(home: Cluster, code: int) -> dict[str, list[dict[str, str]]]:
    port = home.url.rpartition(":")[2]
    done = command("subn-curator", "doctor", "--home", home.folder / "curator", "--port", port, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return by_subject(json.loads(done.stdout))


def by_subject(said: Any) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for one in said["findings"]:
        assert one["verdict"] == "ok" or one["mend"] or one["found"]
        found.setdefault(one["what"], []).append(one)
    return found


def verdicts(found: dict[str, list[dict[str, str]]]) -> set[str]:
    return {one["verdict"] for subject in found.values() for one in subject}


def test_a_party_before_and_after_enrolment(clinic: Cluster) -> None:
    clinic.add("new")
    before = party(clinic, 0, "new")
    assert "enrol" in before["connection"][0]["mend"]
    assert "curator" not in before
    clinic.enrol("new")
    met = party(clinic, 0, "new")
    assert {one["verdict"] for one in met["peers"]} == {"warn"}  # not compared yet
    assert met["peers"][0]["mend"].startswith("compare it by telephone")
    clinic.subn("parties", "revoke", "new")


def test_a_sound_party(clinic: Cluster) -> None:
    after = party(clinic, 0)  # beside the serving process
    assert "TLSv1.3" in after["connection"][0]["found"]
    for subject in ("versions", "home", "disk", "source", "ledger", "audit log", "clock", "certificate", "receipts"):
        assert {one["verdict"] for one in after[subject]} <= {"ok", "warn"}, after[subject]
    assert after["pinned CA"][0]["verdict"] == "ok"
    assert "peers" not in after or all(one["verdict"] != "bad" for one in after["peers"])


def test_a_sound_curator(clinic: Cluster) -> None:
    found = curator(clinic, 0)
    assert "bad" not in verdicts(found)
    assert found["service"][0]["verdict"] == "ok"
    assert "enrolled" in found["parties"][0]["found"]
    text = command("subn-curator", "doctor", "--home", clinic.folder / "curator").stdout
    assert "ok    store          " in text


def test_what_is_wrong_with_a_party_is_named_and_how_to_mend_it(clinic: Cluster) -> None:
    site = clinic.sites["other"]
    site.running.stop()  # a log that is changed under a serving process would be another test
    table, key, log = (site.home / name for name in ("patients.csv", "keys/identity.json", "audit.jsonl"))
    token = site.home / "local-token"
    good, logged, written = table.read_text(), log.read_bytes(), token.read_bytes()
    table.write_text(good.replace("\n", f"\n{MARKED}", 1))
    key.parent.chmod(0o755)
    log.write_bytes(logged.replace(b'"enrolled"', b'"Enrolled"', 1))
    token.write_bytes(b"")
    token.chmod(0o644)
    try:
        found = party(clinic, 1, "other")
        text = site.shell("doctor").stdout
    finally:
        table.write_text(good)
        key.parent.chmod(0o700)
        log.write_bytes(logged)
        token.write_bytes(written)
        token.chmod(0o600)
    assert "does not fit" in found["source"][0]["found"]
    assert MARKED not in text
    assert found["file modes"][0]["mend"] == f"chmod go= {key.parent} {token}"
    assert found["tokens"][0]["verdict"] == "bad"
    assert f"{token} does not hold the token that this program wrote" in found["tokens"][0]["found"]
    assert found["audit log"][0]["verdict"] == "bad"
    assert "bad   source " in text
    assert found["connection"][0]["verdict"] == "ok"  # the rest was looked at all the same
    assert "bad" not in verdicts(party(clinic, 0, "other"))


def test_a_damaged_ledger_and_a_forgotten_one(clinic: Cluster) -> None:
    site = clinic.sites["other"]
    site.running.stop()
    ledger = site.home / "ledger.db"
    kept = {path: path.read_bytes() for path in site.home.glob("ledger.db*")}
    ledger.write_bytes(kept[ledger][:4096] + b"\xff" * (len(kept[ledger]) - 4096))
    try:
        assert party(clinic, 1, "other")["ledger"][-1]["verdict"] == "bad"
        for path in kept:
            path.unlink(missing_ok=True)
        found = party(clinic, 1, "other")
        assert "set back" in found["receipts"][0]["found"]
        assert "ledger acknowledge" in found["receipts"][0]["mend"]
    finally:
        for path in site.home.glob("ledger.db*"):
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
            path.chmod(0o600)


def test_what_is_wrong_with_the_curator(clinic: Cluster) -> None:
    kept = Certificates(clinic.folder / "curator")
    ca = Pair(certificates_in(kept.ca, "ca.pem")[0], key_in(kept.ca_key_file.read_text(), "ca.key"))
    old = new_server_certificate(ca, ["127.0.0.1"], utc_now() - timedelta(days=SERVER_DAYS + 2))
    kept.server_file.write_text(old.key_pem + old.certificate_pem)
    kept.ca_key_file.chmod(0o644)
    found = curator(clinic, 1)
    assert "has expired" in found["certificate"][0]["found"]
    assert found["certificate"][1]["mend"] == "`subn-curator certificate renew`"
    assert str(kept.ca_key_file) in found["file modes"][0]["mend"]
    kept.ca_key_file.chmod(0o600)

    def refused() -> bool:
        return party_code(clinic) == 1

    wait(refused, "the server to show the expired certificate", clinic.curator)
    assert "has expired" in party(clinic, 1)["connection"][0]["found"]
    kept.renew()
    wait(lambda: not refused(), "the server to show the renewed certificate", clinic.curator)
    assert "bad" not in verdicts(curator(clinic, 0))


def party_code(home: Cluster) -> int:
    return home.sites["sound"].shell("doctor").returncode


def test_a_curator_that_is_away(clinic: Cluster) -> None:
    clinic.curator.stop()
    found = party(clinic, 1)
    assert "does not answer" in found["connection"][0]["found"]
    assert "let this machine reach 127.0.0.1 port" in found["connection"][0]["mend"]
    assert curator(clinic, 0)["service"][0]["verdict"] == "warn"
    clinic.start_curator()
