"""Move the published files of old runs out of the home, one archive for each run; signed manifests stay.

It does not know which command asks for it, or what the files say.

The store keeps every receipt, charge and event, so parties, pages and totals find what they found before. What parties
have answered went from the store when the run ended.

Crash safety: a run's files are removed only after their archive is whole on the disk and its digests are those that
the store has for the run. After a kill at any instant, the next call goes on.
"""

import gzip
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from curator.errors import SettingsError
from curator.files import sync_folder, whole_file
from curator.results.publication import MANIFEST
from curator.store import run_records as records
from curator.store.run_records import RunRecord
from curator.store.store import Store

_UNREADABLE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class Archived:
    """One call's outcome: the runs that were archived, the bytes that they took at home, and those left alone."""

    runs: tuple[str, ...]
    freed: int
    damaged: tuple[str, ...]  # runs whose files are not those that were published


def archive_runs(store: Store, home: Path, ended_before: int, target: Path) -> Archived:
    """Archive every finished run that ended before a time, in milliseconds since 1970, into files in `target`."""
    if target.resolve().is_relative_to((home / "runs").resolve()):
        raise SettingsError(f"{target} is inside {home / 'runs'}: name a folder that no run's files are in")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    done, damaged, freed = [], [], 0
    for run in _finished(store, ended_before):
        outputs = run.outputs or {}
        files = [home / "runs" / run.id / name for name in outputs if name != MANIFEST]
        if not any(file.exists() for file in files):
            continue  # it was archived before
        if not _in_archive(home / "runs" / run.id, target / f"{run.id}.tar.gz", outputs):
            damaged.append(run.id)
            continue
        _forget_keys(store, run.id)
        freed += _removed(files)
        done.append(run.id)
    return Archived(tuple(done), freed, tuple(damaged))


def _finished(store: Store, ended_before: int) -> list[RunRecord]:
    with store.reading() as db:
        return [run for run in records.finished_runs(db, ended_before) if run.outputs is not None]


def _in_archive(folder: Path, archive: Path, outputs: Mapping[str, str]) -> bool:
    """Make the archive unless a former call has made it. Return whether it holds what was published."""
    if _digests(archive) == outputs:
        return True
    if not all((folder / name).is_file() for name in outputs):
        return False
    with whole_file(archive) as output, tarfile.open(fileobj=output, mode="w:gz") as packed:
        for name in outputs:
            packed.add(folder / name, f"{folder.name}/{name}", recursive=False)
    if _digests(archive) == outputs:
        return True
    archive.unlink()  # nobody is to take it for what was published
    return False


def _digests(archive: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in an archive by its name; nothing if there is none that can be read."""
    found: dict[str, str] = {}
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                content = packed.extractfile(member)
                if content is not None:
                    found[Path(member.name).name] = file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    except (FileNotFoundError, *_UNREADABLE):
        return {}
    return found


def _removed(files: list[Path]) -> int:
    freed = sum(file.stat().st_size for file in files if file.exists())
    for file in files:
        file.unlink(missing_ok=True)
    sync_folder(files[0].parent)
    return freed


def _forget_keys(store: Store, run: str) -> None:
    """Drop the public keys with their proofs, a megabyte for 50 parties. Nothing is computed with them any more."""
    with store.writing() as db:
        records.change_run(db, run, public_key=None, modulus_proof=None, indicator=None)
