"""Runs that do not come to a result, and parties that may not take part: who is named, why, and what it has cost."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from protocol.messages.pins import joined, parted
from tests.end_to_end.cluster import RULES, Cluster, Missed, Site, command, wait
from tests.end_to_end.conftest import PARTIES

FIRST, SECOND = PARTIES[:2]


def asked(site: Site, run: str) -> Any:
    """The request, once it waits for the data owner."""

    def found() -> Any:
        return next((one for one in site.cli("requests") if one["run"] == run and one["state"] == "asked"), None)

    return wait(found, f"{site.name} to be asked", site.running)


def settled(site: Site, run: str) -> Any:
    def found() -> Any:
        return next(
            (one for one in site.cli("requests", "--all") if one["run"] == run and one["state"] == "ended"), None
        )

    return wait(found, f"{site.name} to settle {run}", site.running)


def waited_for(home: Cluster, run: str, party: str) -> dict[str, Any]:
    """The run, once it waits for this party alone."""

    def found() -> Any:
        seen = home.run(run)
        return seen if [one["party"] for one in seen["waiting_for"]] == [party] else None

    seen: dict[str, Any] = wait(found, f"everybody but {party}")
    return seen


# Refused


def test_a_party_refuses_what_its_rules_do_not_allow(home: Cluster, strict: str) -> None:
    spent = home.sites[strict].account()["spent"]
    run = home.begin(FIRST, strict, method="dp-ccbn", epsilon="0.5")
    ended = home.until(run, "refused")
    assert ended["culprit"] == strict
    assert ended["reason"] == "the method is dp-ccbn, allowed are guided"
    assert home.subn("wait", run).returncode == 3
    assert home.sites[strict].account()["spent"] == spent
    assert settled(home.sites[FIRST], run)["spent"] == "0"


def test_a_party_refuses_what_it_cannot_pay(home: Cluster, strict: str) -> None:
    spent = home.sites[strict].account()["spent"]
    too_much = home.until(home.begin(FIRST, strict, epsilon="2.5"), "refused")
    assert too_much["reason"].endswith("one run may cost 2")
    home.finished(FIRST, strict, epsilon="2")
    account = home.sites[strict].account()
    assert (spent, account["spent"]) == ("0", "2")
    ended = home.until(home.begin(FIRST, strict, epsilon="2"), "refused")
    assert ended["culprit"] == strict
    assert "only 1 is left of 3" in ended["reason"]


def test_the_data_owner_has_the_word(home: Cluster, asking: str) -> None:
    site = home.sites[asking]
    refused, accepted = home.begin(FIRST, asking), home.begin(SECOND, asking)
    for run in (refused, accepted):
        request = asked(site, run)
        assert request["reasons"] == ["every run is accepted by hand"]
    waiting = waited_for(home, accepted, asking)
    assert waiting["waiting_for"][0]["last_seen"] is not None
    said = site.shell("refuse", refused, "--reason", "not before the ethics board has met")
    assert said.returncode == 0, said.stderr
    assert site.shell("accept", accepted).returncode == 0
    ended = home.until(refused, "refused")
    assert ended["culprit"] == asking
    assert "not before the ethics board has met" in ended["reason"]
    home.until(accepted, "finished")
    assert site.account()["spent"] == "2"


def test_a_stranger_has_to_be_trusted_first(home: Cluster) -> None:
    home.add("stranger")
    home.enrol("stranger")
    site = home.sites["stranger"]
    told = site.shell("peers")
    assert home.sites[FIRST].fingerprint in told.stdout
    wrong = site.shell("trust", FIRST, home.sites[SECOND].fingerprint)
    assert wrong.returncode == 3
    right = site.shell("trust", FIRST, home.sites[FIRST].fingerprint)
    assert right.returncode == 0, right.stderr
    home.serve("stranger")
    run = home.begin(FIRST, "stranger")
    request = asked(home.sites[FIRST], run)
    assert request["reasons"] == [
        f"compare the fingerprint of stranger with its data owner: {site.fingerprint}",
    ]
    home.sites[FIRST].cli("accept", run)
    home.until(run, "finished")


# Cancelled, late


def test_a_run_is_cancelled_while_it_waits_for_a_party(home: Cluster) -> None:
    """A party stops answering, so that the run waits, says for whom, and can be cancelled."""
    site = home.sites[PARTIES[3]]
    site.running.send(signal.SIGSTOP)
    try:
        run = home.begin(FIRST, SECOND, site.name)
        waiting = waited_for(home, run, site.name)
        assert (waiting["state"], waiting["step"]) == ("joining", "joining")
        assert waiting["deadline"] is not None
        late = home.subn("wait", run, "--timeout", "0.3")
        assert (late.returncode, "still joining" in late.stderr) == (4, True)
        cancelled = home.subn("cancel", run, "--reason", "a mistake in the plan", "--json")
        assert cancelled.returncode == 0, cancelled.stderr
        assert json.loads(cancelled.stdout)["culprit"] == "operator"
    finally:
        site.running.send(signal.SIGCONT)
    ended = home.subn("wait", run, "--json")
    assert ended.returncode == 3
    assert json.loads(ended.stdout)["reason"] == "a mistake in the plan"
    for name in (FIRST, SECOND):
        request = settled(home.sites[name], run)
        assert (request["outcome"], request["reserved"]) == ("cancelled", "0")
    assert home.http.post(f"/v1/runs/{run}/cancel", json={}).status_code == 409
    assert home.http.get(f"/v1/runs/{run}/table.csv").status_code == 409


def test_a_run_that_is_not_answered_in_time_ends(home: Cluster) -> None:
    site = home.sites[PARTIES[3]]
    site.running.send(signal.SIGSTOP)
    try:
        run = home.begin(FIRST, site.name, join_seconds=6)
        ended = home.until(run, "timed_out")
    finally:
        site.running.send(signal.SIGCONT)
    assert ended["culprit"] == site.name
    assert ended["reason"] == f"no answer to 'joining' before its deadline from {site.name}"
    assert home.subn("wait", run).returncode == 4
    home.finished(FIRST, site.name)


def test_exit_codes_of_wait(home: Cluster) -> None:
    run = home.finished(FIRST, SECOND)
    assert home.subn("wait", run).returncode == 0
    assert home.subn("wait", "no-such-run").returncode == 2
    nobody = command(
        "subn", "wait", run, "--timeout", "0.2", "--url", "http://127.0.0.1:9", "--key-file", home.key_file
    )
    assert nobody.returncode == 1


# Who may take part


def test_codes_serve_once_and_one_name(home: Cluster) -> None:
    home.add("newcomer", "copycat")
    newcomer, copycat = home.sites["newcomer"], home.sites["copycat"]
    code = home.code("newcomer")

    def enrol(site: Site, code: str, name: str) -> tuple[int, str]:
        done = site.shell("enrol", "--curator", home.url, "--code", code, "--name", name)
        return done.returncode, done.stderr

    assert enrol(newcomer, joined("0" * 30, parted(code)[1]), "newcomer")[0] == 3
    assert enrol(copycat, code, "copycat")[0] == 3  # a code for another name
    assert enrol(newcomer, code, "newcomer") == (0, "")
    returned, complaint = enrol(copycat, code, "newcomer")
    assert returned == 3
    assert "used" in complaint or "taken" in complaint
    again = home.http.post("/v1/parties/codes", json={"name": "newcomer"})
    assert again.status_code == 409
    assert "newcomer" in again.json()["detail"]
    assert enrol(newcomer, code, "newcomer") == (0, "")  # enrolled before: nothing is done
    returned, complaint = enrol(newcomer, code, "another")
    assert returned == 2
    assert "enrolled at" in complaint
    names = [party["name"] for party in home.http.get("/v1/parties").json()["items"]]
    assert names.count("newcomer") == 1
    assert "copycat" not in names


def test_enrolment_stops_at_another_curator_than_the_expected(home: Cluster) -> None:
    home.add("careful")
    site = home.sites["careful"]
    code = home.code("careful")
    wrong = site.shell("enrol", "--curator", home.url, "--code", joined(parted(code)[0], "0" * 32), "--name", "careful")
    assert wrong.returncode == 3
    assert "is not the curator that your code was made by" in wrong.stderr
    assert "[curator]" not in (site.home / "party.toml").read_text()


def test_a_revoked_party_is_out_and_its_run_fails(home: Cluster) -> None:
    home.add("leaver")
    home.acquaint("leaver", *PARTIES)
    home.enrol("leaver")
    home.serve("leaver")
    site, waiting = home.sites["leaver"], home.sites[PARTIES[3]]
    waiting.running.send(signal.SIGSTOP)
    try:
        run = home.begin("leaver", waiting.name)
        waited_for(home, run, waiting.name)
        assert home.subn("parties", "revoke", "leaver").returncode == 0
    finally:
        waiting.running.send(signal.SIGCONT)
    ended = home.until(run, "failed")
    assert (ended["culprit"], ended["reason"]) == ("leaver", "leaver was revoked by the operator")
    assert home.subn("wait", run).returncode == 1
    refused = home.http.post("/v1/plans", json=home.body("leaver", FIRST))
    assert refused.status_code == 422
    assert "leaver" in refused.json()["detail"]
    told = site.shell("peers")
    assert told.returncode == 3
    assert "revoked by the operator" in told.stderr
    site.running.stop()


def test_a_party_with_new_keys_is_compared_anew(home: Cluster, tmp_path: Path) -> None:
    home.add("rotates", "partner")
    home.acquaint("rotates", "partner")
    home.enrol("rotates", "partner")
    home.serve("rotates", "partner")
    rotates, partner = home.sites["rotates"], home.sites["partner"]
    first = home.finished("rotates", "partner")
    under_way = rotates.shell("rotate")
    assert (under_way.returncode, "serves this home already" in under_way.stderr) == (1, True)
    settled(rotates, first)
    rotates.running.stop()
    old, former = rotates.signing.public, rotates.fingerprint
    rotates.fingerprint = rotates.cli("rotate")["fingerprint"]
    assert rotates.signing.public != old
    home.serve("rotates")
    ended = home.until(home.begin("rotates", "partner"), "refused")
    assert ended["culprit"] == "partner"
    assert f"rotates has the fingerprint {rotates.fingerprint}, you have noted {former}" in ended["reason"]
    partner.running.stop()
    settings = partner.home / "party.toml"
    settings.write_text(settings.read_text().replace(former, rotates.fingerprint))
    home.serve("partner")
    home.finished("rotates", "partner")


# Found before anything is spent


def test_a_schema_that_does_not_fit_the_data_is_found_first(home: Cluster) -> None:
    home.add("misfit")
    site = home.sites["misfit"]
    home.acquaint("misfit", *PARTIES)
    table = site.home / "patients.csv"
    good = table.read_text()
    table.write_text(good.replace("clerk", "astronaut"))
    checked = site.shell("check")
    assert checked.returncode == 2
    assert "patients: 60 rows DO NOT FIT" in checked.stdout
    assert f"{good.count('clerk')} times in work" in checked.stdout
    site.cli("enrol", "--curator", home.url, "--code", home.code("misfit"), "--name", "misfit")
    offered = site.shell("offer")
    assert offered.returncode == 2
    table.write_text(good)
    site.cli("offer")
    table.write_text(good.replace("clerk", "astronaut"))
    home.serve("misfit")
    ended = home.until(home.begin(PARTIES[2], "misfit"), "refused")
    assert ended["culprit"] == "misfit"
    assert "cannot be read under this schema" in ended["reason"]
    assert "astronaut" not in ended["reason"]
    assert site.cli("ledger")["accounts"]["patients"] == {
        "account": "patients",
        "datasets": ["patients"],
        "before": "0",
        "delta_before": "0",
        "total": "100000000",
        "spent": "0",
        "reserved": "0",
        "left": "100000000",
        "delta_total": "1/2",
        "delta_spent": "0",
        "delta_reserved": "0",
        "delta_left": "1/2",
    }


def test_a_table_that_has_changed_since_the_offer_is_found_first(home: Cluster) -> None:
    home.add("grows")
    site = home.sites["grows"]
    home.acquaint("grows", *PARTIES)
    home.enrol("grows")
    table = site.home / "patients.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, lines[-1]]) + "\n")
    home.serve("grows")
    ended = home.until(home.begin(PARTIES[2], "grows"), "refused")
    assert ended["reason"].startswith("grows holds 61 rows, the plan says 60: offer the data set again")
    assert site.account()["spent"] == "0"


# Ports


def test_a_port_in_use_is_said(home: Cluster, tmp_path: Path) -> None:
    port = home.url.rpartition(":")[2]
    second = command("subn-curator", "serve", "--home", home.folder / "curator", "--port", port)
    assert second.returncode == 2
    assert f"127.0.0.1:{port} is in use" in second.stderr
    home.add("crowded", rules=RULES)
    home.enrol("crowded")
    settings = home.sites["crowded"].home / "party.toml"
    settings.write_text(settings.read_text().replace("port = 0", f"port = {port}"))
    done = home.sites["crowded"].shell("serve")
    assert done.returncode == 2
    assert f"the service cannot listen at 127.0.0.1:{port}" in done.stderr


def test_one_process_serves_a_home(home: Cluster) -> None:
    done = home.sites[FIRST].shell("serve")
    assert done.returncode == 1
    assert "serves this home already" in done.stderr


def test_what_never_comes_is_missed_with_the_logs(home: Cluster) -> None:
    """The tests' own waiting: it ends, and shows why."""
    with pytest.raises(Missed, match=r"(?s)a miracle.*curator \(exit code None\)"):
        wait(lambda: False, "a miracle", home.curator, patience=0.1)
