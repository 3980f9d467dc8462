"""Decoders of files that people or other programs bring: schemas, settings, tables, manifests, backups, logs, PEM.

It does not know the protocol's messages or HTTP. Every file lies in a folder of its own, made once for a process.
"""

import atexit
import gzip
import io
import json
import shutil
import tarfile
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import duckdb

from curator.errors import CuratorError
from curator.home import backup as curator_backup
from curator.home.x509 import certificates_in, key_in, new_ca, utc_now
from curator.settings import Settings as CuratorSettings
from party import source
from party.answering import frozen_rows
from party.books import audit
from party.errors import LedgerError, SettingsError, Unreadable
from party.home import backup as party_backup
from party.home import keys, settings, tokens
from party.home.layout import Home
from protocol.errors import DataError, ManifestError, SchemaError
from protocol.exact import canonical_json
from protocol.outside_json import read_json
from protocol.run.manifest import verify_manifest
from protocol.tables.schema import Schema
from tests.fuzz.target import Target, is_clear
from tests.support.curator import Desk
from tests.support.fake_curator import FakeCurator
from tests.support.party import make_home, write_keys
from tests.support.small_runs import BITS, MIXED, SMALL_BITS, random_codes

SOURCE = {"schema": "schema.json", "epsilon_total": "1"}


@cache
def folder(name: str) -> Path:
    found = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    (found / name).mkdir()
    return found / name


def written(name: str, data: bytes) -> Path:
    path = folder(name) / name
    path.touch(0o600)
    path.write_bytes(data)
    return path


# Schemas and JSON


def schema(data: bytes) -> None:
    found = Schema.parse(data)
    assert Schema.parse(found.to_json()).hash == found.hash


def exact_json(data: bytes) -> None:
    read_json(data)


# Settings


@cache
def home(number: int = 0) -> Home:
    """A party's home with settings, keys, schema and a table."""
    found = make_home(folder(f"home-{number}"), number, FakeCurator())
    write_keys(found, number)
    return found


def party_settings(data: bytes) -> None:
    text, path = home().settings.read_bytes(), folder("party.toml")
    shutil.copy(home().path / "schema.json", path / "schema.json")
    (path / "party.toml").write_bytes(data)
    found = settings.load(Home(path))
    for name, dataset in found.datasets.items():
        settings.schema_of(Home(path), name, dataset)
    assert home().settings.read_bytes() == text


def curator_settings(data: bytes) -> None:
    lines = [line.partition("=") for line in data.decode("utf-8", "replace").splitlines()]
    found = CuratorSettings.read({f"SUBN_CURATOR_{name}": value for name, _, value in lines if "\0" not in value})
    assert found.proxies is not None


# A party's table


def table(suffix: str, data: bytes) -> None:
    written(f"table{suffix}", data)
    dataset = settings.Dataset.model_validate({"source": f"table{suffix}"} | SOURCE)
    for read in (source.load, source.check):
        read(folder(f"table{suffix}"), dataset, BITS)  # type: ignore[operator]


def csv_file(data: bytes) -> None:
    table(".csv", data)


def gzipped_file(data: bytes) -> None:
    table(".csv.gz", data)


def parquet_file(data: bytes) -> None:
    table(".parquet", data)


def tables() -> list[bytes]:
    names = ",".join(BITS.names)
    return [f"{names}\nyes,no,yes,no,no\n".encode(), f'\ufeff{names}\r\n"yes","no",no,no,"n""o"\r\n'.encode(), b"a\n"]


def parquets() -> list[bytes]:
    path = folder("made") / "made.parquet"
    columns = ", ".join(f"'yes' AS {name}" for name in BITS.names)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range(3)) TO '{path}' (FORMAT parquet)")
    return [path.read_bytes()]


# What a party keeps


def own_keys(data: bytes) -> None:
    written("identity.json", data)
    keys.load(folder("identity.json"))


def token(data: bytes) -> None:
    written("local-token", data)
    tokens.token_of(folder("local-token"))


def frozen(data: bytes) -> None:
    plan = "0" * 64
    written(f"{plan}.rows", data)
    frozen_rows.thaw(folder(f"{plan}.rows"), plan, BITS)


def frozen_seeds() -> list[bytes]:
    plan, path = "0" * 64, folder("frozen")
    frozen_rows.freeze(path, plan, BITS, random_codes(BITS, (5,))[0])
    whole = (path / f"{plan}.rows").read_bytes()
    # Changes of a whole file are found by its digest: these reach what stands behind it.
    bodies = [b"", b"{}\n", b'{"rows": 9}\n', b'{"rows": -1}\nxx', b"[" * 9 + b"\n", whole[:-40], whole[:60]]
    return [whole, *(body + sha256(body).digest() for body in bodies)]


def audit_log(data: bytes) -> None:
    path = written("audit.log", data)
    assert isinstance(audit.verify(path), list)
    assert all(isinstance(entry, dict) for entry in audit.readable(path))


def audit_logs() -> list[bytes]:
    path = folder("made-log") / "audit.log"
    log = audit.Audit(path)
    log.append("started", version="1")
    log.append("settled", run="run-1", outcome="finished", reason="")
    return [path.read_bytes()]


# Backups


def party_copy(data: bytes) -> None:
    path = written("backup.tar.gz", data)
    shutil.rmtree(folder("restored"), ignore_errors=True)
    party_backup.restore(Home(folder("restored")), path)


def curator_copy(data: bytes) -> None:
    path = written("curator-backup.tar.gz", data)
    shutil.rmtree(folder("curator-restored"), ignore_errors=True)
    curator_backup.restore(CuratorSettings(home=folder("curator-restored")), path)


def archive(members: dict[str, bytes], contents: dict[str, object]) -> bytes:
    """A backup that says these contents of itself, with true digests."""
    digests = {"files": {name: sha256(data).hexdigest() for name, data in members.items()}}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as found:
        for name, data in (members | {"backup.json": canonical_json(digests | contents)}).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            found.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def backups() -> list[bytes]:
    path = folder("made-backup") / "backup"
    path.unlink(missing_ok=True)
    party_backup.make(home(), path)
    known: dict[str, object] = {"kind": "dp-subn party", "version": 1}
    odd = [{}, known, known | {"made": 1, "files": []}, {"kind": "dp-subn curator", "version": 1}]
    with tarfile.open(path, "r:gz") as found:
        members = {one.name: found.extractfile(one).read() for one in found}  # type: ignore[union-attr]
    members.pop("backup.json")
    without_a_time = archive(members, known)
    return [path.read_bytes(), b"", without_a_time, *(archive({"ledger.db": b"no database"}, one) for one in odd)]


def curator_backups() -> list[bytes]:
    known: dict[str, object] = {"kind": "dp-subn curator", "version": 1}
    inside = known | {"database": "inside", "made": "now"}
    found = [({}, known), ({"curator.db": b"no database"}, inside), ({"keys/signing.key": b"x"}, inside), ({}, inside)]
    return [archive(members, contents) for members, contents in found] + [gzip.compress(b"no archive")]


# Results and certificates


def manifest(data: bytes) -> None:
    table = sha256((finished() / "table.csv").read_bytes()).hexdigest()
    verify_manifest(data, {"table.csv": table}, smallest_key=SMALL_BITS)


@cache
def finished() -> Path:
    """What a curator has published of a run."""
    desk = Desk(folder("curator"))
    run = desk.run("finished", noise="distributed")
    desk.finish(run)
    return desk.orchestrator.folder(run)


def manifests() -> list[bytes]:
    whole = (finished() / "manifest.json").read_bytes()
    return [whole, json.dumps(json.loads(whole) | {"signature": "AA=="}).encode()]


def pem(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for read in (certificates_in, key_in):
        try:
            read(text, "the file")  # type: ignore[operator]
        except CuratorError as error:
            is_clear(error)


def pems() -> list[bytes]:
    pair = new_ca(utc_now())
    return [pair.certificate_pem.encode(), pair.key_pem.encode(), (pair.certificate_pem * 2).encode()]


TARGETS = (
    Target("schema", schema, (SchemaError,), lambda: [one.to_json().encode() for one in (BITS, MIXED)]),
    Target("exact-json", exact_json, (ValueError,), lambda: [b'{"a": [1, -2.50, true, null, "x"]}', b"1e999", b"[[]]"]),
    Target("party-settings", party_settings, (SettingsError,), lambda: [home().settings.read_bytes()]),
    Target(
        "curator-settings",
        curator_settings,
        (CuratorError,),
        lambda: [b"PORT=1\nNAMES=a,b", b"BEHIND_PROXY=10.0.0.0/8"],
    ),
    Target("csv", csv_file, (DataError,), tables),
    Target("csv-gzipped", gzipped_file, (DataError,), lambda: [gzip.compress(one) for one in tables()]),
    Target("parquet", parquet_file, (DataError,), parquets),
    Target("own-keys", own_keys, (SettingsError,), lambda: [(home().keys / keys.CURRENT).read_bytes()]),
    Target("token", token, (SettingsError,), lambda: [b"ab" * 32, b"ab" * 32 + b"\n", b""]),
    Target("frozen-rows", frozen, (Unreadable,), frozen_seeds),
    Target("audit-log", audit_log, (), audit_logs),
    Target("party-backup", party_copy, (LedgerError, SettingsError), backups),
    Target("curator-backup", curator_copy, (CuratorError,), curator_backups),
    Target("manifest", manifest, (ManifestError,), manifests),
    Target("pem", pem, (), pems),
)
