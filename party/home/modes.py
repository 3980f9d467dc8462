"""Modes of the files in a party's home: nobody but their owner may read what the party keeps.

It does not know what the files hold. Tables, schemas and the curator's CA are the data owner's own, or public.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from party.errors import SettingsError
from party.home.layout import SETTINGS_FILE, Home

_OTHERS = 0o077
# With what stands beside them: SQLite's files, drafts, and copies that editors make of settings with a password.
_KEPT = (f"{SETTINGS_FILE}*", "keys", "ledger.db*", "audit.jsonl*", "*-token*", "rows", "comparisons", ".restore")


def open_to_others(home: Home) -> list[Path]:
    """Files and folders of the home that other users of the machine may read or write."""
    return [path for path in _kept(home) if path.exists() and path.stat().st_mode & _OTHERS]


def engine_file(url: str) -> Path | None:
    """Return the file of a duckdb engine, where the tables of its runs lie; None for all other sources."""
    if not url.startswith("duckdb://"):
        return None
    found = urlsplit(url)
    path = "/".join(filter(None, (found.netloc, found.path[bool(found.netloc) :])))
    is_file = path not in ("", ":memory:") and not path.startswith(("md:", "motherduck:"))
    return Path(re.sub("^/+", "/", path)) if is_file else None


def engine_open_to_others(url: str) -> list[Path]:
    """Files of a duckdb engine that other users of the machine may read or write."""
    file = engine_file(url)
    if file is None:
        return []
    kept = (file, *(file.with_name(file.name + suffix) for suffix in (".wal", ".tmp")))
    return [path for path in kept if path.exists() and path.stat().st_mode & _OTHERS]


def close_to_others(home: Home) -> list[Path]:
    """Close such files and folders, and return them; raise SettingsError if others can still read one."""
    found = open_to_others(home)
    for path in found:
        try:
            path.chmod(path.stat().st_mode & ~_OTHERS)
        except FileNotFoundError:
            continue  # SQLite has removed it meanwhile
        except OSError as error:
            if home.path.stat().st_mode & _OTHERS:  # else the folder keeps others out
                raise SettingsError(
                    f"others can read {path}, which this program may not change ({error.strerror}): as its owner, "
                    f"call `chmod go= {path}`"
                ) from None
    return found


def _kept(home: Home) -> Iterator[Path]:
    for pattern in _KEPT:
        for path in sorted(home.path.glob(pattern)):
            yield path
            yield from sorted(path.rglob("*"))
