"""What parties may ask over HTTP, how they prove who they are, and what they are told when they cannot."""

import asyncio
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crypto.errors import BrokenSeal
from crypto.sealing import ExchangeKey
from crypto.signing import SigningKey, sign, verify
from curator.accounts.registry import CODE_LIFE_MS
from protocol.exact import canonical_json, digest
from protocol.messages import signatures as a
from protocol.messages.pins import parted
from protocol.messages.tasks import Invitation, decode
from tests.support.api import Api, with_api
from tests.support.curator import START, Desk
from tests.support.signed_requests import asked_text
from tests.support.small_runs import BITS


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def enrolment(code: str, name: str, key: SigningKey) -> dict[str, str]:
    exchange = ExchangeKey.generate().public.hex()
    return {"code": code, "name": name, "signing_key": key.public.hex(), "exchange_key": exchange}


async def new_code(api: Api, name: str) -> str:
    answer = await api.operator("POST", "/v1/parties/codes", json={"name": name})
    assert answer.status_code == 200
    return parted(answer.json()["code"])[0]


def refused(answer: Any, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    detail = answer.json()["detail"]
    for word in words:
        assert word in detail, detail


# Enrolment and keys


def test_a_party_enrols_once_with_its_code_and_learns_the_curators_key(desk: Desk) -> None:
    async def story(api: Api) -> None:
        key, code = SigningKey.generate(), await new_code(api, "Spital Süd")
        body = enrolment(code, "Spital Süd", key)
        answer = await api.signed(key, "Spital Süd", "POST", "/v1/enrolments", body)
        assert answer.status_code == 201
        assert answer.json() == {"name": "Spital Süd", "curator_key": desk.keys.signing.public.hex()}
        assert a.CURATOR_SIGNATURE_HEADER in answer.headers
        again = await api.signed(key, "Spital Süd", "POST", "/v1/enrolments", body)
        assert (again.status_code, again.json()) == (201, answer.json())  # the first answer may have been lost
        other = SigningKey.generate()
        another = await api.signed(other, "Spital Süd", "POST", "/v1/enrolments", enrolment(code, "Spital Süd", other))
        refused(another, 403, "has been used", "ask the operator")
        listed = (await api.operator("GET", "/v1/parties")).json()["items"]
        assert [party["name"] for party in listed] == ["Spital Süd", "party-1", "party-2", "party-3"]

    with_api(desk, story)


def test_an_enrolment_with_a_wrong_or_old_code_another_key_or_another_name_is_refused(desk: Desk) -> None:
    async def story(api: Api) -> None:
        key, other, code = SigningKey.generate(), SigningKey.generate(), await new_code(api, "north")
        body = enrolment(code, "north", key)
        refused(await api.signed(other, "north", "POST", "/v1/enrolments", body), 401, "not signed with the key")
        refused(await api.signed(key, "south", "POST", "/v1/enrolments", body), 401, "different names")
        wrong = body | {"code": "0" * 30}
        refused(
            await api.signed(key, "north", "POST", "/v1/enrolments", wrong),
            403,
            "enrolment code is not valid for 'north'",
        )
        unknown = body | {"colour": "red"}
        refused(await api.signed(key, "north", "POST", "/v1/enrolments", unknown), 422, "colour")
        refused(await api.operator("POST", "/v1/parties/codes", json={"name": "party-1"}), 409, "party-1")
        desk.clock.advance(CODE_LIFE_MS / 1000)
        refused(await api.signed(key, "north", "POST", "/v1/enrolments", body), 403, "expired")

    with_api(desk, story)


def test_a_revoked_party_enrols_anew_and_sees_what_its_earlier_keys_have_signed(desk: Desk) -> None:
    """Its home was lost: what was spent must not be lost with it."""

    async def story(api: Api) -> None:
        run = await api.create_run()
        assert await api.answer_one(0)
        refused(await api.operator("POST", "/v1/parties/codes", json={"name": "party-1"}), 409, "revoke it")
        assert (await api.operator("POST", "/v1/parties/party-1/revoke")).status_code == 204
        code, key, old = await new_code(api, "party-1"), SigningKey.generate(), desk.parties[0].identity.signing
        refused(await api.signed(key, "party-1", "GET", "/v1/receipts"), 401, "not signed with the key")
        refused(await api.signed(old, "party-1", "POST", "/v1/enrolments", enrolment(code, "party-1", old)), 409, "key")
        answer = await api.signed(key, "party-1", "POST", "/v1/enrolments", enrolment(code, "party-1", key))
        assert answer.status_code == 201
        (told,) = (await api.signed(key, "party-1", "GET", "/v1/receipts")).json()
        assert (told["run"], told["step"]) == (run, "joining")
        refused(await api.signed(old, "party-1", "GET", "/v1/receipts"), 401, "not signed with the key")
        assert [one["name"] for one in (await api.signed(key, "party-1", "GET", "/v1/roster")).json()] == [
            "party-1",
            "party-2",
            "party-3",
        ]
        assert not [one for one in desk.orchestrator.registry.offers() if one.party == "party-1"]

    with_api(desk, story)


def rotation(name: str, key: SigningKey, signer: SigningKey) -> dict[str, str]:
    keys = {"signing_key": key.public.hex(), "exchange_key": ExchangeKey.generate().public.hex()}
    return keys | {"signature": sign(signer, a.ROTATION, canonical_json({"name": name} | keys)).hex()}


def test_keys_are_rotated_by_old_and_new_together_and_not_during_a_run(desk: Desk) -> None:
    async def story(api: Api) -> None:
        new = SigningKey.generate()
        alone = rotation("party-1", new, desk.parties[0].identity.signing)
        refused(await api.party(0, "POST", "/v1/keys", alone), 403, "signature")
        run = await api.create_run()
        refused(await api.party(0, "POST", "/v1/keys", rotation("party-1", new, new)), 409, run)
        await api.operator("POST", f"/v1/runs/{run}/cancel")
        assert (await api.party(0, "POST", "/v1/keys", rotation("party-1", new, new))).status_code == 204
        refused(await api.party(0, "GET", "/v1/roster"), 401, "not signed with the key of 'party-1'")
        assert (await api.signed(new, "party-1", "GET", "/v1/roster")).status_code == 200

    with_api(desk, story)


# Signatures


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sent": b"{}"}, ["the body is not the one whose digest is signed"]),
        ({"headers": {a.DIGEST_HEADER: digest(b"{}")}, "sent": b"{}"}, ["not signed with the key"]),
        ({"headers": {a.DIGEST_HEADER: None}}, ["Subn-Digest missing"]),
        ({"headers": {a.NONCE_HEADER: "another-nonce-0123"}}, ["not signed with the key"]),
        ({"headers": {a.NONCE_HEADER: "short"}}, ["nonce"]),
        ({"headers": {a.TIME_HEADER: "noon"}}, ["time"]),
        ({"headers": {a.SIGNATURE_HEADER: "zz"}}, ["not signed with the key"]),
        ({"headers": {a.SIGNATURE_HEADER: None}}, ["Subn-Signature missing", "parties sign every request"]),
        ({"headers": {a.PARTY_HEADER: None}}, ["Subn-Party missing"]),
        ({"headers": {a.PARTY_HEADER: "party-2"}}, ["not signed with the key of 'party-2'"]),
        ({"headers": {a.PARTY_HEADER: "%ff"}}, ["percent-encoded"]),
        ({"headers": {a.PARTY_HEADER: "a%00b"}}, ["percent-encoded"]),
        (
            {"headers": {a.PARTY_HEADER: "stranger"}},
            ["no party 'stranger' is enrolled", "ask the operator for a one-time code"],
        ),
        ({"time_ms": START - 3_600_000}, ["07:00:00 UTC", "08:00:00 UTC", "5 minutes", "Correct the clock"]),
        ({"time_ms": START + 300_001}, ["08:05:00 UTC", "Correct the clock"]),
    ],
)
def test_a_request_that_its_party_did_not_sign_just_now_is_refused_with_the_reason(
    desk: Desk, changes: dict[str, Any], words: list[str]
) -> None:
    async def story(api: Api) -> None:
        body = {"schema": BITS.to_json(), "rows": 5}
        answer = await api.party(0, "PUT", "/v1/offers/rows", body, **changes)
        refused(answer, 401, *words)

    with_api(desk, story)


def test_a_signature_is_for_one_method_path_and_query(desk: Desk) -> None:
    async def story(api: Api) -> None:
        key = desk.parties[0].identity.signing
        for method, target in (("GET", "/v1/receipts"), ("PUT", "/v1/inbox"), ("GET", "/v1/inbox?wait=1")):
            text = a.request_text(method, target, digest(b""), "party-1", START, "n" * 20)
            headers = {a.PARTY_HEADER: "party-1", a.TIME_HEADER: str(START), a.NONCE_HEADER: "n" * 20}
            headers[a.DIGEST_HEADER] = digest(b"")
            headers[a.SIGNATURE_HEADER] = sign(key, a.REQUEST, text).hex()
            refused(await api.http.get("/v1/inbox", headers=headers), 401, "not signed")

    with_api(desk, story)


@pytest.mark.parametrize(("signed", "sent"), [("", "1"), ("1", None), ("1-2", "1")])
def test_a_signature_covers_the_version_that_is_spoken(desk: Desk, signed: str, sent: str | None) -> None:
    async def story(api: Api) -> None:
        headers = {a.VERSION_HEADER: sent}
        answer = await api.party(0, "GET", "/v1/roster", headers=headers, signed_version=signed)
        refused(answer, 401, "not signed")
        answer = await api.party(0, "GET", "/v1/roster", headers=headers)
        assert answer.status_code == 200

    with_api(desk, story)


def test_a_request_that_was_here_before_is_refused(desk: Desk) -> None:
    async def story(api: Api) -> None:
        assert (await api.party(0, "GET", "/v1/roster", nonce="n" * 20)).status_code == 200
        refused(await api.party(0, "GET", "/v1/roster", nonce="n" * 20), 401, "sign every attempt anew")
        assert (await api.party(1, "GET", "/v1/roster", nonce="n" * 20)).status_code == 200

    with_api(desk, story)


def test_every_answer_to_a_party_carries_the_curators_signature_for_its_nonce(desk: Desk) -> None:
    async def story(api: Api) -> None:
        key, nonce = desk.keys.signing.public, iter("abcdefghijklmnop")
        run = await api.create_run()
        targets = [("GET", "/v1/inbox"), ("GET", "/v1/roster"), ("GET", "/v1/runs/nowhere/outbox/x"), ("GET", "/v1/x")]
        for method, target in [*targets, ("GET", f"/v1/runs/{run}/table.csv")]:
            own = next(nonce) * 20
            answer = await api.party(0, method, target, nonce=own)
            signature = bytes.fromhex(answer.headers[a.CURATOR_SIGNATURE_HEADER])
            run_and_held = answer.headers.get(a.RUN_HEADER, ""), answer.headers.get(a.HELD_HEADER, "")
            said = answer.headers[a.VERSION_HEADER], *run_and_held
            verify(
                key,
                a.RESPONSE,
                a.response_text(answer.status_code, answer.content, asked_text(answer.request), *said),
                signature,
            )
            for other in (("2", *said[1:]), (said[0], "another-run", said[2]), (*said[:2], "7")):
                text = a.response_text(answer.status_code, answer.content, asked_text(answer.request), *other)
                with pytest.raises(BrokenSeal):
                    verify(key, a.RESPONSE, text, signature)

    with_api(desk, story)


def test_what_the_curator_answers_to_one_question_fits_no_other(desk: Desk) -> None:
    """Somebody in between may have a party of its own, which asks under the nonce of another party's question."""

    async def story(api: Api) -> None:
        key, used = desk.keys.signing.public, "n" * 20
        own = await api.party(0, "GET", "/v1/runs/mine", nonce=used)
        others = await api.party(1, "GET", "/v1/runs/mine", nonce=used)
        elsewhere = await api.party(1, "GET", "/v1/receipts", nonce="m" * 20)
        stranger = await api.party(1, "GET", "/v1/runs/mine", nonce=used, headers={a.PARTY_HEADER: "party-1"})
        assert (own.content, stranger.status_code) == (others.content, 401)
        answers = (own, others, elsewhere, stranger)
        for answer, asked in product(answers, answers):
            said = answer.headers[a.VERSION_HEADER], answer.headers.get(a.RUN_HEADER, ""), ""
            text = a.response_text(answer.status_code, answer.content, asked_text(asked.request), *said)
            with nullcontext() if answer is asked else pytest.raises(BrokenSeal):
                verify(key, a.RESPONSE, text, bytes.fromhex(answer.headers[a.CURATOR_SIGNATURE_HEADER]))

    with_api(desk, story)


def test_a_revoked_party_is_told_so(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        assert (await api.operator("POST", "/v1/parties/party-2/revoke")).status_code == 204
        refused(await api.party(1, "GET", "/v1/inbox"), 403, "revoked by the operator")
        state = (await api.operator("GET", f"/v1/runs/{run}")).json()
        assert (state["state"], state["culprit"]) == ("failed", "party-2")
        refused(await api.operator("POST", "/v1/parties/nobody/revoke"), 404, "nobody")

    with_api(desk, story)


# Offers, tasks and answers


def test_an_offer_says_what_is_wrong_with_it(desk: Desk) -> None:
    async def story(api: Api) -> None:
        good = {"schema": BITS.to_json(), "rows": 31}
        assert (await api.party(0, "PUT", "/v1/offers/rows", good)).status_code == 204
        listed = (await api.operator("GET", "/v1/parties")).json()["items"][0]
        told = {"dataset": "rows", "schema": BITS.hash, "rows": 31}
        assert listed["offers"] == [told | {"rows_per_person": None}]
        assert (await api.party(0, "PUT", "/v1/offers/rows", good | {"rows_per_person": 3})).status_code == 204
        listed = (await api.operator("GET", "/v1/parties")).json()["items"][0]
        assert listed["offers"] == [told | {"rows_per_person": 3}]
        refused(await api.party(0, "PUT", "/v1/offers/rows", good | {"rows_per_person": 0}), 422, "rows_per_person")
        refused(await api.party(0, "PUT", "/v1/offers/rows", good | {"rows": 0}), 422, "body.rows")
        refused(await api.party(0, "PUT", "/v1/offers/rows", good | {"schema": "{}"}), 422, "attributes")
        refused(await api.party(0, "PUT", "/v1/offers/a%2Fb", good), 404)

    with_api(desk, story)


def test_tasks_are_fetched_and_answered_until_the_run_is_finished(desk: Desk) -> None:
    async def story(api: Api) -> None:
        assert (await api.party(0, "GET", "/v1/inbox")).status_code == 204
        run = await api.create_run(update="accumulate")
        task = await api.party(0, "GET", "/v1/inbox")
        assert task.headers[a.RUN_HEADER] == run
        assert isinstance(decode(task.content, "curator"), Invitation)
        assert (await api.party(0, "GET", f"/v1/inbox?skip={run}")).status_code == 204
        await api.answer_all()
        await api.wait_until(run, "finished")
        (own,) = (await api.party(1, "GET", "/v1/runs/mine")).json()
        assert (own["run"], own["state"], own["culprit"]) == (run, "finished", None)
        receipts = (await api.party(1, "GET", "/v1/receipts")).json()
        steps = ["correlations", "initial/2", "joining", "parameters", "update/2"]
        assert [receipt["step"] for receipt in receipts] == steps
        assert {receipt["run"] for receipt in receipts} == {run}
        after = f"/v1/receipts?after={run}%2Finitial%2F2"
        assert [one["step"] for one in (await api.party(1, "GET", after)).json()] == steps[2:]
        assert (await api.party(1, "GET", f"/v1/runs/mine?after={run}")).json() == []
        refused(await api.party(1, "GET", "/v1/receipts?after=x"), 422, "query.after")

    with_api(desk, story)


def test_a_waiting_party_gets_its_task_when_there_is_one(desk: Desk) -> None:
    async def story(api: Api) -> None:
        waiting = asyncio.create_task(api.party(2, "GET", "/v1/inbox?wait=30"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        run = await api.create_run()
        answer = await asyncio.wait_for(waiting, 5)
        assert (answer.status_code, answer.headers[a.RUN_HEADER]) == (200, run)

    with_api(desk, story)


def test_a_waiting_party_is_let_go_when_the_curator_stops(desk: Desk) -> None:
    async def story(api: Api) -> None:
        waiting = asyncio.create_task(api.party(2, "GET", "/v1/inbox?wait=30"))
        await asyncio.sleep(0.05)
        api.app.state.service.relay.close()
        assert (await asyncio.wait_for(waiting, 5)).status_code == 204

    with_api(desk, story)


def test_the_same_answer_may_come_again_and_another_one_may_not(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        task = await api.party(0, "GET", "/v1/inbox")
        sent = desk.parties[0].handle(run, task.content)
        assert (await api.deliver(0, sent)).status_code == 204
        assert (await api.deliver(0, sent)).status_code == 204
        other = desk.parties[0].refuse(run, task.content)
        refused(await api.deliver(0, other), 409, "party-1 has answered 'joining' with other bytes")
        sent.step = "correlations"
        refused(await api.deliver(0, sent), 409, "not for 'correlations' of party-1")

    with_api(desk, story)


def test_an_answer_needs_a_run_a_step_and_a_receipt_that_fit(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        task = await api.party(0, "GET", "/v1/inbox")
        sent = desk.parties[0].handle(run, task.content)
        target, receipt = f"/v1/runs/{run}/outbox/joining", {a.RECEIPT_HEADER: "00" * 64}
        refused(await api.party(0, "PUT", target, sent.body), 422, "header.Subn-Receipt")
        refused(await api.party(0, "PUT", target, sent.body, headers=receipt), 403, "receipt for 'joining'")
        answer = await api.party(0, "PUT", "/v1/runs/none/outbox/joining", sent.body, headers=receipt)
        refused(answer, 404, "no run 'none'")
        assert (answer.json()["run"], answer.json()["step"]) == ("none", "joining")
        refused(await api.party(0, "PUT", f"/v1/runs/{run}/outbox/No%20Step", sent.body, headers=receipt), 422, "step")
        await api.operator("POST", f"/v1/runs/{run}/cancel", json={"reason": "a typing error"})
        refused(await api.deliver(0, sent), 409, "cancelled", "a typing error")

    with_api(desk, story)


def test_a_refusal_ends_the_run_and_names_who_refused(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        task = await api.party(1, "GET", "/v1/inbox")
        assert (await api.deliver(1, desk.parties[1].refuse(run, task.content, "too dear"))).status_code == 204
        found = await api.wait_until(run, "refused")
        assert (found["culprit"], found["reason"]) == ("party-2", "too dear")

    with_api(desk, story)


def test_an_answer_that_is_larger_than_any_to_its_question_is_refused_before_it_is_read(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run, key = await api.create_run(), {a.RECEIPT_HEADER: "00" * 64}
        answer = await api.party(0, "PUT", f"/v1/runs/{run}/outbox/joining", bytes(20_000), headers=key)
        refused(answer, 413, "party-1's answer to 'joining' has 20,000 bytes: at most 16,384 are expected")
        body = {"schema": "x" * (2 << 20), "rows": 1}
        refused(await api.party(0, "PUT", "/v1/offers/rows", body), 413, "2,097,152 bytes")

    with_api(desk, story)


def test_parties_fetch_the_table_of_their_runs_and_of_no_others(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run(parties=["party-1", "party-2"])
        target = f"/v1/runs/{run}/table.csv"
        refused(await api.party(0, "GET", target), 409, "only a finished run has results")
        refused(await api.party(2, "GET", target), 404, f"there is no run '{run}' of party-3")
        refused(await api.party(2, "GET", "/v1/runs/x/table.csv"), 404, "there is no run 'x' of party-3")
        await api.answer_all()
        await api.wait_until(run, "finished")
        table = await api.party(0, "GET", target)
        assert table.text == (await api.operator("GET", target)).text
        refused(await api.party(2, "GET", target), 404, f"there is no run '{run}' of party-3")
        refused(await api.party(0, "GET", target + "?rows=5"), 403, "leave rows out")
        refused(await api.party(0, "GET", f"/v1/runs/{run}/manifest.json"), 401, "operator's key")
        refused(await api.http.get(target), 401)

    with_api(desk, story)


def test_a_new_holder_of_a_revoked_name_fetches_no_earlier_table(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        await api.answer_all()
        await api.wait_until(run, "finished")
        target, new = f"/v1/runs/{run}/table.csv", SigningKey.generate()
        desk.orchestrator.registry.rotate("party-2", new.public, ExchangeKey.generate().public)
        assert (await api.signed(new, "party-2", "GET", target)).status_code == 200  # its keys changed; it is the same
        desk.clock.advance(1)
        assert (await api.operator("POST", "/v1/parties/party-1/revoke")).status_code == 204
        other, code = SigningKey.generate(), await new_code(api, "party-1")
        body = enrolment(code, "party-1", other)
        assert (await api.signed(other, "party-1", "POST", "/v1/enrolments", body)).status_code == 201
        refused(await api.signed(other, "party-1", "GET", target), 403, "enrolled anew after this run began")

    with_api(desk, story)


def test_the_roster_tells_all_keys(desk: Desk) -> None:
    async def story(api: Api) -> None:
        desk.orchestrator.revoke("party-3")
        roster = (await api.party(0, "GET", "/v1/roster")).json()
        assert [peer["name"] for peer in roster] == ["party-1", "party-2", "party-3"]
        assert roster[1]["signing_key"] == desk.parties[1].identity.signing.public.hex()
        assert roster[1]["exchange_key"] == desk.parties[1].identity.exchange.public.hex()
        assert [peer["revoked"] for peer in roster] == [False, False, True]

    with_api(desk, story)


def test_operators_keys_open_no_partys_door(desk: Desk) -> None:
    async def story(api: Api) -> None:
        for target in ("/v1/inbox", "/v1/receipts", "/v1/roster", "/v1/runs/mine"):
            refused(await api.operator("GET", target), 401, "not signed")

    with_api(desk, story)


def test_codes_are_random(desk: Desk) -> None:
    async def story(api: Api) -> set[str]:
        return {await new_code(api, "north") for _ in range(3)}

    assert len(with_api(desk, story)) == 3
