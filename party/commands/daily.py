"""The commands of daily work: decisions, the account, the audit log, copies of the home.

It does not know the command line's words or how results are printed.
"""

import json
from typing import Any

from party import views as showing
from party.books import audit as audit_log
from party.commands.result import Said, unknown_dataset
from party.home import backup as backups
from party.home.home import opened
from party.home.keys import own_fingerprint
from party.home.settings import Home, write_new


def requests(home: Home, chosen: Any) -> Said:
    with opened(home) as house:
        if chosen.request is not None:
            facts = [showing.described(house, house.known(chosen.request))]
        else:
            found = [one for one in house.ledger.requests() if chosen.all or one.state != "ended"]
            facts = [showing.listed(house, request) for request in found]
    lines = [line for one in facts for line in (*showing.in_words(one), "")]
    return Said(facts, lines or ["nobody asks for anything"])


def accept(home: Home, chosen: Any) -> Said:
    return _decide(home, chosen.request, True, "")


def refuse(home: Home, chosen: Any) -> Said:
    return _decide(home, chosen.request, False, chosen.reason)


def ledger(home: Home, chosen: Any) -> Said:
    if chosen.action == "acknowledge":
        from party.commands.acknowledge import acknowledge

        return acknowledge(home, chosen.dataset)
    with opened(home) as house:
        accounts = showing.accounts(house)
        entries = [showing.line_of(entry) for entry in house.ledger.entries(dataset=chosen.dataset)]
        if chosen.dataset is not None and chosen.dataset not in accounts:
            raise unknown_dataset(house, chosen.dataset)
    shown = {name: one for name, one in accounts.items() if chosen.dataset in (None, name)}
    return Said({"accounts": shown, "entries": entries}, [*_account_lines(shown), *_entry_lines(entries)])


def audit(home: Home, chosen: Any) -> Said:
    problems = audit_log.verify(home.audit)
    if chosen.action == "verify":
        count = sum(1 for _ in audit_log.entries(home.audit)) if not problems else 0
        lines = problems or [f"{home.audit}: {count} entries, the chain is whole"]
        return Said({"problems": problems, "entries": count}, lines, 1 if problems else 0)
    found = [entry for entry in audit_log.readable(home.audit) if audit_log.holds(entry, chosen.search)]
    last = found[-chosen.last :] if chosen.last > 0 else []
    lines = [json.dumps(entry, ensure_ascii=False) for entry in last]
    return Said({"entries": last, "problems": problems}, [*lines, *(f"BROKEN: {problem}" for problem in problems)])


def export(home: Home, chosen: Any) -> Said:
    with opened(home) as house:
        data = {
            "version": 1,
            "party": house.settings.curator.name if house.settings.curator else None,
            "fingerprint": own_fingerprint(house.keys),
            "accounts": showing.accounts(house),
            "requests": [showing.listed(house, request) for request in house.ledger.requests()],
            "entries": [showing.line_of(entry) for entry in house.ledger.entries()],
            "audit": list(audit_log.readable(home.audit)),
            "audit_problems": audit_log.verify(home.audit),
        }
        house.audit.append("exported", what=str(chosen.out or "standard output"))
    text = json.dumps(data, ensure_ascii=False, indent=2)
    if chosen.out is None:
        return Said(data, [text])
    write_new(chosen.out, text + "\n")
    return Said({"written": str(chosen.out)}, [f"written to {chosen.out}"])


def backup(home: Home, chosen: Any) -> Said:
    made = backups.make(home, chosen.file)
    lines = [
        f"written to {chosen.file}: {len(made['files'])} files, and no row of any table",
        "it holds this party's secret keys: keep it where nobody else reads, as you keep the home",
    ]
    return Said({"written": str(chosen.file), **made}, lines)


def restore(home: Home, chosen: Any) -> Said:
    found = backups.restore(home, chosen.file)
    lines = [
        f"{home.path} is as it was at {found['made']}",
        "if it has answered anything since, `subn-party serve` stops until that is charged: "
        "`subn-party ledger acknowledge`",
    ]
    return Said({"restored": str(home.path), **found}, lines)


def _decide(home: Home, run: str, is_accepted: bool, reason: str) -> Said:
    with opened(home) as house:
        request = house.decide(run, is_accepted, reason, "command line")
    lines = [f"{run} is {request.state}; the service tells the curator within seconds, or when it is started"]
    return Said({"run": run, "state": request.state}, lines)


def _account_lines(accounts: dict[str, dict[str, str]]) -> list[str]:
    return [
        f"{name}: {showing.amount(one[f'{kind}total'])}{what} for ever, {showing.amount(one[f'{kind}spent'])} spent, "
        f"{showing.amount(one[f'{kind}reserved'])} set aside, {showing.amount(one[f'{kind}left'])} left"
        for name, one in accounts.items()
        for kind, what in (("", ""), ("delta_", " of delta"))
        if not kind or one["delta_total"] != "0" or one["delta_spent"] != "0"
    ]


def _entry_lines(entries: list[dict[str, Any]]) -> list[str]:
    return [
        f"{one['at']}  {one['run']}  {one['step']:16} {showing.amount(one['charge']):>10}  {one['mechanism']}"
        for one in entries
    ]
