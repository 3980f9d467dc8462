"""Backup of a party's home in one file, which can be made while the party serves, and its restoration.

It does not know the curator. No row of any table is in a backup: neither sources nor the coded rows of active runs.
The secrets behind the masks of active runs are left out too: a party that is restored in mid-run cannot go on with it.

A restored backup may be older than the last answers. It is refused on a home that knows more, and a service that
starts on an older ledger stops until the missing answers have been charged (`party.rollback.check_not_rolled_back`).
"""

import errno
import gzip
import os
import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from party.books.audit import Audit
from party.books.ledger import Entry, Ledger, Request
from party.errors import DiskFull, LedgerError, SettingsError, Unreadable
from party.files import sync_folder, whole_file, write_file
from party.home import keys, settings
from party.home.layout import SETTINGS_FILE, Home
from party.home.lock import served_alone
from party.logs import utc_now
from protocol.exact import canonical_json
from protocol.outside_json import read_json

CONTENTS = "backup.json"
_KIND, _VERSION = "dp-subn party", 1
_SECRET_MODE = 0o600
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
_WAY_OUT = (
    "If its ledger is damaged, move it away (ledger.db, ledger.db-wal, ledger.db-shm), restore again, and charge what "
    "is missing with `subn-party ledger acknowledge`"
)
_NO_SHARED_MEMORY = ("SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")


def make(home: Home, file: Path) -> dict[str, Any]:
    """Write a backup and return its contents. The file appears whole or not at all, readable by its owner alone."""
    if file.exists():
        raise SettingsError(f"{file} exists: backups are never overwritten; name a new file")
    found = settings.load(home)
    members = {SETTINGS_FILE: home.settings.read_bytes()}
    members |= {f"{home.keys.name}/{one.name}": one.read_bytes() for one in home.keys.glob("*.json")}
    kept = [*_schemas(home, found), *([home.ca.name] if home.ca.exists() else [])]
    members |= {name: (home.path / name).read_bytes() for name in kept}
    # No line may be added between the two copies: the ledger tells how long the log is, and the log which answers the
    # ledger has. Entries that only the ledger has are logged when the service starts.
    with Audit(home.audit).locked():
        members[home.audit.name] = _whole_lines(home.audit)
        members[home.ledger.name] = _ledger_without_secrets(home.ledger)
    contents = {
        "kind": _KIND,
        "version": _VERSION,
        "made": utc_now(),
        "party": found.curator.name if found.curator else None,
        "files": {name: sha256(data).hexdigest() for name, data in members.items()},
    }
    _write(file, members | {CONTENTS: canonical_json(contents)})
    return contents


def restore(home: Home, file: Path) -> dict[str, Any]:
    """Restore a backup into a new home, or into one that knows nothing more; return its contents.

    Retry safety: the ledger comes last, so that an interrupted restore can be repeated.
    """
    contents, members = _read(file)
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with served_alone(home.lock), _draft(home) as work:
        for name, data in members.items():
            _place(work, name, data)
        _refuse_newer(home, Home(work))
        for name in members.keys() - {home.ledger.name, *_newer_files(home, Home(work), members)}:
            (home.path / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.replace(work / name, home.path / name)
        for rest in ("-wal", "-shm"):
            home.ledger.with_name(home.ledger.name + rest).unlink(missing_ok=True)
        os.replace(work / home.ledger.name, home.ledger)
        shutil.rmtree(home.rows, ignore_errors=True)
        sync_folder(home.path)
    with closing(Ledger.open(home.ledger)) as ledger:
        Audit(home.audit, heads=ledger).append("restored", made=str(contents["made"]), digest=_digest_of(file))
    return contents


@contextmanager
def _draft(home: Home) -> Iterator[Path]:
    """A folder in the home for files that are not restored yet; what a kill left of an earlier draft goes first."""
    remove_draft(home)
    home.draft.mkdir(mode=0o700)
    try:
        yield home.draft
    finally:
        remove_draft(home)


def remove_draft(home: Home) -> None:
    """Remove what a restore that was killed has left: keys and a ledger."""
    shutil.rmtree(home.draft, ignore_errors=True)


def _refuse_newer(home: Home, copy: Home) -> None:
    """Refuse to replace a home that knows more than the copy.

    Privacy: every answer in a ledger was spent, so a copy that lacks one must not take the ledger's place.
    """
    with closing(Ledger.open(copy.ledger)) as ledger:  # refuses a ledger of a later version, or a damaged one
        known = {(entry.plan_hash, entry.step, entry.reply_digest) for entry in ledger.entries()}
        asked = {request.run for request in ledger.requests()}
    if (home.keys / keys.CURRENT).exists():
        own, theirs = keys.load(home.keys), keys.load(copy.keys)
        if own.identity.signing.public != theirs.identity.signing.public:
            raise SettingsError(
                f"{home.keys} holds other keys than the backup: it is another party's, or older than the last "
                "rotation; restore into a new home"
            )
    if home.ledger.exists():
        entries, requests = _known(home)
        more = sum((one.plan_hash, one.step, one.reply_digest) not in known for one in entries)
        more += sum(request.run not in asked for request in requests)
        if more or not _whole_lines(copy.audit).startswith(_whole_lines(home.audit)):
            raise LedgerError(
                f"{home.path} knows more than the backup ({more} answers and requests, and what its log tells): "
                f"nothing was restored. {_WAY_OUT}"
            )


def _known(home: Home) -> tuple[list[Entry], list[Request]]:
    try:
        with closing(Ledger.open(home.ledger)) as ledger:
            return ledger.entries(), ledger.requests()
    except Unreadable as error:
        raise LedgerError(f"what this home knows cannot be compared with the backup ({error}). {_WAY_OUT}") from error


def _newer_files(home: Home, copy: Home, names: Iterable[str]) -> set[str]:
    """Names of files to keep: existing rules, keys and schemas, and a log that continues the backup's log."""
    kept = {name for name in names if name != home.audit.name and (home.path / name).exists()}
    goes_on = _whole_lines(home.audit).startswith(_whole_lines(copy.audit))
    return kept | ({home.audit.name} if goes_on and home.audit.exists() else set())


def _schemas(home: Home, found: settings.Settings) -> list[str]:
    """Names of the schema files inside the home; files elsewhere are not backed up."""
    names = {one.schema_file for one in found.datasets.values()}
    inside = [name for name in sorted(names) if (home.path / name).resolve().is_relative_to(home.path.resolve())]
    return [name for name in inside if (home.path / name).is_file()]


def _ledger_without_secrets(path: Path) -> bytes:
    """Return the ledger as it is at one moment, even while another process writes to it.

    Privacy: the secrets behind the masks of active runs are left out; without the rows, nobody could go on with them.
    The copy is made in memory, so that no disk holds them beside the home's, not even after a kill.
    """
    if not path.exists():
        Ledger.open(path).close()
    try:
        with closing(sqlite3.connect(":memory:")) as target:
            _copy_at_one_moment(path, target)
            target.execute("PRAGMA temp_store = MEMORY")
            with target:
                target.execute("UPDATE requests SET kept = NULL")
            target.execute("VACUUM")  # nor are they in pages that are free
            return target.serialize()
    except sqlite3.Error as error:
        raise LedgerError(
            f"{path} cannot be copied ({error}): nothing was written; `subn-party doctor` looks"
        ) from error


def _copy_at_one_moment(path: Path, target: sqlite3.Connection, locking: str = "NORMAL") -> None:
    """Copy a database while others may write to it.

    SQLite shares memory in a file beside the database, for which a full disk has no room. A service that runs has made
    that file. If none runs, nobody is kept out by reading without it.
    """
    try:
        with closing(sqlite3.connect(path)) as source:
            source.execute(f"PRAGMA locking_mode = {locking}")
            source.backup(target)
    except sqlite3.OperationalError as error:
        if locking == "EXCLUSIVE" or not error.sqlite_errorname.startswith(_NO_SHARED_MEMORY):
            raise
        _copy_at_one_moment(path, target, "EXCLUSIVE")


def _whole_lines(path: Path) -> bytes:
    """The content of a log, without a line that is still being written."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def _write(file: Path, members: dict[str, bytes]) -> None:
    try:
        with whole_file(file) as output, tarfile.open(fileobj=output, mode="w:gz") as archive:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), _SECRET_MODE
                archive.addfile(entry, BytesIO(data))
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise DiskFull(
            f"the home cannot be copied to {file.absolute().parent} ({error.strerror}): nothing was written; make room "
            "there and try again"
        ) from None


def _read(file: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read a backup: its contents, and its files by name."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            members = {one.name: data.read() for one in archive if (data := archive.extractfile(one)) is not None}
        contents = read_json(members.pop(CONTENTS))
        is_known = (contents["kind"], contents["version"]) == (_KIND, _VERSION)
        expected, _ = contents["files"], contents["made"]
    except (*_DAMAGED, ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{file} is no backup of a party, or is damaged: nothing was restored") from None
    if not is_known:
        raise Unreadable(f"{file} is a backup of something else, or of a later version: nothing was restored")
    if {name: sha256(data).hexdigest() for name, data in members.items()} != expected or "ledger.db" not in members:
        raise Unreadable(f"{file} is damaged: its contents do not match its list of contents; nothing was restored")
    return contents, members


def _place(folder: Path, name: str, data: bytes) -> None:
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise Unreadable(f"the backup names a file outside the home ({path.name}): nothing was restored")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, data)
    except (ValueError, FileExistsError, IsADirectoryError, NotADirectoryError):
        raise Unreadable(f"the backup names {name!r}, which can be no file: nothing was restored") from None


def _digest_of(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()
