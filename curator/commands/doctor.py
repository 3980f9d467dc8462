"""`subn-curator doctor`: check everything that the service needs, and explain how to repair faults.

It does not know runs or rows.
"""

import argparse
import platform
import shutil
import sqlite3
import ssl
import tempfile
from collections.abc import Iterator
from importlib.metadata import version

from curator.accounts.registry import Registry
from curator.clock import system_clock
from curator.commands.ready import ask
from curator.errors import SettingsError
from curator.home.certificates import OTHERS_NAMES, RENEW_DAYS, Certificates
from curator.home.keys import CuratorKeys
from curator.rendering.output import say
from curator.settings import Settings, listed
from curator.store.store import Store
from protocol.messages.pins import pin_of
from protocol.messages.versions import SPOKEN
from protocol.services import diagnosis
from protocol.services.connection import distrust
from protocol.services.diagnosis import CA_SOON_DAYS, Finding, Look

_QUIET_DAYS = 7
_DAY_MS = 24 * 3600 * 1000
_AHEAD_MS = 60_000


def doctor(settings: Settings, chosen: argparse.Namespace) -> int:
    looks: list[tuple[str, Look]] = [
        ("versions", _versions),
        ("home", lambda: _home(settings)),
        ("keys", lambda: _keys(settings)),
        ("certificate", lambda: _certificate(settings)),
        ("store", lambda: _store(settings)),
        ("parties", lambda: _parties(settings)),
        ("service", lambda: _service(settings)),
    ]
    found = diagnosis.examine(looks)
    say(chosen, diagnosis.data_of(found), *(one.line for one in found))
    return diagnosis.code_of(found)


def _versions() -> Iterator[Finding]:
    what = f"dp-subn {version('dp-subn')}, Python {platform.python_version()}, {ssl.OPENSSL_VERSION}"
    yield Finding("versions", "ok", f"{what}, protocol {SPOKEN.in_words()}")


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    if not (home / "keys").is_dir():
        raise SettingsError(f"{home} is no curator's home: run `subn-curator init --home {home}`")
    with tempfile.TemporaryFile(dir=home) as file:
        file.write(b"writable?")
        file.flush()
    yield Finding("home", "ok", f"{home} can be written to")
    secrets = [home, *(home / "keys").iterdir(), *(home / "tls").glob("*.key"), *(home / "tls").glob("server.pem")]
    yield diagnosis.modes([str(path) for path in secrets if path.stat().st_mode & 0o077])
    yield diagnosis.disk(shutil.disk_usage(home).free, str(home))


def _keys(settings: Settings) -> Iterator[Finding]:
    keys = CuratorKeys.load(settings.home, settings.master_key)
    pin = pin_of(keys.signing.public, Certificates(settings.home).ca)
    yield Finding("keys", "ok", f"signing key and master key are present; parties check the pin {pin}")


def _certificate(settings: Settings) -> Iterator[Finding]:
    if settings.plain_http:
        yield Finding("certificate", "ok", "none is needed: plain HTTP, on this machine only")
        return
    certificates = Certificates(settings.home)
    shown = certificates.shown()
    try:
        certificates.try_names()
        yield Finding("certificate", "ok", f"parties accept it for {', '.join(shown.names)}")
    except ssl.SSLError as error:
        yield Finding("certificate", "bad", distrust("the certificate", error) or str(error))
    if lacking := certificates.lacking(listed(settings.names)):
        what = f"it is not good for {', '.join(lacking)}, which SUBN_CURATOR_NAMES lists"
        yield Finding("certificate", "warn", what, "restart the service" if shown.renews_itself else OTHERS_NAMES)
    mend = "`subn-curator certificate renew`" if shown.renews_itself else "give a newer one: `certificate renew`"
    soon = 0 if shown.renews_itself and not settings.behind_proxy else RENEW_DAYS
    yield diagnosis.lasting("certificate", shown.days, soon, mend)
    if shown.ca_days is not None:
        mend = "make a new home for the CA in time: then every party must run `subn-party recognise PIN`"
        yield diagnosis.lasting("CA", shown.ca_days, CA_SOON_DAYS, mend)


def _store(settings: Settings) -> Iterator[Finding]:
    if not (settings.home / "keys").is_dir():
        return
    store = Store.open(settings.store_url)
    try:
        store.check()
    finally:
        store.close()
    file = settings.home / "curator.db"
    if settings.database_url or not file.exists():
        yield Finding("store", "ok", "the database answers")
        return
    line = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        whole = line.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        line.close()
    is_whole = whole == "ok"
    found = f"{file} is {'undamaged' if is_whole else f'damaged: {whole}'}"
    yield Finding("store", "ok" if is_whole else "bad", found, "" if is_whole else "restore the newest backup")


def _parties(settings: Settings) -> Iterator[Finding]:
    if not (settings.home / "keys").is_dir():
        return
    store, now = Store.open(settings.store_url), system_clock()
    try:
        known = [one for one in Registry(store, system_clock).parties() if one.revoked is None]
    finally:
        store.close()
    seen = [one.last_seen for one in known if one.last_seen is not None]
    if max(seen, default=0) > now + _AHEAD_MS:
        yield Finding("clock", "bad", "a party was seen later than now: this clock was set back", "set it by NTP")
    else:
        yield Finding("clock", "ok", "it has not been set back")
    quiet = [one.name for one in known if one.last_seen is None or one.last_seen < now - _QUIET_DAYS * _DAY_MS]
    mend = "ask them to run `subn-party doctor`"
    found = f"{len(known)} enrolled"
    if quiet:
        yield Finding("parties", "warn", f"{found}; not seen for {_QUIET_DAYS} days: {', '.join(quiet)}", mend)
    else:
        yield Finding("parties", "ok", found)


def _service(settings: Settings) -> Iterator[Finding]:
    is_ready, said = ask(settings)
    if is_ready:
        yield Finding("service", "ok", "it is at work")
    else:
        yield Finding("service", "warn", f"it is not at work: {said.get('reason', '')}")
