"""What a backup must not do: forget, overwrite, escape its folder, or come back damaged."""

import io
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import threading
from contextlib import closing
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest

from crypto.randomness import Stream
from curator.errors import SettingsError as CuratorSettingsError
from curator.home import backup as curators
from curator.home.keys import CuratorKeys
from curator.settings import Settings
from curator.store.store import Store
from party.books.audit import Audit, entries, tampering
from party.books.ledger import Ledger
from party.books.reconciliation import forgotten, unlogged
from party.errors import LedgerError, SettingsError, Unreadable
from party.home import backup, keys
from party.home.layout import Home
from protocol.exact import canonical_json
from tests.support.curator import Desk
from tests.support.party import account

TOML = """
[datasets.patients]
source = "patients.csv"
schema = "sub/schema.json"
epsilon_total = "4"

[policy]
epsilon_per_run = "1"
"""


def ask(home: Home, run: str) -> None:
    ledger = Ledger.open(home.ledger)
    ledger.ask(
        run,
        plan_hash=run * 8,
        dataset="patients",
        plan="{}",
        schema_text="",
        price=Fraction(1),
        verdict="ask",
        reasons=[],
    )
    ledger.close()


def known(home: Home) -> list[str]:
    ledger = Ledger.open(home.ledger)
    found = [request.run for request in ledger.requests()]
    ledger.close()
    return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    (found.path / "sub").mkdir(parents=True)
    (found.path / "sub/schema.json").write_text("{}")
    (found.path / "patients.csv").write_text("a row of a person")
    found.settings.write_text(TOML)
    keys.make(found.keys)
    Audit(found.audit).append("made", fingerprint="x")
    ask(found, "run-1")
    return found


@pytest.fixture
def file(home: Home, tmp_path: Path) -> Path:
    backup.make(home, tmp_path / "backup")
    return tmp_path / "backup"


# A party's


def test_a_backup_comes_back_whole_into_a_new_home(home, file, tmp_path):
    new = Home(tmp_path / "new")
    backup.restore(new, file)
    assert keys.load(new.keys).identity.signing.public == keys.load(home.keys).identity.signing.public
    assert new.settings.read_text() == TOML
    assert (new.path / "sub/schema.json").exists()
    assert not (new.path / "patients.csv").exists()
    assert known(new) == ["run-1"]
    assert [entry["event"] for entry in entries(new.audit)] == ["made", "restored"]
    assert {one.stat().st_mode & 0o77 for one in new.path.rglob("*") if one.is_file()} == {0}
    assert sorted(one.name for one in new.path.iterdir() if one.name.startswith(".")) == []


def test_it_comes_back_again_onto_what_it_brought_back(home, file):
    backup.restore(home, file)
    with pytest.raises(LedgerError, match="knows more than the backup"):
        backup.restore(home, file)  # its log tells of the restore


@pytest.mark.parametrize("what", ["a request", "a line of the log"])
def test_a_home_that_knows_more_is_left_alone(home, file, what):
    if what == "a request":
        ask(home, "run-2")
    else:
        Audit(home.audit).append("decided", run="run-1", decision="refuse", reason="", by="test")
    before, log = known(home), home.audit.read_bytes()
    with pytest.raises(LedgerError, match="knows more than the backup"):
        backup.restore(home, file)
    assert (known(home), home.audit.read_bytes()) == (before, log)


def test_a_backup_that_is_made_while_lines_are_written_is_consistent(home, tmp_path):
    """Ledger and log are two files; each tells how far the other must have come."""
    ledger = Ledger.open(home.ledger)
    log = Audit(home.audit, heads=ledger)
    ledger.decide("run-1", True)
    ledger.reserve("run-1", account(Fraction(1)))
    is_over = threading.Event()

    def answer() -> None:
        for number in range(10_000):
            if is_over.is_set():
                return
            step, charge = f"update/{number}", Fraction(1, 10_000)
            what = {"mechanism": "count", "request_digest": "q", "kept": b"k"}
            ledger.record("run-1", step, charge=charge, reply=step.encode(), **what)
            reply = sha256(step.encode()).hexdigest()
            told = {"mechanism": "count", "charge": str(charge), "request": "q", "bytes": 5}
            log.append("answered", run="run-1", step=step, reply=reply, **told)

    writer = threading.Thread(target=answer)
    writer.start()
    try:
        for number in range(10):
            backup.make(home, tmp_path / f"copy-{number}")
    finally:
        is_over.set()
        writer.join()
        ledger.close()
    for number in range(10):
        new = Home(tmp_path / f"new-{number}")
        backup.restore(new, tmp_path / f"copy-{number}")
        copy = Ledger.open(new.ledger)
        assert tampering(new.audit, copy.log_head()) == []
        assert forgotten(new.audit, copy.entries()) == []
        assert len(unlogged(new.audit, copy.entries())) <= 1
        copy.close()
    assert len(list(entries(new.audit))) > len(list(entries(Home(tmp_path / "new-0").audit)))


def test_rules_and_a_longer_log_stay_when_a_lost_ledger_comes_back(home, file):
    home.settings.write_text(TOML.replace('"4"', '"5"'))
    Audit(home.audit).append("decided", run="run-1", decision="refuse", reason="", by="test")
    home.ledger.write_bytes(b"damaged" * 1000)
    for rest in ("-wal", "-shm"):
        home.ledger.with_name("ledger.db" + rest).unlink(missing_ok=True)
    with pytest.raises(LedgerError, match=r"cannot be compared with the backup .* move it away"):
        backup.restore(home, file)
    home.ledger.unlink()
    backup.restore(home, file)
    assert '"5"' in home.settings.read_text()
    assert [entry["event"] for entry in entries(home.audit)] == ["made", "decided", "restored"]


def test_another_partys_home_is_refused(home, file, tmp_path):
    shutil.rmtree(home.keys)
    keys.make(home.keys)
    with pytest.raises(SettingsError, match="other keys than the backup"):
        backup.restore(home, file)


def test_a_file_that_is_no_whole_backup_is_refused(home, file, tmp_path):
    new = Home(tmp_path / "new")
    for number, data in enumerate((b"", b"no archive", file.read_bytes()[:-200])):
        broken = tmp_path / f"broken{number}"
        broken.write_bytes(data)
        with pytest.raises(Unreadable, match="nothing was restored"):
            backup.restore(new, broken)
    for change in (
        lambda members: members.update({"ledger.db": b"other"}),
        lambda members: members.update({"backup.json": members["backup.json"].replace(b"party", b"curator")}),
        lambda members: members.pop("keys/identity.json"),
    ):
        with pytest.raises(Unreadable, match="nothing was restored"):
            backup.restore(new, rewritten(file, tmp_path / "changed", change))
    assert not new.ledger.exists()


def hostile(home: Home, file: Path, *names: str) -> Path:
    """A backup whose list of contents fits these further files."""
    data = {"ledger.db": home.ledger.read_bytes()} | dict.fromkeys(names, b"x")
    files = {name: sha256(content).hexdigest() for name, content in data.items()}
    contents = {"kind": "dp-subn party", "version": 1, "made": "", "party": None, "files": files}
    return written(file, data | {"backup.json": canonical_json(contents)})


def test_no_file_outside_the_home_is_written(home, tmp_path):
    """A backup is only as honest as who had it."""
    outside = tmp_path / "outside"
    for name in ("../outside", str(outside)):
        with pytest.raises(Unreadable, match="outside the home"):
            backup.restore(Home(tmp_path / "new"), hostile(home, tmp_path / "evil", name))
        assert not outside.exists()


@pytest.mark.parametrize("names", [(".",), ("keys", "keys/identity.json"), ("ledger.db/x",)])
def test_a_name_that_can_be_no_file_is_refused(home, tmp_path, names):
    with pytest.raises(Unreadable, match="can be no file: nothing was restored"):
        backup.restore(Home(tmp_path / "new"), hostile(home, tmp_path / "evil", *names))
    assert not Home(tmp_path / "new").ledger.exists()
    assert not Home(tmp_path / "new").draft.exists()


def test_a_link_in_a_backup_is_refused_and_makes_none(home, tmp_path):
    with tarfile.open(tmp_path / "evil", "w:gz") as archive:
        link = tarfile.TarInfo("keys")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
    with pytest.raises(Unreadable, match="no backup of a party"):
        backup.restore(Home(tmp_path / "new"), tmp_path / "evil")
    assert not (tmp_path / "new" / "keys").exists()


# A curator's


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path / "curator")
    found.run("first", noise="distributed")
    yield found
    found.store.close()


def test_a_curators_home_comes_back(desk, tmp_path):
    file = tmp_path / "backup"
    curators.make(desk.settings, file)
    with pytest.raises(CuratorSettingsError, match="never overwritten"):
        curators.make(desk.settings, file)
    new = Settings(home=tmp_path / "new")
    curators.restore(new, file)
    assert CuratorKeys.load(new.home).fingerprint == desk.keys.fingerprint
    store = Store.open(new.store_url)
    with store.reading() as db:
        from curator.store.run_records import active_runs

        assert len(active_runs(db)) == 1
    store.close()
    curators.restore(new, file)  # onto itself
    assert sorted(one.name for one in new.home.iterdir() if one.name.startswith(".")) == []


def test_a_curators_home_that_knows_more_is_left_alone(desk, tmp_path):
    file = tmp_path / "backup"
    curators.make(desk.settings, file)
    code, _ = desk.orchestrator.registry.new_code("late", Stream.keyed(b"late"))
    assert code
    with pytest.raises(CuratorSettingsError, match=r"knows more than the backup \(codes\)"):
        curators.restore(desk.settings, file)


def test_another_curators_home_is_refused(desk, tmp_path):
    file = tmp_path / "backup"
    curators.make(desk.settings, file)
    CuratorKeys.create(tmp_path / "other", Stream.keyed(b"other"))
    with pytest.raises(CuratorSettingsError, match="belongs to another curator"):
        curators.restore(Settings(home=tmp_path / "other"), file)


def test_a_file_that_is_no_whole_curators_backup_is_refused(desk, tmp_path):
    file, new = tmp_path / "backup", Settings(home=tmp_path / "new")
    curators.make(desk.settings, file)
    for number, data in enumerate((b"", b"no archive", file.read_bytes()[:-200])):
        broken = tmp_path / f"broken{number}"
        broken.write_bytes(data)
        with pytest.raises(CuratorSettingsError, match="nothing was restored"):
            curators.restore(new, broken)
    for change in (
        lambda members: members.update({"keys/master.key": b"00" * 32}),
        lambda members: members.update({"backup.json": members["backup.json"].replace(b'"version":1', b'"version":9')}),
        lambda members: members.update({"../outside": b"x"}),
    ):
        with pytest.raises(CuratorSettingsError, match="nothing was restored"):
            curators.restore(new, rewritten(file, tmp_path / "changed", change))
    assert not (tmp_path / "outside").exists()


def rewritten(file: Path, to: Path, change) -> Path:
    with tarfile.open(file) as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive}
    change(members)
    return written(to, members)


def written(to: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(to, "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return to


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of every file and folder; a new file changes its folder."""
    return {
        str(one): (one.stat().st_size, one.stat().st_mtime_ns)
        for one in (folder, *folder.rglob("*"))
        if not one.name.endswith("-shm")  # is shared memory, and as long as the service has made it
    }


def test_a_kill_at_no_moment_leaves_the_secrets_of_a_run_beside_the_backup(home: Home, tmp_path: Path) -> None:
    """Looked for after every call of the program and of SQLite: the copy and its stripping are two of them."""
    secret, beside = b"opens the masks of run-1", tmp_path / "elsewhere"
    beside.mkdir()
    with closing(sqlite3.connect(home.ledger)) as db, db:
        db.execute("UPDATE requests SET kept = ?", (secret,))
    moments, found = 0, set()

    def look(_frame: object, event: str, _what: object) -> None:
        nonlocal moments
        if event == "c_return":
            moments += 1
            files = [one for one in beside.rglob("*") if one.is_file()]
            found.update(one.name for one in files if secret in one.read_bytes())

    sys.setprofile(look)
    try:
        backup.make(home, beside / "copy")
    finally:
        sys.setprofile(None)
    assert moments > 100
    assert found == set()
    assert [one.name for one in beside.iterdir()] == ["copy"]
    with tarfile.open(beside / "copy") as archive:
        assert secret not in archive.extractfile("ledger.db").read()


def test_a_curators_backup_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    with pytest.raises(CuratorSettingsError, match=r"there is no file .*nowhere: name the backup"):
        curators.restore(settings, tmp_path / "nowhere")
    assert not settings.home.exists()


def test_what_a_killed_restore_left_is_gone_after_the_next(home: Home, file: Path, tmp_path: Path) -> None:
    new = Home(tmp_path / "new")
    new.draft.mkdir(parents=True)
    (new.draft / "ledger.db").write_bytes(b"of a restore that was killed")
    backup.restore(new, file)
    assert not new.draft.exists()


def test_a_home_without_room_is_backed_up_elsewhere(home: Home, desk: Desk, tmp_path: Path) -> None:
    """A backup writes nothing into a home that is being served, not even for a moment."""
    with closing(Ledger.open(home.ledger)) as ledger:
        assert ledger.requests()
        before = everything_in(home.path), everything_in(desk.settings.home)
        backup.make(home, tmp_path / "a party's")
        curators.make(desk.settings, tmp_path / "a curator's")
        assert (everything_in(home.path), everything_in(desk.settings.home)) == before


def test_a_home_without_room_for_shared_memory_is_backed_up_too(home: Home, desk: Desk, tmp_path: Path) -> None:
    """SQLite needs 32 KiB beside a database that nobody serves; here a link that leads nowhere takes their place."""
    desk.store.close()
    for database in (home.ledger, desk.settings.home / "curator.db"):
        Path(f"{database}-shm").symlink_to(tmp_path / "nowhere" / "shm")
        with closing(sqlite3.connect(database)) as db, pytest.raises(sqlite3.OperationalError):
            db.execute("SELECT * FROM sqlite_master")
    backup.make(home, tmp_path / "a party's")
    curators.make(desk.settings, tmp_path / "a curator's")
    backup.restore(Home(tmp_path / "new"), tmp_path / "a party's")
    assert known(Home(tmp_path / "new")) == ["run-1"]


@pytest.mark.parametrize(("program", "most"), [("subn-party", 1), ("subn-curator", 8)])
def test_without_room_a_backup_says_so_and_leaves_nothing(tmp_path: Path, program: str, most: int) -> None:
    """No file may grow beyond so many KiB here, as on a full disk."""
    home, target = tmp_path / "home", tmp_path / "elsewhere"
    target.mkdir()
    scripts = Path(sysconfig.get_path("scripts"))
    made = subprocess.run([scripts / program, "init", "--home", home], capture_output=True, check=True)
    assert made.returncode == 0
    if program == "subn-party":
        Ledger.open(home / "ledger.db").close()
    line = f"ulimit -f {most}; exec {scripts / program} backup {target / 'copy'} --home {home}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"cannot be copied to {target}" in done.stderr
    assert "make room there and try again" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(target.iterdir()) == []
