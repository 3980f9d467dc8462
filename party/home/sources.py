"""The source of a data set's rows as an identity, by which sections over the same rows are recognised.

It knows no rows, and keeps no password. One table in two formats looks different.
"""

import filecmp
import os
from dataclasses import dataclass, replace
from pathlib import Path

from party.home.layout import Home
from party.home.settings import Dataset
from protocol.exact import canonical_json, digest

_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "oracle": 1521}
_READ_FILES = ("duckdb", "spark", "pyspark", "databricks")  # by a path in their SQL
_PLACES = ("host", "port", "dbname", "service", "unix_socket")  # in a URL's query: they lead to another database

Node = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class Source:
    place: str  # a file, or a database without its user
    query: str = ""  # of a database; a file has none
    node: Node | None = None  # of a file that is there
    reads_files: bool = False  # whether the query may read any file, and other databases

    @property
    def digest(self) -> str:
        """The name of the source in the ledger."""
        return digest(canonical_json([self.place, self.query]))

    def is_same(self, other: "Source") -> bool:
        """Whether both are the same rows for certain: one file, whatever leads to it, or one query."""
        return self._is_beside(other) and self.query == other.query

    def likeness(self, other: "Source") -> str:
        """Say why the same people may be in two sources that are not the same for certain; nothing if they seem apart.

        A database has many addresses, so that any two queries are alike. A query of an engine that reads files is
        also like any file: what its SQL leads to is not found out here.
        """
        if self.is_same(other):
            return ""
        if (self.reads_files or other.reads_files) and not (self.query and other.query):
            return "may read one file, as the query of an engine like duckdb or Spark reads files too"
        if self.query and other.query:
            return f"query {'one database' if self._is_beside(other) else 'databases whose addresses may lead to one'}"
        return "read files of equal content" if self._equals(other) else ""

    def _is_beside(self, other: "Source") -> bool:
        return self.place == other.place or (self.node is not None and self.node == other.node)

    def _equals(self, other: "Source") -> bool:
        """Whether both are files with the same bytes. Files of different sizes are not read."""
        try:
            return None not in (self.node, other.node) and filecmp.cmp(self.place, other.place, shallow=False)
        except OSError:  # reading it for a run will complain
            return False


def source_of(home: Home, dataset: Dataset) -> Source:
    if not dataset.is_database:
        return _file(home.path / dataset.source)
    query = " ".join((dataset.query or "").split()).rstrip("; ")
    found = _database(dataset.source, query)
    return replace(found, reads_files=dataset.scheme in _READ_FILES)


def _file(path: Path, query: str = "") -> Source:
    """A file by its resolved path, so that symbolic links do not count, and by its inode, because of hard links."""
    found = os.path.realpath(path)
    try:
        status = os.stat(found)
    except OSError:  # reading it will complain
        return Source(found, query)
    return Source(found, query, (status.st_dev, status.st_ino))


def _database(url: str, query: str) -> Source:
    from sqlalchemy.engine import make_url  # a home without a database need not load it
    from sqlalchemy.exc import ArgumentError

    try:
        found = make_url(url)
    except ArgumentError:  # reading it will complain
        return Source(digest(url.encode()), query)
    kind = found.get_backend_name()
    if kind == "sqlite" and found.database:
        return _file(Path(found.database), query)
    host, port = (found.host or "").lower(), found.port or _PORTS.get(kind, 0)
    places = {name: str(found.query[name]) for name in _PLACES if name in found.query}
    where = ["localhost" if host in _LOOPBACK else host, port, found.database or "", places]
    return Source(f"{kind} {canonical_json(where).decode()}", query)
