"""Commands that make and maintain a curator's home: its keys, operators' keys, codes for parties, backups.

It does not know the words of the command line.
"""

import argparse
from datetime import UTC, datetime

from crypto.randomness import Stream
from crypto.signing import fingerprint
from curator.accounts.registry import Registry
from curator.clock import system_clock
from curator.commands.certificate import make_certificates
from curator.errors import SettingsError
from curator.files import made_alone
from curator.home import backup as backups
from curator.home.certificates import Certificates
from curator.home.keys import CuratorKeys
from curator.rendering.output import say
from curator.results.archive import archive_runs
from curator.settings import Settings
from curator.store.run_records import SIGNING_KEY, correct
from curator.store.store import Store
from protocol.messages.pins import joined, pin_of


def init(settings: Settings, chosen: argparse.Namespace) -> int:
    """Make a home; one whose making was cut short is completed."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with made_alone(settings.home):
        if CuratorKeys.exist(settings.home):
            raise SettingsError(
                f"{settings.home} has been set up already, so nothing was changed. For another curator, name another "
                "--home"
            )
        certificates = make_certificates(settings, chosen)
        keys = CuratorKeys.create(settings.home, Stream.system())
    operator_key = _registry(settings).new_operator_key("first", Stream.system())
    public = keys.signing.public
    found = {
        "home": str(settings.home),
        "operator_key": operator_key,
        "curator_key": public.hex(),
        "fingerprint": fingerprint(public),
        "pin": pin_of(public, certificates.ca),
        "names": certificates.shown().names,
        "ca_file": str(certificates.ca_file) if certificates.ca else None,
    }
    trusted = [f"operators' commands trust it with SUBN_CA_FILE={found['ca_file']}"] if certificates.ca else []
    return say(
        chosen,
        found,
        f"{settings.home} is ready; start it with: subn-curator serve --home {settings.home}",
        f"its certificate is good for {', '.join(certificates.shown().names)}",
        *trusted,
        "operator's key, shown this once (put it into a file for subn --key-file):",
        operator_key,
    )


def add_key(settings: Settings, chosen: argparse.Namespace) -> int:
    key = _registry(settings).new_operator_key(chosen.label, Stream.system())
    return say(chosen, {"label": chosen.label, "operator_key": key}, key)


def list_keys(settings: Settings, chosen: argparse.Namespace) -> int:
    found = [
        {"label": key.label, "created": _time(key.created), "id": key.hash[:12]}
        for key in _registry(settings).operator_keys()
    ]
    return say(chosen, found, *(f"{key['id']}  {key['created']}  {key['label']}" for key in found))


def revoke_key(settings: Settings, chosen: argparse.Namespace) -> int:
    _registry(settings).revoke_operator_key(chosen.label)
    return say(chosen, {"revoked": chosen.label}, f"the key {chosen.label!r} is invalid now")


def rotate(settings: Settings, chosen: argparse.Namespace) -> int:
    """Make a new signing key. Runs continue once parties recognise it, and published results stay as they are."""
    require_home(settings)
    store = Store.open(settings.store_url)
    try:
        public = CuratorKeys.rotate(settings.home).signing.public
        with store.writing() as db:  # killed before this line, the service does not start until `rotate` is run again
            correct(db, SIGNING_KEY, public.hex())
    finally:
        store.close()
    found = {"curator_key": public.hex(), "pin": pin_of(public, Certificates(settings.home).ca)}
    return say(
        chosen,
        found,
        "a new signing key is in the home: restart the service now. Each party waits until it has run",
        f"subn-party recognise {found['pin']}",
        "Tell them the pin by telephone or mail. Unused codes are void.",
    )


def code(settings: Settings, chosen: argparse.Namespace) -> int:
    registry, keys = _registry(settings), CuratorKeys.load(settings.home, settings.master_key)
    secret, expires = registry.new_code(chosen.name, Stream.system())
    code = joined(secret, pin_of(keys.signing.public, Certificates(settings.home).ca))
    found = {"name": chosen.name, "code": code, "expires": _time(expires), "alike": registry.names_like(chosen.name)}
    careful = [f"careful: this name can be taken for {other}, which has enrolled" for other in found["alike"]]
    return say(chosen, found, code, f"valid once, for {chosen.name}, until {found['expires']}", *careful)


def backup(settings: Settings, chosen: argparse.Namespace) -> int:
    require_home(settings)
    made = backups.make(settings, chosen.file)
    where = "" if made["database"] == "inside" else "; the database is not in it: back it up with its own tool, first"
    return say(
        chosen,
        {"written": str(chosen.file), **made},
        f"written to {chosen.file}: {len(made['files'])} files{where}",
        "it holds the curator's secret keys: keep it where nobody else can read it",
    )


def restore(settings: Settings, chosen: argparse.Namespace) -> int:
    found = backups.restore(settings, chosen.file)
    words = f"{settings.home} is as it was at {found['made']}; parties repeat the answers that it has lost"
    return say(chosen, {"restored": str(settings.home), **found}, words)


def archive(settings: Settings, chosen: argparse.Namespace) -> int:
    """Archive old runs; exit code 1 if the files of one are not those that were published."""
    require_home(settings)
    store = Store.open(settings.store_url)
    try:
        done = archive_runs(store, settings.home, system_clock() - chosen.older_than, chosen.to)
    finally:
        store.close()
    found = {"archived": done.runs, "freed_bytes": done.freed, "damaged": done.damaged, "to": str(chosen.to)}
    say(
        chosen,
        found,
        f"{len(done.runs)} runs archived in {chosen.to}; {done.freed / 1e6:,.1f} MB were freed in {settings.home}",
        *(
            f"{run}: left alone, as its files are not those that were published; restore them from a backup"
            for run in done.damaged
        ),
    )
    return 1 if done.damaged else 0


def _registry(settings: Settings) -> Registry:
    require_home(settings)
    return Registry(Store.open(settings.store_url), system_clock)


def require_home(settings: Settings) -> None:
    """Require a home made by `init`, so that no other command creates an empty database in a mistyped folder."""
    if not (settings.home / "keys").is_dir():
        raise SettingsError(f"{settings.home} is no curator's home: run `subn-curator init --home {settings.home}`")


def require_database(settings: Settings) -> None:
    """Refuse to serve from an empty file in place of the one that knows all parties and runs."""
    file = settings.home / "curator.db"
    if not settings.database_url and (not file.exists() or not file.stat().st_size):
        raise SettingsError(
            f"{file} is absent or empty: restore the newest backup (`subn-curator restore FILE` into a new home); "
            "`subn-curator operator-key add LABEL` makes an empty database, which knows no party and no run"
        )


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
