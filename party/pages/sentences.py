"""Sentences for the data owner: a request, the standing rules, and the events of the audit log.

It does not know pages or the command line. The numbers come from `party.views` as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from party.books.budget import Account
from party.home.settings import Dataset, Policy, Settings
from party.views import amount

_RULE_WORDS = {"refuse": "is refused", "clamp": "is moved to the nearest bound", "missing": "counts as missing"}
EVENT_WORDS = {
    "made": "Your keys were made.",
    "enrolled": "Enrolled as {name} with the curator at {url}.",
    "recognised": "A new pin confirmed the curator; its key is {curator} from now on.",
    "rotated": "New keys are in force.",
    "started": "The service was started.",
    "stopped": "The service stopped: {reason}.",
    "offered": "The curator was told the number of rows of {dataset}.",
    "asked": "Run {run} was requested, at a price of {price} of the budget of {dataset}.",
    "judged": "The verdict of your rules on run {run}: {decision}.",
    "decided": "Your decision on run {run}: {decision} ({by}).",
    "answered": "Step {step} of run {run} was answered: {bytes} bytes left, at a price of {charge}.",
    "refused": "Step {step} of run {run} was refused: {reason}",
    "settled": "Run {run} ended: {outcome}.",
    "restored": "The home was restored from a backup of {made}.",
    "rolled back": "The ledger was set back: it lacks {answers} answers that your service has signed.",
    "acknowledged": "Step {step} of run {run}, which the ledger lacked, was charged to {dataset}: {charge}.",
    "exported": "Requests, accounts and this log were exported to {what}.",
    "mended": "An unfinished last line of this log was removed.",
    "continued": "The end of this log was lost: it had {lines} lines.",
    "signed in": "Someone signed in to these pages.",
    "compared": "The table of run {run} was compared with your own rows on this machine.",
}


def headline(facts: Mapping[str, Any]) -> str:
    """One sentence about a request: the curator, what it asks for, and the price."""
    is_open = facts["state"] in ("asked", "accepted")
    asked = f"The curator at {facts['curator']['url']} {'asks' if is_open else 'asked'} for {_wanted(facts)}"
    if facts["dataset"] is None:
        return f"{asked}. None of your data sets has this schema."
    asked = f"{asked} of “{facts['dataset']}”"
    if is_open:
        return f"{asked}. It would cost {epsilon(facts['price'])} of the {epsilon(facts['budget']['left'])} left."
    return f"{asked}. Its price is {epsilon(facts['price'])}; {epsilon(facts['spent'])} of it is spent."


def epsilon(text: str) -> str:
    """Write an epsilon for people, with its sign."""
    shown = amount(text)
    return f"about ε {shown.removeprefix('about ')}" if shown.startswith("about ") else f"ε {shown}"


def rules(settings: Settings, accounts: Sequence[Account]) -> Iterator[str]:
    """Sentences that say what party.toml says."""
    yield from _rules_of_runs(settings.policy)
    for account in accounts:
        yield from _rules_of_account(account)
    for name, dataset in settings.datasets.items():
        yield from _rules_of(name, dataset)
    for name in settings.policy.retired:
        yield f"“{name}” is a data set of the past: no run may ask for it."


def event(entry: Mapping[str, Any]) -> str:
    """Tell an entry of the audit log in a sentence; an event that this version does not know is named as it is."""
    given = {name: _readable(name, value) for name, value in entry.items()}
    return EVENT_WORDS.get(str(entry["event"]), "{event}").format_map(_Given(given))


class _Given(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def _wanted(facts: Mapping[str, Any]) -> str:
    cells = sum(step["cells"] for step in facts["steps"])
    picks = sum(step["picks"] for step in facts["steps"])
    about = f"{facts['columns']} columns" if facts["columns"] != 1 else "1 column"
    if not cells and not picks:
        return f"answers about {about}"
    chosen = f" and {picks:,} private choices" if picks else ""
    return f"up to {cells:,} noisy counts{chosen} about {about}"


def _rules_of_runs(policy: Policy) -> Iterator[str]:
    if policy.accept == "ask":
        yield "Every run that breaks no rule needs your decision."
    else:
        yield "A run that breaks no rule is accepted at once if you have compared the fingerprints of all its parties."
    yield "A run that breaks a rule is refused, whoever asks."
    yield f"One run may cost a data set at most {epsilon(str(policy.epsilon_per_run))}."
    if policy.delta_per_run:
        yield f"One run may add a delta of at most {amount(str(policy.delta_per_run))}."
    else:
        yield "No run may have a delta."
    yield f"Methods: {_listed(policy.methods)}."
    yield f"Noise: {_listed(policy.noise)}."
    yield f"Updates: {_listed(policy.updates)}."
    yield f"A run has at least {policy.smallest_parties} parties, each with at least {policy.smallest_rows:,} rows."
    others = policy.smallest_insiders
    if others == 0:
        yield "A run need not protect your rows from other parties: you trust every one of them."
    else:
        yield (
            "A run must protect your rows from any 1 other party."
            if others == 1
            else f"A run must protect your rows from any {others} other parties that pool what they know."
        )


def _rules_of_account(account: Account) -> Iterator[str]:
    names = _joined([f"“{name}”" for name in account.datasets])
    together = " together, which share one budget" if len(account.datasets) > 1 else ""
    yield f"All runs together may ever spend at most {epsilon(str(account.limit[0]))} on {names}{together}."
    if account.limit[1]:
        yield f"Their deltas on {names} may add up to at most {amount(str(account.limit[1]))}."
    if account.before[0]:
        yield f"{epsilon(str(account.before[0]))} of it was spent before this ledger was begun."


def _rules_of(name: str, dataset: Dataset) -> Iterator[str]:
    yield _rule_of_persons(name, dataset)
    rule = dataset.out_of_range
    if isinstance(rule, str):
        yield f"In “{name}”, a value that the schema does not list {_RULE_WORDS[rule]}."
    else:
        for column, one in rule.items():
            yield f"In “{name}”, a value of “{column}” that the schema does not list {_RULE_WORDS[one]}."


def _rule_of_persons(name: str, dataset: Dataset) -> str:
    most = dataset.rows_per_person
    if dataset.person_key is None:
        word = f" You say that nobody has more than {most}." if most is not None else ""
        return f"In “{name}”, the number of rows per person is not checked: no person key.{word}"
    column = f"In “{name}”, the column “{dataset.person_key}”"
    if most is None:
        return f"{column} must name every person once; it is not counted."
    rows = "one row" if most == 1 else f"at most {most} rows"
    return f"{column} tells persons apart; it is not counted. Of each person {rows} take part, chosen at random."


def _readable(name: str, value: Any) -> str:
    if name in ("price", "charge"):
        return epsilon(str(value))
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
