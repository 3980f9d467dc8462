"""A thief that holds one party's backup, or its home, and everything that ever travelled.

Each attack succeeds where masks follow from the party's lasting keys, or where the run's secrets are still there.

It does not know the thief's way to the file.
"""

import json
import sqlite3
import tarfile
from base64 import b64decode, b64encode
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from crypto.masking import mask_words, pair_key
from crypto.sealing import ExchangeKey
from party.books.ledger import Ledger
from party.home import backup
from protocol.messages.tasks import Acceptance, Contribution, Count, Refusal, decode
from protocol.privacy.layout import Vector, words_from_bytes
from protocol.secure_sum.keys import PairKeys
from protocol.stages.sum_pass import asked, noise_of
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, parties_of, run_terms, write_keys
from tests.support.small_runs import identity, layout_of

RUN, VICTIM = "run-1", 0
Travelled = dict[tuple[str, int], tuple[bytes, bytes]]  # question and answer, by step and party


def told(fake: FakeCurator, parties: list[Party], until: str | None) -> Travelled:
    """Take the run up to the end of a step, or to its end."""
    run, travelled = fake.runs[RUN], {}
    while (step := run.state.step) is not None and not run.ended:
        for party in parties:
            task = fake.task(run, party.name)
            if task is not None:
                answer = party.answering.handle(RUN, task)
                assert answer is not None
                fake.accept(run, party.name, answer.reply)
                travelled[step.name, party.number] = task, answer.reply
        if step.name == until:
            break
    assert not run.ended, run.reason
    return travelled


@pytest.fixture
def fake() -> FakeCurator:
    found = FakeCurator()
    found.start(run_terms(RUN))
    return found


@pytest.fixture
def parties(tmp_path: Path, fake: FakeCurator) -> list[Party]:
    found = parties_of(tmp_path, fake)
    write_keys(found[VICTIM].home, VICTIM)
    return found


def stolen(party: Party, folder: Path) -> Path:
    """The party's files as its backup has them."""
    backup.make(party.home, folder / "backup")
    with tarfile.open(folder / "backup") as archive:
        archive.extractall(folder / "stolen", filter="data")
    return folder / "stolen"


def secrets_in(folder: Path) -> list[ExchangeKey]:
    """The exchange keys that the thief finds: the lasting one, and what the ledger keeps of active runs."""
    found = [ExchangeKey.from_bytes(bytes.fromhex(json.loads(_text(folder / "keys/identity.json"))["exchange_key"]))]
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        states = [json.loads(kept) for (kept,) in db.execute("SELECT kept FROM requests") if kept is not None]
    return found + [ExchangeKey.from_bytes(b64decode(state["run_key"])) for state in states]


def read(fake: FakeCurator, travelled: Travelled, secrets: list[ExchangeKey]) -> list[Vector]:
    """What the victim's first contribution is without the masks that follow from each of the secrets."""
    terms, step = fake.runs[RUN].terms, fake.runs[RUN].terms.steps[1]
    accepted = [decode(travelled["joining", number][1], "") for number in range(3)]
    run_keys = tuple(one.exchange_key for one in accepted if isinstance(one, Acceptance))
    question, answer = (decode(data, "") for data in travelled[step.name, VICTIM])
    assert isinstance(question, Count)
    assert isinstance(answer, Contribution)
    words, found = words_from_bytes(answer.blob), []
    for secret in secrets:
        pairs = PairKeys(terms, VICTIM, identity(VICTIM), secret, run_keys)
        layout = layout_of(terms, step, question.tables, terms.plan.total_rows)
        context = asked(step, question.tables, question.merged, noise_of(terms.plan, layout))
        mask = mask_words(pairs(context), VICTIM, len(words))
        found.append((words - mask).view(np.int64))
    return found


def lies_open(values: Vector) -> bool:
    """Counts under noise are small; under a mask they fill 64 bits."""
    return bool(np.abs(values.astype(float)).max() < 2**40)


def test_a_backup_of_a_finished_run_opens_no_mask(fake: FakeCurator, parties: list[Party], tmp_path: Path) -> None:
    """Also while the curator has not said that the run is over: the last answer destroys what the masks came from."""
    travelled = told(fake, parties, None)
    found = secrets_in(stolen(parties[VICTIM], tmp_path))
    assert len(found) == 1
    assert not any(map(lies_open, read(fake, travelled, found)))


def test_masks_from_lasting_keys_are_read_out_of_a_backup(
    fake: FakeCurator, parties: list[Party], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_lasting_keys(pairs: PairKeys, context: bytes) -> dict[int, bytes]:
        own, bound = pairs.identity.exchange, pairs.terms.plan_hash.encode() + b"|" + context
        members = enumerate(pairs.terms.plan.members)
        return {k: pair_key(own.agree(one.exchange_key), bound) for k, one in members if k != pairs.me}

    monkeypatch.setattr(PairKeys, "__call__", from_lasting_keys)
    travelled = told(fake, parties, None)
    assert all(map(lies_open, read(fake, travelled, secrets_in(stolen(parties[VICTIM], tmp_path)))))


def test_a_backup_in_mid_run_opens_no_mask(fake: FakeCurator, parties: list[Party], tmp_path: Path) -> None:
    travelled = told(fake, parties, "correlations")
    found = secrets_in(stolen(parties[VICTIM], tmp_path))
    assert not any(map(lies_open, read(fake, travelled, found)))


def test_a_home_in_mid_run_opens_its_masks(fake: FakeCurator, parties: list[Party]) -> None:
    """It also holds the rows; and it shows that the thief would find the secret where there is one."""
    travelled = told(fake, parties, "correlations")
    found = secrets_in(parties[VICTIM].home.path)
    assert list(map(lies_open, read(fake, travelled, found))) == [False, True]


def test_no_file_holds_the_secret_after_the_last_answer(
    fake: FakeCurator, parties: list[Party], tmp_path: Path
) -> None:
    """Neither pages that are free nor the write-ahead log."""
    told(fake, parties, "correlations")
    party = parties[VICTIM]
    secret = secrets_in(party.home.path)[1].to_bytes()
    spelled = [secret, secret.hex().encode(), b64encode(secret)]
    copy = stolen(party, tmp_path)
    assert not any(one in file.read_bytes() for one in spelled for file in copy.rglob("*") if file.is_file())
    assert any(one in data for one in spelled for data in _files(party.home.path))
    told(fake, parties, None)
    assert not any(one in data for one in spelled for data in _files(party.home.path))


def test_a_party_restored_in_mid_run_ends_the_run_and_says_why(
    fake: FakeCurator, parties: list[Party], tmp_path: Path
) -> None:
    told(fake, parties, "correlations")
    party, task = parties[VICTIM], fake.task(fake.runs[RUN], "party-1")
    assert task is not None
    with closing(Ledger.open(stolen(party, tmp_path) / "ledger.db")) as ledger:
        assert ledger.kept(RUN) is None
    party.ledger.close()
    (tmp_path / "stolen/ledger.db").replace(party.home.ledger)
    for rest in ("-wal", "-shm"):
        party.home.ledger.with_name(party.home.ledger.name + rest).unlink(missing_ok=True)
    refusal = Party(party.home, VICTIM, fake).answering.handle(RUN, task)
    assert refusal is not None
    said = decode(refusal.reply, "party")
    assert isinstance(said, Refusal)
    assert said.reason.startswith("this party cannot go on: the run's secrets went with its last answer or a restore")


def _files(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.rglob("*") if file.is_file()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
