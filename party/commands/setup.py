"""The commands that set a party up: keys, enrolment, other parties and offers.

It does not know the command line's words or how results are printed.
"""

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crypto.signing import fingerprint
from party import source
from party.books.audit import Audit
from party.commands.line import TRIES, Seams, call, curator_of
from party.commands.result import Result, reading_line, unknown_dataset
from party.curator_link.client import Curator
from party.curator_link.introduction import introduced
from party.curator_link.way import way_to
from party.errors import Declined, SettingsError, Untrusted
from party.files import write_file
from party.home import keys, settings
from party.home.home import OpenHome, open_home
from party.home.keys import OwnKeys, own_fingerprint, peer_fingerprint
from party.home.layout import Home
from party.home.lock import made_alone, served_alone
from party.home.settings import CuratorSettings, schema_of
from party.rollback import earlier, earlier_words
from protocol.messages.fingerprint_words import fits, spoken
from protocol.messages.pins import checked_pin, parted
from protocol.text import alike


def init(home: Home, _chosen: Any) -> Result:
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with made_alone(home.path):  # a service that starts at this moment makes its home too
        is_new = not (home.keys / keys.CURRENT).exists()
        own = keys.make(home.keys) if is_new else keys.load(home.keys)
        if not home.settings.exists():
            write_file(home.settings, settings.template())
        if is_new:
            Audit(home.audit).append("made", fingerprint=own_fingerprint(own))
    data = {"home": str(home.path), "settings": str(home.settings), "fingerprint": own_fingerprint(own), "new": is_new}
    lines = [
        f"{'made' if is_new else 'kept'} this party's keys in {home.keys}: keep a backup that nobody else can read",
        f"your fingerprint: {own_fingerprint(own)}",
        f"in words:         {spoken(own_fingerprint(own))}",
        f"next: write your data and rules into {home.settings}, then run `subn-party check`",
    ]
    return Result(data, lines)


def enrol(home: Home, chosen: Any) -> Result:
    found, own = settings.load(home), keys.load(home.keys)
    name, url = chosen.name or _environment("NAME"), chosen.curator or _environment("CURATOR")
    if found.curator is not None:
        return _enrolled_before(home, found.curator, name, url)
    _check_enrolment(name, url)
    secret, pin = parted(chosen.code or _environment("CODE"))
    way = way_to(url, found.network, home.path)
    key, ca = introduced(url, pin, chosen.seams.get("transport"), way)
    newcomer = Curator(url, name, own.identity.signing, key, ca=ca, way=way, tries=TRIES, **chosen.seams)
    call(newcomer, lambda line: line.enrol(secret, own.identity.exchange.public))
    settings.add_curator(home, name, url, key, ca)
    with open_home(home) as opened:
        opened.audit.append("enrolled", name=name, url=url, curator=fingerprint(key))
        roster = roster_of(opened, chosen.seams)
        before = earlier(opened, call(curator_of(opened, chosen.seams), lambda line: line.receipts()))
    data = {"name": name, "fingerprint": own_fingerprint(own), "curator": fingerprint(key), "peers": roster}
    data["earlier_keys"] = {"answers": before.answers, "epsilon": str(before.spent[0]), "delta": str(before.spent[1])}
    lines = [
        f"enrolled as {name}",
        f"{'curator':20} {fingerprint(key)}   proved by your code",
        f"{name + ' (you)':20} {own_fingerprint(own)}   give it to the other data owners",
        f"{'':20} {spoken(own_fingerprint(own))}",
        *_peer_lines(roster),
        *(earlier_words(before) if before.answers else ()),
    ]
    return Result(data, lines)


def _enrolled_before(home: Home, found: CuratorSettings, name: str, url: str) -> Result:
    """Confirm an earlier enrolment. Retry safety: a container may enrol at every start; a code is needed only once."""
    if (found.name, found.url) != (name, url):
        raise SettingsError(
            f"{home.settings}: enrolled at {found.url} as {found.name} already; remove [curator] to start anew"
        )
    return Result({"name": name, "enrolled": "before"}, [f"enrolled as {name} already; nothing was done"])


def recognise(home: Home, chosen: Any) -> Result:
    """Pin the same curator anew, after its operator has replaced its key or its CA and given out the new pin."""
    pin = checked_pin(chosen.pin)
    with open_home(home) as opened:
        way = way_to(opened.curator.url, opened.settings.network, home.path)
        key, ca = introduced(opened.curator.url, pin, chosen.seams.get("transport"), way)
        settings.change_curator(home, key, ca)
        opened.audit.append("recognised", curator=fingerprint(key), pin=pin)
    lines = [f"{opened.curator.url} is the curator {fingerprint(key)} from now on; restart `subn-party serve`"]
    return Result({"curator": fingerprint(key), "pin": pin}, lines)


def peers(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        roster, name, own = roster_of(opened, chosen.seams), opened.curator.name, own_fingerprint(opened.keys)
    lines = [f"{name + ' (you)':20} {own}", f"{'':20} {spoken(own)}", *_peer_lines(roster)]
    return Result({"name": name, "fingerprint": own, "peers": roster}, lines)


def trust(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        shown = {peer["name"]: peer["fingerprint"] for peer in roster_of(opened, chosen.seams)}
    if chosen.name not in shown:
        raise SettingsError(f"the curator knows no other party {chosen.name!r}: `subn-party peers` lists them")
    if not fits(chosen.fingerprint, shown[chosen.name]):
        raise Untrusted(
            f"the curator shows the fingerprint {shown[chosen.name]} for {chosen.name} ({spoken(shown[chosen.name])}), "
            "not the one that you typed: compare again; somebody may be intercepting the connection; nothing was noted"
        )
    settings.add_peer(home, chosen.name, shown[chosen.name])
    line = f"noted the fingerprint of {chosen.name}; it counts from the next request on"
    return Result({"name": chosen.name, "fingerprint": shown[chosen.name]}, [line])


def offer(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        names = chosen.datasets or list(opened.settings.datasets)
        unknown = [name for name in names if name not in opened.settings.datasets]
        if unknown:
            raise unknown_dataset(opened, unknown[0])
        offered = {name: _offer(opened, name, chosen.seams) for name in names}
    lines = [
        f"offered {one['rows']:,} rows of {name} (schema {one['schema'][:12]}...)" for name, one in offered.items()
    ]
    return Result({"offered": offered}, lines)


def rotate(home: Home, chosen: Any) -> Result:
    """Change the keys. Retry safety: the new keys are on disk before they are announced, and in force only after."""
    with served_alone(home.lock), open_home(home) as opened:
        active = [request.run for request in opened.ledger.requests("active")]
        if active:
            raise SettingsError(f"{active[0]} is under way with the present keys: wait for its end, then rotate")
        was_announced = keys.has_successor(home.keys)
        following = keys.successor(home.keys)
        if not (was_announced and _is_in_force(opened, following, chosen.seams)):
            call(curator_of(opened, chosen.seams), lambda line: line.rotate(following.identity))
        keys.promote(home.keys)
        opened.audit.append("rotated", fingerprint=own_fingerprint(following))
    found = own_fingerprint(following)
    return Result(
        {"fingerprint": found},
        [f"new keys are in force; give the other data owners your new fingerprint: {found}", spoken(found)],
    )


def _environment(name: str) -> str:
    """Read a setting from the environment, or from a file that the environment names, as in containers."""
    variable = f"SUBN_PARTY_{name}"
    file = os.environ.get(f"{variable}_FILE")
    said = os.environ.get(variable) or (Path(file).read_text(encoding="utf-8").strip() if file else "")
    if not said:
        raise SettingsError(f"--{name.lower()} is missing: give it, or set {variable} or {variable}_FILE")
    return said


def _check_enrolment(name: str, url: str) -> None:
    """Check name and URL before the code is used up."""
    try:
        CuratorSettings(name=name, url=url, key="0" * 64)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        wrong = {"name": f"--name {name!r}", "url": f"--curator {url!r}"}[field]
        raise SettingsError(
            f"{wrong} is not valid: expected a name, and a URL such as https://curator.example:8460"
        ) from None


def roster_of(opened: OpenHome, seams: Seams) -> list[dict[str, Any]]:
    """All other parties, with their noted fingerprints."""
    found = call(curator_of(opened, seams), lambda line: line.roster())
    names = sorted({*opened.settings.peers, *(peer.name for peer in found)})
    return [
        {
            "name": peer.name,
            "fingerprint": shown,
            "words": spoken(shown),
            "revoked": peer.revoked,
            "noted": noted.fingerprint if noted is not None else None,
            "compared": noted is not None and noted.fingerprint == shown,
            "alike": alike(peer.name, names),
        }
        for peer in found
        if peer.name != opened.curator.name
        for shown in [peer_fingerprint(bytes.fromhex(peer.signing_key), bytes.fromhex(peer.exchange_key))]
        for noted in [opened.settings.peers.get(peer.name)]
    ]


def _peer_lines(roster: list[dict[str, Any]]) -> list[str]:
    return [
        line
        for peer in roster
        for line in (
            f"{peer['name']:20} {peer['fingerprint']}   {_standing(peer)}",
            f"{'':20} {peer['words']}",
            *(f"{'':20} CAREFUL: this name can be taken for {other}" for other in peer["alike"]),
        )
    ]


def _standing(peer: dict[str, Any]) -> str:
    if peer["revoked"]:
        return "revoked by the operator"
    if peer["compared"]:
        return "compared"
    if peer["noted"] is not None:
        return f"DIFFERS from the fingerprint that you have noted ({peer['noted']}): ask its data owner"
    return f'compare with its data owner, then: subn-party trust "{peer["name"]}" "FINGERPRINT"'


def _offer(opened: OpenHome, name: str, seams: Seams) -> dict[str, Any]:
    dataset = opened.settings.datasets[name]
    schema = schema_of(opened.home, name, dataset)
    rows, _ = source.table(opened.home.path, dataset, schema, opened.keys.choosing, reading_line())
    bound = dataset.checked_bound
    call(curator_of(opened, seams), lambda line: line.offer(name, schema.to_json(), rows, bound))
    opened.audit.append("offered", dataset=name, schema=schema.hash)
    return {"rows": rows, "schema": schema.hash, "rows_per_person": bound}


def _is_in_force(opened: OpenHome, following: OwnKeys, seams: Seams) -> bool:
    """Whether an interrupted rotation had reached the curator."""
    try:
        call(curator_of(opened, seams, following), lambda line: line.my_runs())
    except Declined:
        return False
    return True
