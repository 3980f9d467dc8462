"""A connection to an engine: which columns a query has, small tables that come back, and tables made in the engine.

It does not know schemas, codes or runs. ibis and its drivers are imported here alone, when an engine is used.

Privacy: an engine's complaint may quote a value, so an error names its class and its code and nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl

import ibis
import sqlglot
from sqlglot import expressions

from party.files import own_files
from party.home.modes import engine_file
from protocol.errors import DataError

Relation = Any  # a table expression of ibis, which has no types of its own
_SCHEMES = {"postgresql": "postgres", "spark": "pyspark"}  # what people write: what ibis calls it
_EXTRAS = {"pyspark": "spark", "postgres": "engines", "duckdb": "engines"}
_DIALECTS = {"pyspark": "spark"}
NAMES = {"pyspark": "spark", "postgres": "postgresql"}  # as receipts, manifests and pages name an engine
KNOWN = ("bigquery", "clickhouse", "databricks", "duckdb", "postgres", "pyspark", "snowflake", "trino")


_spark_lock = Lock()
_spark_begun: list[dict[str, str]] = []  # the settings of this process's session of Spark, if there is one


class Engine:
    """An open connection. It counts its scans and the bytes that came back, for measurements.

    For duckdb, statements are written here: ibis describes and makes tables in ways that duckdb 2 no longer knows.
    """

    def __init__(self, connection: Any, shown: str, home: str | None = None) -> None:
        """`home` is the engine's schema (or database) for tables made there; None: the connection's own."""
        self._connection, self._shown, self._home = connection, shown, home
        self.kind: str = connection.name
        self.name = NAMES.get(self.kind, self.kind)
        self.scans = self.bytes = 0

    def relation(self, query: str) -> Relation:
        """The rows of a query, with the types of its columns."""
        with self._named_errors("the query gives no rows"):
            if self.kind != "duckdb":
                return self._connection.sql(query)
            types = self._connection.compiler.type_mapper
            found = self._connection.raw_sql(f"DESCRIBE {query}").fetchall()
            return self._connection.sql(query, schema={name: types.from_string(kind) for name, kind, *_ in found})

    def fetched(self, relation: Relation) -> Any:
        """A small table that is worked out by one scan, as an Arrow table."""
        with self._named_errors("it cannot count"):
            found = relation.to_pyarrow()
        self.scans += 1
        self.bytes += found.nbytes
        return found

    def distinct(self, relation: Relation, most: int) -> Any:
        """The distinct values of each column, in one scan: a line has one column's. At most `most` lines come back."""
        query = self._by_column(relation, [*map(self._identifier, relation.columns)])
        lines = self._connection.sql(query, schema=relation.schema())
        return self.fetched(lines.limit(most))

    def counted(self, places: Relation) -> Any:
        """Count the rows of each place, in one scan. A row has a place in each column; no two columns share a place."""
        names = ", ".join(map(self._identifier, places.columns))
        place, rows = map(self._identifier, ("place", "n"))
        query = self._by_column(places, [f"COALESCE({names}, -1) AS {place}", f"COUNT(*) AS {rows}"])
        return self.fetched(self._connection.sql(query, schema={"place": "int64", "n": "int64"}))

    def _by_column(self, relation: Relation, wanted: Sequence[str]) -> str:
        """A statement whose groups are the values of each column by itself."""
        sets = ", ".join(f"({self._identifier(name)})" for name in relation.columns)
        inner = self._connection.compile(self.fenced(relation))
        return f"SELECT {', '.join(wanted)} FROM ({inner}) AS counted GROUP BY GROUPING SETS ({sets})"  # noqa: S608 - quoted names

    def fenced(self, relation: Relation) -> Relation:
        """A relation whose columns are worked out once, before anything is made of them.

        PostgreSQL would work out an expression wherever it is used. It also takes an expression to have as many values
        as the columns that it is made of, and sorts all rows where it expects many values.
        """
        if self.kind != "postgres":
            return relation
        return self._connection.sql(f"{self._connection.compile(relation)} OFFSET 0", schema=relation.schema())

    def made(self, name: str, relation: Relation) -> None:
        """Make a table of the relation's rows. A table that has the name already is not its own, and stays."""
        if self.holds(name):
            raise DataError(f"{self._shown}: a table {name} exists already, so none was made; remove it if it is yours")
        with self._named_errors(f"it cannot make the table {name}: allow this user to make tables"):
            if self.kind == "duckdb":
                self._run(f"CREATE TABLE {self._place(name)} AS {self._connection.compile(relation)}")
            else:
                self._connection.create_table(name, relation, database=self._home)
        self.scans += 1

    def table(self, name: str, types: Mapping[str, str]) -> Relation:
        """A table that was made here."""
        return self._connection.sql(f"SELECT * FROM {self._place(name)}", schema=dict(types))  # noqa: S608 - quoted

    def holds(self, name: str) -> bool:
        """Whether a table of this name is where tables are made. An engine that does not answer is an error."""
        with self._named_errors("it cannot list its tables"):
            if self.kind == "duckdb":
                lines = self._connection.raw_sql("SELECT table_name FROM duckdb_tables()").fetchall()
                return (name,) in lines
            return name in self._connection.list_tables(database=self._home)

    def drop(self, name: str) -> None:
        with self._named_errors(f"it cannot remove the table {name}"):
            if self.kind == "duckdb":
                self._run(f"DROP TABLE IF EXISTS {self._place(name)}")
            else:
                self._connection.drop_table(name, database=self._home, force=True)

    def _run(self, statement: str) -> None:
        if self.kind == "postgres":
            with self._connection.con.cursor() as cursor, self._connection.con.transaction():
                cursor.execute(statement)
        else:
            self._connection.raw_sql(statement)

    def _place(self, name: str) -> str:
        dialect = _DIALECTS.get(self.kind, self.kind)
        place: expressions.Expression = expressions.table_(name, quoted=True)
        if self._home is not None:
            place = sqlglot.parse_one(f"{self._home}.x", into=expressions.Table, read=dialect)
            place.set("this", sqlglot.to_identifier(name, quoted=True))
        return place.sql(dialect)

    def _identifier(self, name: str) -> str:
        return sqlglot.to_identifier(name, quoted=True).sql(_DIALECTS.get(self.kind, self.kind))

    @contextmanager
    def _named_errors(self, what: str) -> Iterator[None]:
        with named_errors(self._shown, what):
            yield


@contextmanager
def named_errors(shown: str, what: str) -> Iterator[None]:
    """Name an engine's error by its class and code."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:  # drivers of engines share no other class of errors
        code = getattr(error, "sqlstate", None) or ""
        named = " ".join(filter(None, (type(error).__name__, str(code))))
        raise DataError(f"{shown}: {what} ({named}); try it with the engine's own tool") from None


@contextmanager
def connected(url: str, shown: str, home: str | None = None) -> Iterator[Engine]:
    """Connect to the engine that a URL names, until the block is left."""
    (kind, _), rest = kind_of(url), url.partition("://")[2]
    if kind not in KNOWN:
        listed = ", ".join(NAMES.get(one, one) for one in KNOWN)
        raise DataError(f"{shown}: no engine is called {kind!r}; expected one of {listed}")
    with own_files() if kind == "duckdb" else nullcontext():  # its file, its log, and what does not fit into memory
        try:
            with named_errors(shown, "it cannot be reached"):
                if (file := engine_file(url)) is not None:
                    file.parent.mkdir(exist_ok=True)
                connection = _spark(rest) if kind == "pyspark" else ibis.connect(f"{kind}://{rest}")
        except ImportError:
            raise _missing(shown, kind) from None
        try:
            yield Engine(connection, shown, home)
        finally:
            if kind != "pyspark":  # a session of Spark takes seconds to begin: it stays with this process
                connection.disconnect()


def kind_of(url: str) -> tuple[str, str]:
    """What ibis calls the engine of a URL, and what people call it."""
    scheme = url.partition("://")[0].partition("+")[0]
    kind = _SCHEMES.get(scheme, scheme)
    return kind, NAMES.get(kind, kind)


def _missing(shown: str, kind: str) -> DataError:
    extra = _EXTRAS.get(kind, kind)
    return DataError(f"{shown}: the driver of this engine is not installed: install dp-subn[{extra}]")


def _spark(rest: str) -> Any:
    """Begin the session of Spark, or join it. What follows the ? in the URL are Spark's settings."""
    from pyspark.sql import SparkSession

    given = dict(parse_qsl(rest.partition("?")[2]))
    with _spark_lock:
        begun = next(iter(_spark_begun), given)
        if given != begun:
            names = sorted(name for name in {*given, *begun} if given.get(name) != begun.get(name))
            raise DataError(
                f"spark://: this process has a session of Spark with another {', '.join(names)}, and can have "
                "only one: give all data sets on Spark the same settings after the ?, or each a home of its own"
            )
        builder = SparkSession.builder.appName("dp-subn")
        for name, value in given.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")  # its log may quote values
        _spark_begun[:] = [given]
    return ibis.pyspark.connect(session)


def end_spark() -> None:
    """Stop the session of Spark, if this process has one. The next session may have other settings."""
    with _spark_lock:
        if _spark_begun:
            from pyspark.sql import SparkSession

            SparkSession.builder.getOrCreate().stop()
            _spark_begun.clear()
