"""Settings in party.toml, by which the data owner decides what may leave.

It does not know runs; `party.answering.policy` decides whether a run is allowed.
"""

import json
import re
import ssl
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from party.errors import SettingsError
from party.files import write_file
from party.home.layout import Home
from party.home.network_settings import Network, with_proxy_of_environment
from party.home.page_address import Local, with_environment
from party.home.settings_errors import sentence
from party.home.settings_template import TEMPLATE
from protocol.errors import SchemaError
from protocol.exact import Exact
from protocol.options import MOST_ROWS_OF_A_PERSON, Method, Noise, Update
from protocol.plan.plan import Name
from protocol.services.delimited import Decimal, Encoding, Given
from protocol.tables.coding import Rule
from protocol.tables.schema import Schema

_FORMER_UPDATES = ("guided",)  # rules that no plan names any more, and the party.toml of an older program does
_EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_FINGERPRINT = r"^[0-9a-f]{4}( [0-9a-f]{4}){7}$"

Positive = Annotated[Exact, Field(gt=0)]
Amount = Annotated[Exact, Field(ge=0)]
Share = Annotated[Exact, Field(ge=0, lt=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class CuratorSettings(_Closed):
    name: Name  # of this party, at the curator
    url: Annotated[str, Field(pattern=r"^https?://\S+$")]
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # of the curator: it signs every answer
    ca: Literal["ca.pem", "system"] = "system"  # the pinned file's certificate authority, or the machine's


class Peer(_Closed):
    fingerprint: Annotated[str, Field(pattern=_FINGERPRINT)]  # of both its keys: `party.home.keys.peer_fingerprint`


class Dataset(_Closed):
    source: str = Field(min_length=1, repr=False)
    query: str | None = Field(default=None, min_length=1, repr=False)
    engine: bool = False  # whether the database counts the rows itself, so that none comes here
    # Where an engine keeps the tables of its runs: a schema or database of its own; None: where its URL leads.
    snapshots: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")] | None = None
    schema_file: Annotated[str, Field(min_length=1, alias="schema")]
    epsilon_total: Positive
    delta_total: Share = Fraction(0)
    budget: Name | None = None  # shared by all data sets that name it, and by those over the same source
    formerly: tuple[Name, ...] = ()  # names under which these rows were spent on before
    spent_before: Amount = Fraction(0)  # what a lost home spent on these rows
    delta_spent_before: Amount = Fraction(0)
    person_key: Annotated[str, Field(min_length=1)] | None = None
    # With a person key: rows of a person beyond so many are left out. Without: the data owner's word that none are.
    rows_per_person: Annotated[int, Field(ge=1, le=MOST_ROWS_OF_A_PERSON)] | None = None
    out_of_range: Rule | dict[str, Rule] = "refuse"
    # How a file is written; found out from the file where nothing is said.
    encoding: Encoding | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    quote: Literal['"', "'", ""] | None = None
    decimal: Decimal | None = None
    sheet: Annotated[str, Field(min_length=1)] | None = None

    @property
    def is_database(self) -> bool:
        return "://" in self.source

    @property
    def scheme(self) -> str:
        """The kind of a database or an engine; empty for a file."""
        return self.source.partition("://")[0].partition("+")[0].lower() if self.is_database else ""

    @property
    def engine_shown(self) -> str:
        """The engine as messages name it: without a user, a password and what follows the ?

        Either a password or what follows the ? may hold both signs. Then the scheme is all that is shown.
        """
        scheme, _, rest = self.source.partition("://")
        before, _, place = rest.rpartition("@")
        return f"{scheme}://" if "?" in before else f"{scheme}://{place.partition('?')[0]}"

    @property
    def is_parquet(self) -> bool:
        return self.source.lower().endswith(".parquet")

    @property
    def is_excel(self) -> bool:
        return self.source.lower().endswith(_EXCEL)

    @property
    def checked_bound(self) -> int | None:
        """How many rows of a person take part at most; None without a person key, where nobody can check it."""
        return (self.rows_per_person or 1) if self.person_key is not None else None

    @property
    def given(self) -> Given:
        return Given(self.encoding, self.delimiter, self.quote, self.decimal)

    @model_validator(mode="after")
    def _refuse_settings_of_other_sources(self) -> "Dataset":
        is_text = not (self.is_database or self.is_parquet or self.is_excel)
        for name in ("encoding", "delimiter", "quote", "decimal"):
            if getattr(self, name) is not None and not is_text:
                raise ValueError(f"{name}: is for CSV files only; leave it out for this source")
        if self.sheet is not None and not self.is_excel:
            raise ValueError("sheet: is for Excel files only; leave it out for this source")
        return self

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> "Dataset":
        if self.is_database and self.query is None:
            raise ValueError("query: is missing; a database needs the query whose rows are the table")
        if not self.is_database and self.query is not None:
            raise ValueError("query: is for databases only; this source is a file")
        if self.engine and not self.is_database:
            raise ValueError("engine: is for databases only; read a file by an engine's query, as with duckdb://")
        if self.snapshots is not None and not self.engine:
            raise ValueError("snapshots: is for engine = true only; leave it out")
        return self


def _all_of(*names: str) -> Any:
    return Field(default=names, min_length=1)


class Policy(_Closed):
    accept: Literal["ask", "auto"] = "ask"
    epsilon_per_run: Positive
    delta_per_run: Share = Fraction(0)  # none: only pure runs
    methods: tuple[Method, ...] = _all_of(*get_args(Method))
    noise: tuple[Noise, ...] = _all_of(*get_args(Noise))
    # All but the rule that other parties can see through.
    updates: tuple[Update, ...] = _all_of(*(name for name in get_args(Update) if name != "replace"))
    smallest_parties: Annotated[int, Field(ge=2)] = 2
    smallest_rows: Annotated[int, Field(ge=1)] = 1
    smallest_insiders: Annotated[int, Field(ge=0)] = 1
    retired: tuple[Name, ...] = ()  # data sets of the past, whose rows no data set holds any more

    @field_validator("updates", mode="before")
    @classmethod
    def _leave_out_former(cls, found: Any) -> Any:
        """An older program's template listed all rules that it had; the party starts after an upgrade all the same."""
        return tuple(one for one in found if one not in _FORMER_UPDATES) if isinstance(found, list) else found


class Settings(_Closed):
    datasets: Annotated[dict[str, Dataset], Field(min_length=1)]
    policy: Policy
    local: Local = Local()
    network: Network = Network()
    curator: CuratorSettings | None = None
    peers: dict[str, Peer] = Field(default_factory=dict)


def template() -> str:
    """A commented party.toml to start from."""
    accepted = {name: json.dumps(Policy.model_fields[name].default) for name in ("methods", "noise", "updates")}
    return TEMPLATE.substitute(accepted)


def load(home: Home) -> Settings:
    """Read party.toml; a SettingsError names the file, the field, what was found and what is expected.

    The environment may also set the address of the data owner's pages, because a container has an address of its own.
    No setting that decides what leaves is taken from the environment.
    """
    text = _read(home.settings)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{home.settings}: this is not TOML: {error}; correct that place") from None
    try:
        found = Settings.model_validate_json(json.dumps(raw, default=str))
        return found.model_copy(
            update={"local": with_environment(found.local), "network": with_proxy_of_environment(found.network)}
        )
    except ValidationError as error:
        raise SettingsError(f"{home.settings}: {sentence(error)}") from None


def schema_of(home: Home, name: str, dataset: Dataset) -> Schema:
    path = home.path / dataset.schema_file
    try:
        return Schema.parse(path.read_bytes())
    except OSError as error:
        where = f"{home.settings}: datasets.{name}.schema"
        raise SettingsError(f"{where}: {path} cannot be read ({error.strerror}); expected a schema file") from None
    except SchemaError as error:
        raise SettingsError(f"{path}: {error}") from None


def dataset_for(home: Home, settings: Settings, schema_hash: str) -> str | None:
    """Find the data set with this schema: a plan names its table by the schema alone."""
    found = [name for name, one in settings.datasets.items() if schema_of(home, name, one).hash == schema_hash]
    if len(found) > 1:
        raise SettingsError(
            f"{home.settings}: datasets {found[0]} and {found[1]} have the same schema, so a plan could mean either; "
            "give their schemas different titles"
        )
    return found[0] if found else None


def add_curator(home: Home, name: str, url: str, key: bytes, ca: str) -> Settings:
    """Note the curator that this party has enrolled with, and pin its CA (PEM; empty: the machine's)."""
    if load(home).curator is not None:
        raise SettingsError(f"{home.settings}: has a section [curator] already; remove it to change the curator")
    if ca:
        write_file(home.ca, ca)
    return _append(home, "[curator]", {"name": name, "url": url, "key": key.hex(), "ca": _ca_setting(ca)})


def change_curator(home: Home, key: bytes, ca: str) -> Settings:
    """Pin another key and CA of the same curator.

    Retry safety: the CA is written first. Until the section follows, the curator is not trusted, and the change can be
    repeated.
    """
    before, lines = _read(home.settings), []
    inside = False
    for line in before.splitlines():
        inside = line.strip() == "[curator]" if line.lstrip().startswith("[") else inside
        is_changed = inside and re.match(r"\s*(key|ca)\s*=", line)
        lines += [] if is_changed else [line]
        if line.strip() == "[curator]":
            lines += [f"key = {_toml(key.hex())}", f"ca = {_toml(_ca_setting(ca))}"]
    if ca:
        write_file(home.ca, ca)
    return _replaced(home, before, "\n".join(lines) + "\n")


def pinned_ca(home: Home, found: CuratorSettings) -> str:
    """The PEM text of the CA; empty where the machine's CAs decide."""
    if found.ca != "ca.pem":
        return ""
    text = _read(home.ca)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise SettingsError(
            f"{home.ca} does not hold the curator's certificate authority: restore it from your backup, or ask the "
            "operator for the pin and run `subn-party recognise PIN`"
        ) from None
    return text


def _ca_setting(ca: str) -> str:
    return "ca.pem" if ca else "system"


def add_peer(home: Home, name: str, fingerprint: str) -> Settings:
    """Note the fingerprint of a party, once both data owners have compared it."""
    known = load(home)
    if name in known.peers and known.peers[name].fingerprint == fingerprint:
        return known
    if name in known.peers:
        raise SettingsError(f"{home.settings}: knows {name!r} already; change its section if its keys have changed")
    return _append(home, f"[peers.{_toml(name)}]", {"fingerprint": fingerprint})


def _append(home: Home, section: str, values: dict[str, str]) -> Settings:
    lines = [section, *(f"{key} = {_toml(value)}" for key, value in values.items())]
    before = _read(home.settings)
    return _replaced(home, before, before.rstrip("\n") + "\n\n" + "\n".join(lines) + "\n")


def _replaced(home: Home, before: str, after: str) -> Settings:
    write_file(home.settings, after)
    try:
        return load(home)
    except SettingsError:
        write_file(home.settings, before)
        raise


def _toml(text: str) -> str:
    """Write a basic string: JSON's escapes are TOML's, except for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not in UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot be read ({error.strerror}); `subn-party init` makes a home with one"
        ) from None
