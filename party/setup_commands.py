"""The commands with which a party is set up: keys, enrolment, other parties, a check of everything, offers.

It does not know the command line's words or how results are printed.
"""

from typing import Any

from pydantic import ValidationError

from crypto.signing import fingerprint
from party import keys, settings, source
from party.audit import Audit
from party.client import Curator, Declined, TalkError, Untrusted
from party.errors import SettingsError
from party.house import House, opened
from party.keys import OwnKeys
from party.lock import served_alone
from party.policy import peer_fingerprint
from party.said import TRIES, Said, call, curator_of, line_options, own_fingerprint, unknown_dataset
from party.settings import CuratorSettings, Home, schema_of, write_new
from protocol.errors import DataError


def init(home: Home, _chosen: Any) -> Said:
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_new = not (home.keys / keys.CURRENT).exists()
    own = keys.make(home.keys) if is_new else keys.load(home.keys)
    if not home.settings.exists():
        write_new(home.settings, settings.template())
    if is_new:
        Audit(home.audit).append("made", fingerprint=own_fingerprint(own))
    data = {"home": str(home.path), "settings": str(home.settings), "fingerprint": own_fingerprint(own), "new": is_new}
    lines = [
        f"{'made' if is_new else 'kept'} this party's keys in {home.keys}: back them up where nobody else reads",
        f"your fingerprint: {own_fingerprint(own)}",
        f"next: say in {home.settings} which data there is and what is allowed; then `subn-party check`",
    ]
    return Said(data, lines)


def enrol(home: Home, chosen: Any) -> Said:
    found, own = settings.load(home), keys.load(home.keys)
    if found.curator is not None:
        raise SettingsError(f"{home.settings}: enrolled at {found.curator.url} already; remove [curator] to start anew")
    _check_enrolment(chosen)
    newcomer = Curator(chosen.curator, chosen.name, own.identity.signing, None, tries=TRIES, **line_options)
    key = call(newcomer, lambda line: line.enrol(chosen.code, own.identity.exchange.public))
    if chosen.fingerprint is not None and _digits(chosen.fingerprint) != _digits(fingerprint(key)):
        raise Untrusted(
            f"the curator at {chosen.curator} has the fingerprint {fingerprint(key)}, not the one that you were told: "
            "nothing was noted; ask its operator, and have this enrolment revoked"
        )
    settings.add_curator(home, chosen.name, chosen.curator, key.hex())
    with opened(home) as house:
        house.audit.append("enrolled", name=chosen.name, url=chosen.curator, curator=fingerprint(key))
        roster = _roster(house)
    data = {"name": chosen.name, "fingerprint": own_fingerprint(own), "curator": fingerprint(key), "peers": roster}
    lines = [
        f"enrolled as {chosen.name}",
        f"{'curator':20} {fingerprint(key)}   compare with its operator, by voice or mail",
        f"{chosen.name + ' (you)':20} {own_fingerprint(own)}   tell it to the other data owners",
        *_peer_lines(roster),
    ]
    return Said(data, lines)


def peers(home: Home, _chosen: Any) -> Said:
    with opened(home) as house:
        roster, name, own = _roster(house), house.curator.name, own_fingerprint(house.keys)
    lines = [f"{name + ' (you)':20} {own}", *_peer_lines(roster)]
    return Said({"name": name, "fingerprint": own, "peers": roster}, lines)


def trust(home: Home, chosen: Any) -> Said:
    with opened(home) as house:
        shown = {peer["name"]: peer["fingerprint"] for peer in _roster(house)}
    if chosen.name not in shown:
        raise SettingsError(f"the curator knows no other party {chosen.name!r}: `subn-party peers` lists them")
    if _digits(chosen.fingerprint) != _digits(shown[chosen.name]):
        raise Untrusted(
            f"the curator shows the fingerprint {shown[chosen.name]} for {chosen.name}, not what you were told: "
            "one of you was told wrong, or somebody stands in between; nothing was noted"
        )
    settings.add_peer(home, chosen.name, shown[chosen.name])
    return Said({"name": chosen.name, "fingerprint": shown[chosen.name]}, [f"noted the fingerprint of {chosen.name}"])


def check(home: Home, _chosen: Any) -> Said:
    with opened(home) as house:
        datasets = {name: _checked(house, name) for name in house.settings.datasets}
        for one in datasets.values():
            if "schema" in one:
                settings.dataset_for(home, house.settings, one["schema"])  # refuses two data sets of one schema
        curator = _curator_answers(house)
    fits = all(one["fits"] for one in datasets.values())
    lines = [line for name, one in datasets.items() for line in _check_lines(name, one)]
    lines.append(f"curator: {curator['what']}")
    code = 2 if not fits else 1 if curator["reachable"] is False else 0
    return Said({"datasets": datasets, "curator": curator, "fits": fits}, lines, code)


def offer(home: Home, chosen: Any) -> Said:
    with opened(home) as house:
        names = chosen.datasets or list(house.settings.datasets)
        unknown = [name for name in names if name not in house.settings.datasets]
        if unknown:
            raise unknown_dataset(house, unknown[0])
        offered = {name: _offer(house, name) for name in names}
    lines = [
        f"offered {one['rows']:,} rows of {name} (schema {one['schema'][:12]}...)" for name, one in offered.items()
    ]
    return Said({"offered": offered}, lines)


def rotate(home: Home, _chosen: Any) -> Said:
    """Retry safety: the new keys are on disk before they are announced, and in force only after."""
    with served_alone(home.lock), opened(home) as house:
        active = [request.run for request in house.ledger.requests("active")]
        if active:
            raise SettingsError(f"{active[0]} is under way with the present keys: wait for its end")
        was_announced = keys.has_successor(home.keys)
        following = keys.successor(home.keys)
        if not (was_announced and _is_in_force(house, following)):
            call(curator_of(house), lambda line: line.rotate(following.identity))
        keys.promote(home.keys)
        house.audit.append("rotated", fingerprint=own_fingerprint(following))
    found = own_fingerprint(following)
    return Said(
        {"fingerprint": found}, [f"new keys are in force; tell the other data owners your fingerprint: {found}"]
    )


def _check_enrolment(chosen: Any) -> None:
    """Before the code is used up."""
    try:
        CuratorSettings(name=chosen.name, url=chosen.curator, key="0" * 64)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        wrong = {"name": f"--name {chosen.name!r}", "url": f"--curator {chosen.curator!r}"}[field]
        raise SettingsError(f"{wrong} cannot be: expected a name, and a URL such as https://curator.example") from None


def _digits(text: str) -> str:
    return "".join(text.split()).lower()


def _roster(house: House) -> list[dict[str, Any]]:
    """All other parties, with what is noted of them."""
    found = call(curator_of(house), lambda line: line.roster())
    return [
        {
            "name": peer.name,
            "fingerprint": shown,
            "revoked": peer.revoked,
            "noted": noted.fingerprint if noted is not None else None,
            "compared": noted is not None and noted.fingerprint == shown,
        }
        for peer in found
        if peer.name != house.curator.name
        for shown in [peer_fingerprint(bytes.fromhex(peer.signing_key), bytes.fromhex(peer.exchange_key))]
        for noted in [house.settings.peers.get(peer.name)]
    ]


def _peer_lines(roster: list[dict[str, Any]]) -> list[str]:
    return [f"{peer['name']:20} {peer['fingerprint']}   {_standing(peer)}" for peer in roster]


def _standing(peer: dict[str, Any]) -> str:
    if peer["revoked"]:
        return "revoked by the operator"
    if peer["compared"]:
        return "compared"
    if peer["noted"] is not None:
        return f"NOT the one you have noted ({peer['noted']}): its keys have changed, or are another's"
    return f'compare with its data owner, then: subn-party trust "{peer["name"]}" "FINGERPRINT"'


def _checked(house: House, name: str) -> dict[str, Any]:
    """All problems of one data set before its rules, and whether it fits with them."""
    dataset = house.settings.datasets[name]
    try:
        schema = schema_of(house.home, name, dataset)
        found = source.check(house.home.path, dataset, schema)
    except (SettingsError, DataError) as error:
        return {"fits": False, "why": str(error), "problems": []}
    problems = [{"column": one.column, "what": one.what, "count": one.count} for one in found.problems]
    checked = {"fits": True, "why": "", "rows": found.rows, "schema": schema.hash, "problems": problems}
    try:
        source.load(house.home.path, dataset, schema)
    except DataError as error:
        checked |= {"fits": False, "why": str(error)}
    return checked


def _check_lines(name: str, found: dict[str, Any]) -> list[str]:
    head = f"{name}: {found['rows']:,} rows" if "rows" in found else f"{name}:"
    lines = [f"  {one['count']:,} times in {one['column'] or 'whole rows'}: {one['what']}" for one in found["problems"]]
    if not found["fits"]:
        return [
            f"{head} DO NOT FIT" if "rows" in found else f"{head} cannot be read",
            *lines,
            f"  first: {found['why']}",
        ]
    return [f"{head} fit{' by your out_of_range rules' if lines else ''}", *lines]


def _curator_answers(house: House) -> dict[str, Any]:
    if house.settings.curator is None:
        return {"reachable": None, "what": "not enrolled yet"}
    try:
        call(curator_of(house, tries=1), lambda line: line.my_runs())
    except TalkError as error:
        return {"reachable": False, "what": str(error)}
    return {"reachable": True, "what": f"{house.curator.url} answers, and knows {house.curator.name}"}


def _offer(house: House, name: str) -> dict[str, Any]:
    dataset = house.settings.datasets[name]
    schema = schema_of(house.home, name, dataset)
    rows = len(source.load(house.home.path, dataset, schema)[0])
    call(curator_of(house), lambda line: line.offer(name, schema.to_json(), rows))
    house.audit.append("offered", dataset=name, schema=schema.hash)
    return {"rows": rows, "schema": schema.hash}


def _is_in_force(house: House, following: OwnKeys) -> bool:
    """Whether a rotation that was broken off had reached the curator."""
    try:
        call(curator_of(house, following), lambda line: line.my_runs())
    except Declined:
        return False
    return True
