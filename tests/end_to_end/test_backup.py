"""Backups of both sides through their commands: taken while they serve, refused where they would make anybody forget.

The protection of the ledger: a party whose ledger was set back serves nothing until what is missing was charged.
"""

import json
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

from protocol.run.manifest import verify_manifest
from tests.end_to_end.cluster import Cluster, Site, cluster, command, wait
from tests.support.postgres import postgres_server

PARTIES = ("Nord", "Süd")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster") as found:
        set_up(found)
        yield found


def set_up(found: Cluster) -> None:
    found.add(*PARTIES)
    found.enrol(*PARTIES)
    found.acquaint(*PARTIES)
    found.serve(*PARTIES)


def emptied(site: Site) -> None:
    """The machine was lost: a new home, with the table where it was."""
    shutil.copy(site.home / "patients.csv", site.home.with_name("table.csv"))
    shutil.rmtree(site.home)
    site.home.mkdir(mode=0o700)
    shutil.move(site.home.with_name("table.csv"), site.home / "patients.csv")


@pytest.mark.exhaustive
def test_a_restored_party_serves_nothing_until_the_missing_charges_are_acknowledged(
    home: Cluster, tmp_path: Path
) -> None:
    site, file = home.sites["Nord"], tmp_path / "nord.backup"
    before = site.cli("backup", file)  # while it serves
    assert site.shell("backup", file).returncode == 2  # never overwritten
    run = home.finished(*PARTIES)
    wait(lambda: site.account()["reserved"] == "0", "the party to settle", site.running)
    assert site.account()["spent"] == "2"

    refused = site.shell("restore", file)
    assert (refused.returncode, "serves this home already" in refused.stderr) == (1, True)
    site.running.stop()
    refused = site.shell("restore", file)
    assert refused.returncode == 1
    assert "knows more than the backup" in refused.stderr
    assert site.account()["spent"] == "2"

    emptied(site)
    assert site.cli("restore", file)["files"] == before["files"]
    assert site.account()["spent"] == "0"
    with_old_ledger = site.shell("serve")  # ends by itself
    assert with_old_ledger.returncode == 3
    assert "subn-party ledger acknowledge" in with_old_ledger.stderr
    waiting = home.begin(*PARTIES)
    assert site.shell("serve").returncode == 3
    assert {one["party"] for one in home.run(waiting)["waiting_for"]} >= {"Nord"}

    charged = site.cli("ledger", "acknowledge")
    assert {one["run"] for one in charged} == {run}
    assert {"spent": "2", "reserved": "0", "left": "99999998"}.items() <= site.account().items()
    home.serve("Nord")
    home.until(waiting, "finished")
    wait(lambda: site.account()["reserved"] == "0", "the party to settle", site.running)
    assert site.account()["spent"] == "4"
    assert site.cli("audit", "verify")["problems"] == []
    told = [entry["event"] for entry in site.cli("audit", "--last", "1000")["entries"]]
    assert told.index("restored") < told.index("rolled back") < told.index("acknowledged")


def test_a_partys_backup_holds_no_row_and_is_its_owners_alone(home: Cluster, tmp_path: Path) -> None:
    """Also in the middle of a run, when the coded rows lie in the home."""
    site, file = home.sites["Nord"], tmp_path / "nord.backup"
    run = home.begin(*PARTIES, update="joint", rounds=3)
    wait(lambda: home.run(run)["step"] not in (None, "joining"), "the run to begin", home.curator)
    site.cli("backup", file)
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        names = {entry.name for entry in archive}
    own = {"party.toml", "schema.json", "ca.pem", "ledger.db", "audit.jsonl", "keys/identity.json", "backup.json"}
    assert names == own
    home.until(run, "finished")


@pytest.mark.exhaustive
def test_a_restored_curator_asks_again_and_nobody_spends_twice(home: Cluster, tmp_path: Path) -> None:
    file, folder = tmp_path / "curator.backup", home.folder / "curator"
    finished = home.finished(*PARTIES)
    run = home.begin(*PARTIES, update="joint", rounds=3)
    wait(lambda: home.run(run)["step"] not in (None, "joining"), "the run to begin", home.curator)
    home.sites["Süd"].running.send(signal.SIGSTOP)  # so that the run is not over when the backup is made
    made = command("subn-curator", "backup", "--home", folder, file, "--json")
    assert made.returncode == 0, made.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    expected = {"curator.db", "keys/master.key", "tls/ca.pem", f"runs/{finished}/table.csv"}
    assert expected <= json.loads(made.stdout)["files"].keys()
    assert home.run(run)["state"] == "running"
    home.sites["Süd"].running.send(signal.SIGCONT)
    home.until(run, "finished")
    table = home.get(run, "table.csv")

    refused = command("subn-curator", "restore", "--home", folder, file)
    assert (refused.returncode, "serves this database already" in refused.stderr) == (2, True)
    home.curator.stop()
    refused = command("subn-curator", "restore", "--home", folder, file)
    assert (refused.returncode, "knows more than the backup (events)" in refused.stderr) == (2, True)

    shutil.rmtree(folder)
    restored = command("subn-curator", "restore", "--home", folder, file)
    assert restored.returncode == 0, restored.stderr
    home.start_curator()
    home.until(run, "finished")
    assert home.get(run, "table.csv") == table  # from the same answers and the same seed
    manifest = verify_manifest(home.get(run, "manifest.json"), {"table.csv": sha256(table).hexdigest()})
    assert {record.spent for record in manifest.parties} == {2}
    for site in home.sites.values():
        wait(lambda site=site: site.account()["reserved"] == "0", "the party to settle", site.running)
        assert site.account()["spent"] == "4"
    home.finished(*PARTIES)


def test_a_curator_on_postgresql_is_backed_up_with_pg_dump(tmp_path: Path) -> None:
    """As docs/operating.md says: the database with its own tool first, then keys and results."""
    programs = Path(str(find_spec("pgserver").origin)).parent / "pginstall" / "bin"  # type: ignore[union-attr]
    dump, file, folder = tmp_path / "curator.dump", tmp_path / "curator.backup", tmp_path / "cluster/curator"
    with (
        postgres_server() as url,
        cluster(tmp_path / "cluster", env={"SUBN_CURATOR_DATABASE_URL": url}) as home,
    ):
        set_up(home)
        run = home.finished(*PARTIES)
        _run(programs / "pg_dump", "--format=custom", f"--file={dump}", url)
        made = command("subn-curator", "backup", "--home", folder, file, "--json", env=home.env)
        assert json.loads(made.stdout)["database"] == "elsewhere"
        table = home.get(run, "table.csv")
        home.finished(*PARTIES)
        home.curator.stop()
        shutil.rmtree(folder)
        _run(programs / "pg_restore", "--clean", "--if-exists", "--single-transaction", f"--dbname={url}", dump)
        lost = command("subn-curator", "restore", "--home", folder, file)
        assert (lost.returncode, "SUBN_CURATOR_DATABASE_URL" in lost.stderr) == (2, True)
        restored = command("subn-curator", "restore", "--home", folder, file, env=home.env)
        assert restored.returncode == 0, restored.stderr
        home.start_curator()
        assert home.get(run, "table.csv") == table
        home.finished(*PARTIES)


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
