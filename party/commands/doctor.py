"""`subn-party doctor`: checks everything that this party needs to take part, and says how to repair what is wrong.

It does not know runs. Privacy: it asks the curator only for its health, the roster and this party's receipts, and
tells its findings to nobody but the data owner. About rows it says no more than `check`.
"""

import asyncio
import platform
import shutil
import sqlite3
import ssl
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import httpx
from cryptography import x509

from party import views
from party.answering.refusals import MOST_FRUITLESS
from party.answering.run_rows import left_behind
from party.books.budget import added
from party.commands.checks import checked
from party.commands.line import Seams, call, curator_of
from party.commands.ready import hindrance
from party.commands.result import Result
from party.commands.setup import roster_of
from party.curator_link.tls import trusting
from party.curator_link.way import Way, inspector, way_to
from party.home import keys, settings, tokens
from party.home.home import OpenHome, open_home
from party.home.layout import Home
from party.home.modes import engine_open_to_others, open_to_others
from party.home.page_address import Local
from party.home.settings import CuratorSettings, pinned_ca
from party.rollback import WAY_OUT, earlier, earlier_words, lost, lost_by_log
from protocol.messages.http import SentReceipt
from protocol.messages.versions import SPOKEN
from protocol.services import diagnosis
from protocol.services.connection import distrust, inspected, is_loopback, no_answer
from protocol.services.diagnosis import CA_SOON_DAYS, SOON_DAYS, Finding, Look

_SECONDS = 10.0
_LONGEST_DATE = 100
_DAY = 24 * 3600


def doctor(home: Home, chosen: Any) -> Result:
    looks: list[tuple[str, Look]] = [
        ("versions", _versions),
        ("home", lambda: _home(home)),
        ("tokens", lambda: _tokens(home)),
        ("settings", lambda: _settings(home)),
        ("source", lambda: _sources(home)),
        ("accounts", lambda: _accounts(home)),
        ("ledger", lambda: _ledger(home)),
        ("audit log", lambda: _audit(home)),
        ("connection", lambda: _connection(home)),
        ("curator", lambda: _curator(home, chosen.seams)),
    ]
    found = diagnosis.examine(looks)
    return Result(diagnosis.data_of(found), [one.line for one in found], diagnosis.code_of(found))


def _versions() -> Iterator[Finding]:
    what = f"dp-subn {version('dp-subn')}, Python {platform.python_version()}, {ssl.OPENSSL_VERSION}"
    yield Finding("versions", "ok", f"{what}, protocol {SPOKEN.in_words()}")


def _home(home: Home) -> Iterator[Finding]:
    held = keys.load(home.keys)
    with tempfile.TemporaryFile(dir=home.path) as file:
        file.write(b"writable?")
        file.flush()
    yield Finding("home", "ok", f"{home.path} is writable and has keys")
    own = [home.path] if home.path.stat().st_mode & 0o077 else []
    yield diagnosis.modes([str(path) for path in (*own, *open_to_others(home))])
    yield diagnosis.disk(shutil.disk_usage(home.path).free, str(home.path))
    if keys.has_successor(home.keys):
        yield Finding("keys", "warn", "a change of keys was interrupted", "finish it with `subn-party rotate`")
    elif held.retired:
        yield Finding("keys", "ok", f"changed {len(held.retired)} times")


def _tokens(home: Home) -> Iterator[Finding]:
    names = [name for name in (tokens.TOKEN_FILE, tokens.METRICS_TOKEN_FILE) if (home.path / name).exists()]
    for name in names:
        tokens.token_of(home.path, name)
    yield Finding("tokens", "ok", f"{' and '.join(names)} as written" if names else "none has been needed yet")


def _settings(home: Home) -> Iterator[Finding]:
    found = settings.load(home)
    yield Finding("settings", "ok", f"{home.settings} is valid; accept = {found.policy.accept}")
    for name, dataset in found.datasets.items():
        if found.policy.epsilon_per_run > dataset.epsilon_total:
            what = f"one run may cost {found.policy.epsilon_per_run}, all runs on {name} only {dataset.epsilon_total}"
            yield Finding("policy", "warn", what, "lower epsilon_per_run, or the first run may spend everything")
    if "replace" in found.policy.updates:
        what = 'updates allow "replace", which other parties can see through'
        yield Finding("policy", "warn", what, "remove it, unless you trust every other party")
    if not found.policy.smallest_insiders:
        what = "smallest_insiders is 0: runs need not protect your rows from any other party"
        yield Finding("policy", "warn", what, "set it to 1, unless you trust every other party")
    yield from _pages(home, found.local)


def _pages(home: Home, local: Local) -> Iterator[Finding]:
    what = f"your pages listen at {local.host} port {local.port}, for browsers that ask for {' or '.join(local.names)}"
    local.server_context(home.path)
    is_open = not local.speaks_tls and not is_loopback(local.host)
    mend = "publish this port of the container at 127.0.0.1 of its host only" if is_open else ""
    yield Finding("pages", "ok", what, mend)
    if local.certificate is not None:
        shown = x509.load_pem_x509_certificates((home.path / local.certificate).read_bytes())[0]
        days = (shown.not_valid_after_utc - datetime.now(UTC)).days
        mend = "put a newer one in its place, and restart `subn-party serve`"
        yield diagnosis.lasting("pages", days, SOON_DAYS, mend)


def _sources(home: Home) -> Iterator[Finding]:
    with open_home(home) as opened:
        for name, dataset in opened.settings.datasets.items():
            if dataset.engine and (files := engine_open_to_others(dataset.source)):
                yield diagnosis.modes([str(path) for path in files])
            found = checked(opened, name)
            if found["fits"]:
                yield Finding("source", "ok", f"{name}: {found['rows']:,} rows fit")
                if "engine" in found:
                    yield Finding("engine", "ok", f"{name}: {found['engine']}")
            else:
                mend = "`subn-party check` shows all problems"
                yield Finding("source", "bad", f"{name} does not fit: {' '.join(found['why'].splitlines())}", mend)

        for table, where in left_behind(opened):
            what = f"the table {table} of a run that is over may still be in {where}"
            mend = "the next start removes it if party.toml leads there; else remove it, and the note of it in rows/"
            yield Finding("engine", "warn", what, mend)


def _accounts(home: Home) -> Iterator[Finding]:
    with open_home(home) as opened:
        for unclear in opened.unclear_accounts():
            yield Finding("accounts", "bad", unclear, f"correct {home.settings}; the service does not start before")
        for one in views.accounts(opened).values():
            if views.sharing(one):
                yield Finding("accounts", "ok", f"{views.sharing(one)}, {one['account']!r}")


def _ledger(home: Home) -> Iterator[Finding]:
    if not home.ledger.exists():
        yield Finding("ledger", "ok", "nothing has been spent yet")
        return
    with open_home(home) as opened:
        budgets = {one.name: opened.budget(one).left for one in opened.accounts}
        entries = sum(1 for _ in opened.ledger.entries())
        stopped, fruitless = opened.ledger.stopped(), opened.ledger.fruitless()
    line = sqlite3.connect(f"file:{home.ledger}?mode=ro", uri=True)
    try:
        whole = line.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        whole = str(error)
    finally:
        line.close()
    if whole != "ok":
        yield Finding("ledger", "bad", f"{home.ledger} is damaged: {whole}", "stop, and restore the newest backup")
        return
    yield Finding("ledger", "ok", f"{entries} answers, undamaged")
    if stopped:
        yield Finding("ledger", "bad", f"the service must not start: {stopped}", WAY_OUT)
    if fruitless >= MOST_FRUITLESS:
        what = f"{fruitless:,} requests in a row came to nothing, so that no run is joined without your decision"
        yield Finding("requests", "warn", what, "ask the operator why")
    for name, left in budgets.items():
        mend = "raise epsilon_total only if you mean to spend more on these people's data"
        yield Finding("budget", "ok" if left else "warn", f"{name}: epsilon {left} left", "" if left else mend)


def _audit(home: Home) -> Iterator[Finding]:
    with open_home(home) as opened:
        problems, missing = opened.audit_problems(), lost_by_log(opened)
    if not problems:
        yield Finding("audit log", "ok", "its chain of hashes is unbroken, and as long as the ledger says")
    for problem in problems:
        yield Finding("audit log", "bad", problem, "keep a copy of it as it is, and find out who changed it")
    if missing:
        what = f"the audit log tells of {len(missing)} answers that the ledger lacks: the ledger was set back"
        yield Finding("ledger", "bad", what, f"restore the newest ledger, or {WAY_OUT}")


def _connection(home: Home) -> Iterator[Finding]:
    settled = settings.load(home)
    found = settled.curator
    if found is None:
        yield _not_enrolled(home)
        return
    ca, there, way = pinned_ca(home, found), urlsplit(found.url), way_to(found.url, settled.network, home.path)
    try:
        yield from _clock_and_certificate(found, ca, way)
    except httpx.HTTPError as error:
        why = distrust(found.url, error)
        issuer = asyncio.run(inspector(found.url, way)) if why is not None else None
        if why is None:
            mend = f"let this machine reach {there.hostname} port {there.port or 443}: name server, firewall (outwards)"
            yield Finding("connection", "bad", no_answer(found.url, error) + way.words, mend)
        else:
            yield Finding("connection", "bad", why if issuer is None else inspected(found.url, issuer))
        return
    if ca:
        for one in trusting(ca).get_ca_certs():
            days = int((ssl.cert_time_to_seconds(str(one["notAfter"])) - time.time()) // _DAY)
            yield diagnosis.lasting(
                "pinned CA", days, CA_SOON_DAYS, "ask the operator; then `subn-party recognise PIN`"
            )


def _not_enrolled(home: Home) -> Finding:
    """Tell why `subn-party start` could not enrol, if it tried: in a container nobody reads its log first."""
    failed = hindrance(home, since=0.0)
    if failed is None:
        return Finding(
            "connection", "warn", "this party is not enrolled", "`subn-party enrol` with the operator's code"
        )
    mend = "correct this; `subn-party start` tries again every five seconds"
    return Finding("connection", "bad", f"this party is not enrolled, because {failed[0]}", mend)


def _clock_and_certificate(found: CuratorSettings, ca: str, way: Way) -> Iterator[Finding]:
    """Ask for the curator's health on the way that the service takes."""
    line = httpx.Client(verify=trusting(ca, way.bundle), timeout=_SECONDS, **way.options)
    with line, line.stream("GET", f"{found.url.rstrip('/')}/healthz") as answer:
        secure = answer.extensions["network_stream"].get_extra_info("ssl_object")
        speaks = "no TLS, on this machine" if secure is None else secure.version()
        shown = {} if secure is None else secure.getpeercert()
        said = answer.headers.get("Date")
    yield Finding("connection", "ok", f"{found.url} answers{way.words} ({speaks})")
    if said is not None:
        yield diagnosis.clock(time.time() - parsedate_to_datetime(said[:_LONGEST_DATE]).timestamp(), "the curator's")
    if shown:
        days = int((ssl.cert_time_to_seconds(str(shown["notAfter"])) - time.time()) // _DAY)
        yield diagnosis.lasting("certificate", days, SOON_DAYS, "the operator: `subn-curator certificate renew`")


def _curator(home: Home, seams: Seams) -> Iterator[Finding]:
    if settings.load(home).curator is None:
        return
    with open_home(home) as opened:
        receipts = call(curator_of(opened, seams, tries=1), lambda line: line.receipts())
        yield Finding("enrolment", "ok", f"the curator knows {opened.curator.name}, and signs with the key noted")
        yield from _receipts(opened, receipts)
        for peer in roster_of(opened, seams):
            name = peer["name"]
            if peer["noted"] is not None and not peer["compared"]:
                mend = "ask its data owner; if the data owner changed the keys, correct the section in party.toml"
                yield Finding("peers", "bad", f"{name} has other keys than you have noted", mend)
            elif not peer["compared"] and not peer["revoked"]:
                mend = f"compare it by telephone, then `subn-party trust`: {peer['words']}"
                yield Finding("peers", "warn", f"the fingerprint of {name} is not compared", mend)


def _receipts(opened: OpenHome, receipts: list[SentReceipt]) -> Iterator[Finding]:
    missing = lost(opened, receipts)
    if missing:
        what = f"the curator holds {len(missing)} answers that the ledger lacks: the ledger was set back"
        yield Finding("receipts", "bad", what, f"restore the newest ledger, or {WAY_OUT}")
    else:
        yield Finding("receipts", "ok", f"the ledger knows all {len(receipts)} answers that the curator holds")
    before, noted = earlier(opened, receipts), added(*(one.before for one in opened.accounts))
    if before.spent[0] > noted[0] or before.spent[1] > noted[1]:
        yield Finding("earlier keys", "warn", *earlier_words(before))
