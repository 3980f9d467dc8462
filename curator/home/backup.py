"""Backup of a curator's home into one file, taken while it serves, and its restoration.

It does not know runs. The database and the keys belong together: a run's secret opens only under the master key.

A curator that was restored from an older backup repeats the tasks whose answers it has lost, and parties answer with
the same bytes: nobody spends twice. A backup is not restored into a home that knows more.
"""

import gzip
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import make_url

from curator.errors import SettingsError, StoreUnavailable
from curator.files import PRIVATE, UNFINISHED, sync_folder, whole_file
from curator.settings import Settings
from curator.store.store import Store
from curator.store.tables import codes, events, operator_keys, parties, runs, schemas
from protocol.exact import canonical_json
from protocol.outside_json import read_json

CONTENTS = "backup.json"
DATABASE = "curator.db"
FOLDERS = ("keys", "tls", "runs")
_KIND, _VERSION = "dp-subn curator", 1
_CHUNK = 1 << 20
_DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
_GROWING = (events, parties, schemas, operator_keys, codes, runs)  # tables to which rows are added
_NO_SHARED_MEMORY = ("SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")


def make(settings: Settings, file: Path) -> dict[str, Any]:
    """Write a backup and return its list of contents. The file appears whole or not at all, for its owner only."""
    if file.exists():
        raise SettingsError(f"{file} exists, and backups are never overwritten: name a new file")
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".backup-") as folder:
        members: dict[str, Path] = {}
        database = _sqlite_file(settings)
        if database is not None:
            _copy_database(database, Path(folder) / DATABASE)
            members[DATABASE] = Path(folder) / DATABASE
        # Files are listed after the database is copied, so that every run that it calls finished has its results here.
        members |= {
            str(one.relative_to(settings.home)): one for name in FOLDERS for one in _files(settings.home / name)
        }
        contents = {
            "kind": _KIND,
            "version": _VERSION,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "database": "inside" if database is not None else "elsewhere",
            "files": {name: _digest(path) for name, path in members.items()},
        }
        _write(file, members, canonical_json(contents))
    return contents


def restore(settings: Settings, file: Path) -> dict[str, Any]:
    """Restore a backup into a new home, or into a home that knows nothing more. Return the list of contents.

    Retry safety: the database comes last, so that an interrupted restore can be repeated.
    """
    if not file.is_file():
        raise SettingsError(f"there is no file {file}: name the backup that `subn-curator backup` wrote")
    home = settings.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".restore-") as folder:
        work = Path(folder)
        contents = _unpacked(file, work)
        database = _sqlite_file(settings)
        if (database is not None) != (contents["database"] == "inside"):
            raise SettingsError(
                "the backup and this home use different kinds of databases: set SUBN_CURATOR_DATABASE_URL as it was "
                "when the backup was made"
            )
        _refuse_other_keys(home, work)
        if database is not None and database.exists():
            _refuse_newer(database, work / DATABASE)
        for name in sorted(contents["files"].keys() - {DATABASE}):
            (home / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.replace(work / name, home / name)
        if database is not None:
            for rest in ("-wal", "-shm"):
                database.with_name(database.name + rest).unlink(missing_ok=True)
            os.replace(work / DATABASE, database)
    sync_folder(home)
    return contents


def _sqlite_file(settings: Settings) -> Path | None:
    """Return the path of a SQLite database, else None. Operators back up a PostgreSQL database with `pg_dump`."""
    url = make_url(settings.store_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _refuse_other_keys(home: Path, copy: Path) -> None:
    for one in _files(copy / "keys"):
        kept = home / one.relative_to(copy)
        if kept.exists() and kept.read_bytes() != one.read_bytes():
            raise SettingsError(
                f"{kept} differs from the backup: this home belongs to another curator. Restore into a new home"
            )


def _refuse_newer(database: Path, copy: Path) -> None:
    """Refuse to restore a backup that lacks entries of the present database: they would be lost."""
    ours, theirs = Store.open(f"sqlite:///{database.absolute()}"), Store.open(f"sqlite:///{copy}")
    try:
        ours.serve_alone("a restore")  # refused while a curator serves it
        more = [table.name for table in _GROWING if _keys_of(ours, table) - _keys_of(theirs, table)]
    finally:
        ours.close()
        theirs.close()
    if more:
        raise SettingsError(
            f"{database} knows more than the backup ({', '.join(more)}): nothing was restored. If it is damaged, move "
            f"it away together with {database.name}-wal and {database.name}-shm, and restore again"
        )


def _keys_of(store: Store, table: Any) -> set[tuple[Any, ...]]:
    with store.reading() as db:
        return {tuple(row) for row in db.execute(select(*table.primary_key.columns))}


def _files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.endswith(UNFINISHED))


def _copy_database(path: Path, copy: Path) -> None:
    """Copy the database as it is at one moment, even while a curator writes to it."""
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    try:
        with closing(sqlite3.connect(copy)) as target:
            _copy_at_one_moment(path, target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        raise StoreUnavailable(
            f"{path} cannot be copied to {copy.parent.parent} ({error}): nothing was written; make room there and try "
            "again"
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


def _write(file: Path, members: dict[str, Path], contents: bytes) -> None:
    with whole_file(file) as output, tarfile.open(fileobj=output, mode="w:gz") as archive:
        for name, path in members.items():
            archive.add(path, name)
        entry = tarfile.TarInfo(CONTENTS)
        entry.size, entry.mode = len(contents), PRIVATE
        archive.addfile(entry, BytesIO(contents))


def _unpacked(file: Path, folder: Path) -> dict[str, Any]:
    """Unpack a backup into this folder and check every file against its digest. Return the list of contents."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            for member in archive:
                _unpack(archive, member, folder.resolve())
        contents: dict[str, Any] = read_json((folder / CONTENTS).read_bytes())
        is_known = (contents["kind"], contents["version"]) == (_KIND, _VERSION)
        expected, inside = dict(contents["files"]), contents["database"] == "inside"
    except (*_DAMAGED, ValueError, KeyError, TypeError, RecursionError, FileNotFoundError, FileExistsError):
        raise SettingsError(f"{file} is no backup of a curator, or is damaged: nothing was restored") from None
    if not is_known:
        raise SettingsError(f"{file} is a backup of something else, or of a later version: nothing was restored")
    (folder / CONTENTS).unlink()
    found = {str(one.relative_to(folder)): _digest(one) for one in _files(folder)}
    if found != expected or inside != (DATABASE in found):
        raise SettingsError(f"{file} is damaged: its contents do not match its list of contents; nothing was restored")
    return contents


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Unpack one file: nothing outside the folder, and no link. Python before 3.11.4 has no filter that does so."""
    place = (folder / member.name).resolve()
    contents = archive.extractfile(member)
    if not member.isfile() or contents is None or not place.is_relative_to(folder):
        raise ValueError("not a file of this folder")
    place.parent.mkdir(parents=True, exist_ok=True)
    with contents, place.open("xb") as file:
        shutil.copyfileobj(contents, file, _CHUNK)
    place.chmod(member.mode & 0o644)


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
