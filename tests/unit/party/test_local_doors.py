"""What may be sent to the local interface, over real sockets: nothing without token or session, and little with."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from party.pages import bodies
from party.pages.bodies import LARGEST
from tests.support.fake_curator import FakeCurator
from tests.support.owner import TOKEN, Served, served
from tests.support.party import Party, make_home, run_terms, write_keys
from tests.support.raw_http import answer_to_head, connected, head, status_of

RUN = "run-1"
MEGABYTES = 600 << 20
OWNER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A party whose data owner has been asked about a run."""
    fake, path = FakeCurator(), tmp_path_factory.mktemp("party")
    home = make_home(path / "home", 0, fake, accept="ask", more="\n[local]\nport = 0\n")
    write_keys(home, 0)
    party = Party(home, 0, fake)
    fake.start(run_terms())
    party.turns()
    with served(party) as found:
        yield found


@pytest.mark.parametrize(
    "path",
    [f"/v1/requests/{RUN}/refuse", f"/v1/requests/{RUN}/accept", "/v1/sign-in", "/sign-out", "/requests/x/accept"],
)
@pytest.mark.parametrize("named", [JSON, FORM | {"Cookie": "subn-party=1"}, JSON | {"Authorization": "Bearer x"}])
def test_without_token_or_session_no_byte_of_a_body_is_read(pages: Served, path: str, named: dict[str, str]) -> None:
    """600 MB without a token took 1.6 GB."""
    status, _ = answer_to_head(pages.url, "POST", path, named, MEGABYTES)
    assert status == 401
    assert pages.party is not None
    assert pages.party.ledger.request(RUN).state == "asked"


@pytest.mark.parametrize("length", [LARGEST + 1, MEGABYTES])
def test_the_data_owner_sends_little_too(pages: Served, length: int) -> None:
    with connected(pages.url) as line:
        line.sendall(head("POST", f"/v1/requests/{RUN}/refuse", OWNER | JSON, length) + b" " * (LARGEST + 1))
        status, said = status_of(line)
    assert (status, "larger than 16,384 bytes" in said) == (413, True)


def test_half_a_body_of_the_data_owner_does_not_stay_for_ever(pages: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SECONDS", 0.3)
    with connected(pages.url) as line:
        line.sendall(head("POST", f"/v1/requests/{RUN}/refuse", OWNER | JSON, 100) + b"{")
        status, said = status_of(line)
    assert (status, "did not arrive in time" in said) == (408, True)


def test_a_form_of_a_session_that_has_ended_leads_to_sign_in(pages: Served) -> None:
    form = urlencode({"form_token": "x", "reason": "no"}).encode()
    with connected(pages.url) as line:
        line.sendall(head("POST", "/requests/x/refuse", FORM, len(form)) + form)
        status, said = status_of(line)
    assert (status, "subn-party page" in said) == (401, True)
