"""The service, route by route, over real connections."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import math
import re
import threading
import time

import pytest
from tests.serving import BODY, Process, Service, problem, serving, wait_until

import accrual as ac
from accrual.live.ledger import Ledger
from accrual.policies.base import lost_index
from accrual.service.edge import POLICY
from accrual.store.backends import open_store
from accrual.store.base import ERASE_AT, StoreError
from accrual.store.sqlite.store import SQLiteStore


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service")) as service:
        assert service.post("/v1/bandits", BODY).status_code == 201
        yield service


def fresh(service: Service, name: str, **settings) -> str:
    """A bandit of one's own; its address."""
    assert service.post("/v1/bandits", BODY | {"name": name} | settings).status_code == 201
    return f"/v1/bandits/{name}"


def test_a_bandit_is_made_once(service):
    again = service.post("/v1/bandits", BODY)
    assert again.status_code == 200
    assert again.json()["arms"] == ["jazz", "rock"]
    assert again.json()["policy"].startswith("AgePrior")
    other = service.post("/v1/bandits", BODY | {"window": 20})
    assert other.status_code == 409
    assert problem(other) == "conflict"
    assert "window is 1000" in other.json()["detail"]
    assert "plays" in [bandit["name"] for bandit in service.get("/v1/bandits").json()["bandits"]]
    assert service.get("/v1/bandits/plays").json() == again.json()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"window": 0}, "window"),
        ({"window": "ten days"}, "window"),
        ({"window": 10, "groups": 3}, "divide"),
        ({"policy": "AgeIMD"}, "did you mean"),
        ({"policy": "__import__('os')"}, "unknown policy"),
        ({"arms": []}, "arms"),
        ({"arms": ["a", "a"]}, "different names"),
        ({"arms": ["a\x00b"]}, "none of them a control character"),
        ({"arms": {"a": -1}}, "cap"),
        ({"name": "a/b"}, "name"),
        ({"name": "../etc"}, "name"),
        ({"name": "a" * 101}, "name"),
        ({"name": "a\n"}, "name"),
        ({"colour": "red"}, "colour"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_a_bandit_that_cannot_be_is_refused(service, wrong, says):
    answer = service.post("/v1/bandits", BODY | {"name": "wrong"} | wrong)
    assert answer.status_code == 422
    assert problem(answer) == "invalid"
    assert says in answer.json()["detail"]
    assert "wrong" not in [bandit["name"] for bandit in service.get("/v1/bandits").json()["bandits"]]


def test_an_unknown_field_is_refused_and_the_nearest_is_named(service):
    at = fresh(service, "fields")
    service.post(f"{at}/decisions")
    wrong_piece = [{"decision": 0, "value": 0.5}, {"decision": 0, "valu": 1}]
    fields = "(one of: decision, value, age, at, key, stream)"
    cases = [
        ("/v1/bandits", BODY | {"polcy": "AgeTS"}, "unknown field 'polcy'; did you mean 'policy'?"),
        (f"{at}/arms", {"name": "folk", "windw": 5}, "did you mean 'window'?"),
        (f"{at}/arms/retire", {"nam": "jazz"}, "did you mean 'name'?"),
        (
            f"{at}/decisions",
            {"kee": "k"},
            "unknown field 'kee'; did you mean 'key'? (one of: n, key, context)",
        ),
        (f"{at}/pieces", {"decision": 0, "value": 0.5, "ag": 0}, "unknown field 'ag'; did you mean 'age'?"),
        (f"{at}/pieces", {"id": 0, "value": 0.5}, "unknown field 'id'; did you mean 'decision'?"),
        (f"{at}/pieces", {"decision": 0, "reward": 1}, "unknown field 'reward'; did you mean 'value'?"),
        (f"{at}/pieces", wrong_piece, f"[1]: unknown field 'valu'; did you mean 'value'? {fields}"),
    ]
    for path, body, says in cases:
        answer = service.post(path, body)
        assert (answer.status_code, problem(answer)) == (422, "invalid"), path
        assert says in answer.json()["detail"]
    assert "no" not in [bandit["name"] for bandit in service.get("/v1/bandits").json()["bandits"]]
    assert service.get(f"{at}/state").json()["arms"][0]["observed"] == 0.0


ARMS = '; for example ["jazz", "rock"] or {"jazz": 40, "rock": 40}'
CAPS = "their caps, such as {'jazz': 40, 'rock': 40}, not []"
NAME = "the name of a bandit must be up to 100 letters, digits, dots and dashes, such as 'plays', not 'a b'"


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/bandits", {"window": 10}, "the field 'name' is missing"),
        ("/v1/bandits", BODY | {"name": "a b"}, NAME),
        (
            "/v1/bandits",
            BODY | {"arms": []},
            "arms must be names, such as ['jazz', 'rock'], or names with " + CAPS,
        ),
        ("/v1/bandits", BODY | {"arms": [{"name": "a"}]}, f"arms[0] must be text, not an object{ARMS}"),
        ("/v1/bandits", BODY | {"arms": {"a": "2"}}, f'arms["a"] must be a number, not text{ARMS}'),
        (
            "/v1/bandits",
            BODY | {"window": 1.5},
            "window must be a whole number or text, not a number with a fraction or beyond 64 bits; "
            'for example "60d" or 80',
        ),
        (
            "/v1/bandits",
            BODY | {"window": "ten days"},
            "window must be a number of rounds, such as 80, or a time, such as '60d' (or s, min, h, w, y), "
            "not 'ten days'",
        ),
        (
            "/v1/bandits",
            BODY | {"features": {"a": "int"}},
            "features[\"a\"] must be 'bool' or a list, not 'int'",
        ),
        (
            "/v1/bandits",
            BODY | {"streams": {"refunds": {"kind": "guardrail", "action": "stop"}}},
            "streams[\"refunds\"].action must be 'flag' or 'retire', not 'stop'",
        ),
        ("/v1/bandits/plays/arms/retire", [], "the body must be an object with name, not a list"),
        ("/v1/bandits/plays/decisions", {"n": "1"}, "n must be a whole number, not text"),
        ("/v1/bandits/plays/decisions", {"n": 1001}, "n must be a whole number of at most 1,000"),
        ("/v1/bandits/plays/pieces", {"decision": 0}, "the field 'value' is missing"),
    ],
)
def test_errors_speak_the_words_of_the_api(service, path, body, says):
    answer = service.post(path, body)
    assert (answer.status_code, problem(answer)) == (422, "invalid")
    assert answer.json()["detail"] == says


@pytest.mark.parametrize(
    ("method", "path", "says"),
    [
        (
            "GET",
            "/v1/bandits/plays/decisions?limt=5",
            "unknown query parameter 'limt'; did you mean 'limit'? (one of: limit)",
        ),
        ("GET", "/v1/bandits/plays/decisions?limit=many", "limit must be a whole number, not text"),
        ("GET", "/v1/bandits/plays/decisions?limit=101", "limit must be a whole number of at most 100"),
        ("GET", "/v1/bandits/plays/export?after=1&after=2", "a query parameter is given twice"),
        ("GET", "/v1/bandits?page=2", "this address takes no query parameters"),
        ("POST", "/v1/bandits/plays/decisions?n=5", "this address takes no query parameters"),
        ("POST", "/v1/bandits/plays/pieces?key=a", "this address takes no query parameters"),
        ("POST", "/v1/bandits?name=x", "this address takes no query parameters"),
    ],
)
def test_an_unknown_query_parameter_is_refused(service, method, path, says):
    before = len(service.events())
    answer = service.http.request(method, path)
    assert (answer.status_code, problem(answer)) == (422, "invalid")
    assert answer.json()["detail"] == says
    assert len(service.events()) == before


def test_ages_and_times_are_written_as_in_python(service):
    at = fresh(service, "times", window="1d")
    made = service.post(f"{at}/decisions").json()["decisions"][0]["at"]
    moment = datetime.datetime.fromtimestamp(made, datetime.UTC).isoformat()
    pieces = [{"age": "0s"}, {"at": made}, {"at": moment}, {"age": "soon"}, {"at": moment[:19]}]
    found = service.post(f"{at}/pieces", [{"decision": 0, "value": 0.1, "key": str(i)} | piece
                                          for i, piece in enumerate(pieces)]).json()  # fmt: skip
    assert [piece.get("age") for piece in found] == [0.0, 0.0, pytest.approx(0, abs=1e-5), None, None]
    assert [piece["status"] for piece in found] == ["stored"] * 3 + ["invalid"] * 2
    assert "a piece's time must be a time with its zone" in found[-1]["detail"]
    rounds = fresh(service, "rounds")
    service.post(f"{rounds}/decisions")
    wrong = service.post(f"{rounds}/pieces", {"decision": 0, "value": 1, "age": "1h"})
    assert (wrong.status_code, problem(wrong)) == (422, "invalid")


def test_what_fit_writes_as_a_prior_is_a_policy(service):
    """It has a number for each of some hundred groups, and was refused for its length."""
    spread = [0.01] * 100
    policy = f"AgePrior(spread={spread}, history=(0.1, 0.02, 0.003, 5.0))"
    fresh(service, "long", policy=policy)
    assert service.get("/v1/bandits/long").json()["policy"].startswith("AgePrior(")


def test_a_total_above_its_cap_is_answered_shown_and_counted(service):
    at = fresh(service, "above", arms={"jazz": 1, "rock": 5})
    service.post(f"{at}/decisions", {"n": 2})
    fine = service.post(f"{at}/pieces", {"decision": 1, "value": 4.5, "age": 0}).json()
    assert fine == {"status": "stored", "age": 0.0, "late": False}
    over = service.post(f"{at}/pieces", {"decision": 0, "value": 28000, "age": 0}).json()
    assert over["status"] == "stored"
    assert "more in all than its arm's cap of 1" in over["warning"]
    many = service.post(
        f"{at}/pieces", [{"decision": id_, "value": 0.1, "age": 0} for id_ in (0, 1, 9)]
    ).json()
    assert [bool(one.get("warning")) for one in many] == [True, False, False]
    service.post(f"{at}/decisions", {"n": 30})
    time.sleep(0.6)  # a state may be half a second old
    jazz, rock = service.get(f"{at}/state").json()["arms"]
    assert (jazz["above_cap"], rock["above_cap"]) == (1, 0)
    assert jazz["estimate"] > 1.0
    assert jazz["interval"][1] > 1.0
    lines = service.get("/metrics").text.splitlines()
    assert float(next(line for line in lines if line.startswith("accrual_above_cap ")).split()[1]) >= 1


def test_the_unit_of_the_reward_is_kept_and_shown(service):
    at = fresh(service, "units", unit="€")
    assert service.get(at).json()["unit"] == "€"
    assert service.get("/v1/bandits/plays").json()["unit"] == ""
    other = service.post("/v1/bandits", BODY | {"name": "units", "unit": "lectures"})
    assert problem(other) == "conflict"
    assert "unit is '€', not 'lectures'" in other.json()["detail"]
    assert problem(service.post("/v1/bandits", BODY | {"name": "no", "unit": "a\nb"})) == "invalid"


def test_decisions(service):
    at = fresh(service, "decisions")
    one = service.post(f"{at}/decisions")
    assert one.json() == {
        "decisions": [{"id": 0, "arm": "jazz", "at": 1.0, "propensity": None}],
        "again": False,
    }
    many = service.post(f"{at}/decisions", {"n": 3, "key": "k"}).json()
    assert [made["id"] for made in many["decisions"]] == [1, 2, 3]
    assert [made["at"] for made in many["decisions"]] == [2.0, 3.0, 4.0]
    again = service.post(f"{at}/decisions", {"n": 3, "key": "k"}).json()
    assert again == many | {"again": True}
    assert problem(service.post(f"{at}/decisions", {"n": 2, "key": "k"})) == "conflict"
    last = service.get(f"{at}/decisions?limit=2").json()["decisions"]
    assert last == many["decisions"][:0:-1]


def test_a_verdict_says_in_fields_whether_one_may_stop(service):
    """One arm pays at every decision and wins; then the other pays instead, which raises the alarm."""
    at = "/v1/bandits/stopping"
    body = BODY | {"name": "stopping", "window": 2, "groups": 2, "floor": 0.5, "seed": 1}
    assert service.post("/v1/bandits", body).status_code == 201

    def play(rounds, best):
        for _ in range(rounds):
            (made,) = service.post(f"{at}/decisions").json()["decisions"]
            piece = {"decision": made["id"], "value": float(made["arm"] == best), "age": 0}
            assert service.post(f"{at}/pieces", piece).status_code == 200
        wait_until(lambda: service.get(f"{at}/state").json()["decisions"] == made["id"] + 1)
        return service.get(f"{at}/state").json()

    expected = [
        (5, "rock", "none_yet", False, False),
        (150, "rock", "winner", True, False),
        (60, "jazz", "winner", False, True),
    ]
    for rounds, best, outcome, may_stop, alarm in expected:
        state = play(rounds, best)
        verdict = state["verdict"]
        assert (verdict["outcome"], verdict["may_stop"], bool(state["alarm"]["arms"])) == (
            outcome, may_stop, alarm
        )  # fmt: skip
        assert verdict["sentence"].startswith("You may stop") == may_stop
        assert (verdict["winner"] == "rock") == (outcome == "winner")
    assert service.post("/v1/bandits", BODY | {"name": "floorless"}).status_code == 201
    verdict = service.get("/v1/bandits/floorless/state").json()["verdict"]
    assert (verdict["outcome"], verdict["may_stop"]) == ("cannot_tell", False)


def test_a_floor_gives_propensities_and_verdicts(service):
    arms = ["jazz", "rock"]
    made = {"name": "floored", "arms": arms, "window": 5, "floor": 0.4, "seed": 1}
    assert service.post("/v1/bandits", made).json()["floor"] == 0.4
    at = "/v1/bandits/floored"
    for _ in range(4):
        some = service.post(f"{at}/decisions", {"n": 100}).json()["decisions"]
        assert {one["propensity"] for one in some} == {0.2, 0.8}
        paid = [{"decision": one["id"], "value": float(one["arm"] == "rock")} for one in some]
        service.post(f"{at}/pieces", paid)
        time.sleep(0.6)  # a state may be half a second old
    verdict = service.get(f"{at}/state").json()["verdict"]
    assert verdict["scored"] == 395
    assert verdict["pairs"][0]["interval"][0] >= -1.0
    explained = service.get(f"{at}/decisions/{some[-1]['id']}/explain").json()
    assert explained["propensity"] == some[-1]["propensity"]
    events = service.get(f"{at}/export?limit=1000").json()["events"]
    assert {event["propensity"] for event in events if event["kind"] == "decision"} == {0.2, 0.8}
    refused = service.post("/v1/bandits", made | {"name": "wrong", "shares": {"jazz": [0.9, 0.1]}})
    assert refused.status_code == 422


@pytest.mark.parametrize(
    "body", [{"n": 0}, {"n": 1001}, {"n": 1.5}, {"n": "1"}, {"m": 1}, {"key": ""}, [], 3]
)
def test_decisions_that_cannot_be(service, body):
    answer = service.post("/v1/bandits/plays/decisions", body)
    assert answer.status_code == 422
    assert problem(answer) == "invalid"


def test_pieces_each_with_its_own_answer(service):
    at = fresh(service, "pieces")
    service.post(f"{at}/decisions", {"n": 2})
    piece = {"decision": 0, "value": 0.5, "age": 0, "key": "a"}
    assert service.post(f"{at}/pieces", piece).json() == {"status": "stored", "age": 0.0, "late": False}
    assert service.post(f"{at}/pieces", piece).json() == {"status": "again", "age": 0.0, "late": False}
    told = service.post(
        f"{at}/pieces",
        [
            piece,
            piece | {"value": 0.6},
            piece | {"decision": 99},
            piece | {"age": 500, "key": "b"},
            {"decision": 0, "value": 0.1, "at": 0, "key": "c"},
            {"decision": 0, "value": -0.1},
            {"decision": 0, "value": 0.1, "age": 0, "at": 0},
            {"decision": 1, "value": 0.25},
            {"decision": 1, "value": 0.25},
        ],
    ).json()
    outcomes = [one["status"] for one in told]
    expected = ["again", "conflict", "unknown", "future", "early", "invalid", "invalid", "stored", "stored"]
    assert outcomes == expected
    assert all(one["detail"] for one in told[1:7])
    values = [event["value"] for event in service.events("pieces") if event["kind"] == "piece"]
    assert values == [0.5, 0.25, 0.25]


def test_one_piece_that_cannot_be_stored_is_a_problem(service):
    at = fresh(service, "refused")
    service.post(f"{at}/decisions", {"n": 1})
    piece: dict[str, object] = {"decision": 0, "value": 0.5, "age": 0, "key": "a"}
    service.post(f"{at}/pieces", piece)
    changes: list[tuple[dict[str, object], int, str]] = [
        ({"value": 0.6}, 409, "conflict"),
        ({"decision": 1}, 404, "unknown-decision"),
        ({"age": 1, "key": "b"}, 422, "future"),
        ({"value": -0.5, "key": "b"}, 422, "invalid"),
        ({"key": "a\tb"}, 422, "invalid"),
        ({"key": "a" * 201}, 422, "invalid"),
        ({"key": "a" * 10_000}, 422, "invalid"),
        ({"decision": -1}, 422, "invalid"),
        ({"decision": 2**70}, 422, "invalid"),
        ({"value": "1"}, 422, "invalid"),
        ({"value": None}, 422, "invalid"),
    ]
    for change, status, kind in changes:
        answer = service.post(f"{at}/pieces", piece | change)
        assert (answer.status_code, problem(answer)) == (status, kind), change
    assert len([event for event in service.events("refused") if event["kind"] == "piece"]) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"decision": 0, "value": NaN}', 400),
        (b'{"decision": 0, "value": Infinity}', 400),
        (b'{"decision": 0, "value": 1e999}', 422),
        (b'{"decision": 0, "value": 0.1', 400),
        (b"\xff\xfe", 400),
        (b"2\xff\x05", 400),  # a number where an object belongs, and then no JSON
        (b'[\x0f\x00"\xe9', 400),
        (b'{"\xbb": 1}', 400),
        (b'{"decision": 0, "value": 1, "key": "\\ud800"}', 400),
        (b"[" * 100_000, 422),
        (b"[]", 422),
        (b"", 400),
    ],
)
def test_bodies_that_are_no_pieces(service, body, status):
    answer = service.http.post(
        "/v1/bandits/plays/pieces", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status, answer.text
    assert problem(answer) in ("malformed", "invalid")


def test_a_batch_has_a_most(service):
    piece = {"decision": 0, "value": 0.5}
    answer = service.post("/v1/bandits/plays/pieces", [piece] * 1001)
    assert problem(answer) == "invalid"
    assert service.post("/v1/bandits/plays/pieces", [piece] * 1000).status_code == 200


def test_late_pieces_are_counted_and_not_learned(service):
    at = fresh(service, "late", window=10)
    service.post(f"{at}/decisions", {"n": 11})
    late = {"decision": 0, "value": 0.5, "age": 10, "key": "a"}
    assert service.post(f"{at}/pieces", late).json() == {"status": "late", "age": 10.0, "late": True}
    assert service.post(f"{at}/pieces", late).json() == {"status": "again", "age": 10.0, "late": True}
    state = service.get(f"{at}/state").json()
    assert (state["late"], state["duplicates"], state["decisions"], state["pending"]) == (1, 1, 11, 10)
    assert sum(arm["observed"] for arm in state["arms"]) == 0.0


def test_refunds_where_they_are_allowed(service):
    at = fresh(service, "refunds", allow_negative=True)
    service.post(f"{at}/decisions")
    assert service.post(f"{at}/pieces", {"decision": 0, "value": -0.5, "age": 0}).json()["status"] == "stored"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"arms": {"jazz": 1, "rock": "x", "pop": 2}}, 'arms["rock"] must be a number, not text'),
        ({"arms": {"jazz": 1, "rock": 0}}, "the cap of arm 'rock' must be a number from"),
        ({"shares": {"jazz": [0, 1], "rock": [0, "x"]}}, 'shares["rock"][1] must be a number, not text'),
        ({"streams": {"a": {}, "b": {"margn": 1}}}, "streams[\"b\"]: unknown field 'margn'; did you mean"),
        ({"streams": {"a": {"cap": 0}}, "floor": 0.1}, "the cap of stream 'a' must be a number from"),
        ({"about": {"jazz": {"a": 1}, "rock": {"a": 1, "b": [1]}}}, 'about["rock"]["b"] must be'),
        ({"arm_features": {"a": "bool"}, "about": {"rock": {"a": 3}}}, "about arm 'rock': the feature 'a'"),
        ({"prior": {"jazz": [], "rock": [[], [[1, None]]]}}, 'prior["rock"][1][0][1] must be a number'),
    ],
)
def test_errors_under_a_mapping_name_the_key(service, wrong, says):
    answer = service.post("/v1/bandits", BODY | {"name": "wrong"} | wrong)
    assert problem(answer) == "invalid"
    assert says in answer.json()["detail"]


def test_a_bandit_shows_the_arms_that_it_has_now(service):
    at = fresh(service, "changing")
    service.post(f"{at}/arms", {"name": "folk"})
    service.post(f"{at}/arms/retire", {"name": "jazz"})
    shown = service.get(at).json()
    assert (shown["arms"], shown["retired"]) == (["rock", "folk"], ["jazz"])
    assert shown in service.get("/v1/bandits").json()["bandits"]


def test_an_index_that_is_not_a_number_is_said_so(service, monkeypatch):
    at = fresh(service, "lost")

    def choose(ledger, *args):
        raise lost_index("Mine", 1, 7)

    monkeypatch.setattr(Ledger, "choose", choose)
    answer = service.post(f"{at}/decisions")
    assert problem(answer) == "not-served"
    assert answer.json()["detail"].startswith("the index of Mine for arm 1 is not a number in round 7")


def test_arms_come_and_go(service):
    at = fresh(service, "arms", window="7d")
    assert service.post(f"{at}/arms", {"name": "folk", "cap": 2, "window": "12h"}).json() == {
        "status": "stored"
    }
    assert service.post(f"{at}/arms", {"name": "folk", "cap": 2, "window": "12h"}).json() == {
        "status": "again"
    }
    assert problem(service.post(f"{at}/arms", {"name": "folk", "cap": 3})) == "conflict"
    assert problem(service.post(f"{at}/arms", {"name": "punk", "window": 5})) == "invalid"
    assert problem(service.post(f"{at}/arms", {"name": "punk", "window": "8d"})) == "invalid"
    assert problem(service.post(f"{at}/arms/retire", {"name": "flok"})) == "unknown-arm"
    for name in ("jazz", "rock"):
        assert service.post(f"{at}/arms/retire", {"name": name}).json() == {"status": "stored"}
    assert service.post(f"{at}/arms/retire", {"name": "rock"}).json() == {"status": "again"}
    made = service.post(f"{at}/decisions", {"n": 5}).json()["decisions"]
    assert {decision["arm"] for decision in made} == {"folk"}
    service.post(f"{at}/arms/retire", {"name": "folk"})
    none = service.post(f"{at}/decisions")
    assert problem(none) == "no-arms"
    assert "retired" in none.json()["detail"]
    assert service.post(f"{at}/pieces", {"decision": 0, "value": 1.5}).status_code == 200


def test_one_that_cannot_be_served_does_not_hurt_its_company(service):
    """Requests that share a transaction are refused each for itself."""
    at = fresh(service, "company")
    service.post(f"{at}/decisions")
    for name in ("jazz", "rock"):
        service.post(f"{at}/arms/retire", {"name": name})
    answers = []

    def send(i: int) -> None:
        path, body = (f"{at}/decisions", None) if i % 2 else (f"{at}/pieces", {"decision": 0, "value": 0.5})
        answers.append((i % 2, service.post(path, body).status_code))

    threads = [threading.Thread(target=send, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(0, 200)] * 8 + [(1, 409)] * 8


def test_closing(service):
    at = fresh(service, "closing")
    service.post(f"{at}/decisions")
    assert problem(service.post(f"{at}/decisions/0/close", {"foo": 1})) == "invalid"
    assert service.post(f"{at}/decisions/0/close").json() == {"status": "stored"}
    assert service.post(f"{at}/decisions/0/close").json() == {"status": "again"}
    assert problem(service.post(f"{at}/decisions/1/close")) == "unknown-decision"
    assert problem(service.post(f"{at}/decisions/x/close")) == "invalid"
    assert service.post(f"{at}/pieces", {"decision": 0, "value": 0.5}).json()["status"] == "late"


def test_state_and_reasons_are_the_bandits_own(service, tmp_path):
    at = fresh(service, "same", window=20)
    twin = ac.Bandit(arms=["jazz", "rock"], window=20)
    for i in range(60):
        made = service.post(f"{at}/decisions").json()["decisions"][0]
        assert made["arm"] == twin.decide().arm
        value = 0.9 if made["arm"] == "rock" else 0.2
        service.post(f"{at}/pieces", {"decision": i, "value": value, "age": 0, "key": "k"})
        twin.observe(i, value, age=0, key="k")
    state, expected = service.get(f"{at}/state").json(), twin.state()
    assert state["pending"] == expected.pending
    for arm, other in zip(state["arms"], expected.arms, strict=True):
        assert (arm["estimate"], arm["share"], arm["spread"]) == (other.estimate, other.share, other.spread)
        assert tuple(arm["interval"]) == other.interval
        assert arm["expected"] == other.expected
    why = service.get(f"{at}/decisions/59/explain").json()
    assert why["exact"]
    assert why["arm"] == max(why["reasons"], key=lambda reason: reason["index"])["arm"]
    assert [(reason["index"], reason["estimate"]) for reason in why["reasons"]] == [
        (reason.index, reason.estimate) for reason in twin.explain(59).reasons
    ]
    assert problem(service.get(f"{at}/decisions/60/explain")) == "unknown-decision"


def test_the_log_in_pages(service):
    at = fresh(service, "log")
    service.post(f"{at}/decisions", {"n": 5})
    service.post(f"{at}/pieces", {"decision": 4, "value": 0.5, "age": 0})
    page = service.get(f"{at}/export?limit=3").json()
    assert [event["kind"] for event in page["events"]] == ["add_arm", "add_arm", "decision"]
    assert (page["next"], page["end"]) == (3, False)
    rest = service.get(f"{at}/export?after=3").json()
    assert rest["end"]
    assert rest["events"][-1]["value"] == 0.5
    assert problem(service.get(f"{at}/export?limit=0")) == "invalid"


def test_a_bandit_is_archived_restored_and_deleted(tmp_path):
    with serving(tmp_path) as service:
        at = fresh(service, "plays")
        fresh(service, "other")
        for name in ("plays", "other"):
            service.post(f"/v1/bandits/{name}/decisions", {"key": "k"})
        before = service.events("plays"), service.events("other")
        assert service.post(f"{at}/archive").json()["archived"] > 1.7e9
        assert problem(service.post(f"{at}/decisions")) == "archived"
        assert problem(service.post(f"{at}/pieces", {"decision": 0, "value": 0.5})) == "archived"
        assert problem(service.get(f"{at}/state")) == "archived"
        assert problem(service.post("/v1/bandits", BODY)) == "conflict"
        listed = service.get("/v1/bandits").json()
        assert [one["name"] for one in listed["bandits"]] == ["other"]
        assert [one["name"] for one in listed["archived"]] == ["plays"]
        assert service.post(f"{at}/restore").json()["archived"] is None
        assert service.events("plays") == before[0]
        assert service.post(f"{at}/decisions", {"key": "k"}).json()["decisions"][0]["id"] == 0
        assert problem(service.http.delete(f"{at}?grace=59min")) == "invalid"
        wrong = service.http.delete(f"{at}?grace=soon").json()["detail"]
        assert wrong.startswith("grace must be a time such as 60d, 12h or 30min")
        gone = service.http.delete(f"{at}?grace=1h").json()
        assert 3600 <= gone["erase_at"] - gone["archived"] < 3700
        assert service.get(at).json() == gone
        assert problem(service.http.delete("/v1/bandits/nobody")) == "unknown-bandit"
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    found = store.find("plays")
    assert found is not None
    store.amend(found.number, {ERASE_AT: 1.0})  # the hour has passed
    store.close()
    with serving(tmp_path) as service:
        wait_until(lambda: service.get("/readyz").status_code == 200)
        assert problem(service.get(at)) == "unknown-bandit"
        assert service.get("/v1/bandits").json()["archived"] == []
        assert service.events("other") == before[1]
        fresh(service, "plays")
        assert [event["kind"] for event in service.events("plays")] == ["add_arm", "add_arm"]


def test_a_prior_is_imported_once_and_marked(service):
    prior = {"jazz": [[[60, 0.2]], []], "rock": [[[60, 0.5], [7200, 0.4]]] * 3}
    body = BODY | {"name": "warm", "window": "10h", "prior": prior}
    made = service.post("/v1/bandits", body)
    assert made.status_code == 201
    assert made.json()["imported"] == 5
    assert service.post("/v1/bandits", body).status_code == 200
    at = "/v1/bandits/warm"
    assert service.post(f"{at}/decisions").json()["decisions"][0]["id"] == 5
    arms = {arm["name"]: arm for arm in service.get(f"{at}/state").json()["arms"]}
    assert arms["rock"]["estimate"] == pytest.approx(0.9)
    events = service.events("warm")
    assert [event.get("imported", False) for event in events] == [False] * 2 + [True] * 13 + [False]
    assert [row["id"] for row in service.get(f"{at}/decisions").json()["decisions"]] == [5]
    assert sum(map(sum, service.get(f"{at}/history").json()["counts"])) == 1
    assert "imported from an old log" in service.get(f"{at}/decisions/3/explain").json()["detail"]
    wrong = service.post("/v1/bandits", BODY | {"name": "wrong", "prior": prior})
    assert (wrong.status_code, problem(wrong)) == (422, "invalid")
    assert "a time, such as '60d'" in wrong.json()["detail"]


def test_the_log_says_whom_decisions_were_for(service):
    at = fresh(service, "visits", features={"country": ["de", "us"], "new": "bool"}, policy="UCB1")
    service.post(f"{at}/decisions", {"context": {"country": "us", "new": True}})
    service.post(f"{at}/decisions", {"n": 2, "context": [{"country": "fr"}, {"new": False}]})
    events = service.get(f"{at}/export?after=3").json()["events"]
    assert [event["context"] for event in events] == [
        {"country": None, "new": None},
        {"country": None, "new": False},
    ]
    (first,) = service.get(f"{at}/export?after=2&limit=1").json()["events"]
    assert first["context"] == {"country": "us", "new": True}
    assert "context" not in service.get(f"{at}/export?limit=1").json()["events"][0]


def test_what_contexts_are_worth_is_kept_until_more_decisions_have_closed(service):
    at = fresh(service, "worth", features={"new": "bool"}, policy="UCB1", floor=0.5, window=200, groups=10)

    def more(n):
        contexts = [{"new": i % 2 == 0} for i in range(n)]
        made = service.post(f"{at}/decisions", {"n": n, "context": contexts}).json()["decisions"]
        liked = [one for one in made if (one["arm"] == "jazz") == (one["id"] % 2 == 0)]
        service.post(f"{at}/pieces", [{"decision": one["id"], "value": 0.5, "age": 0} for one in liked])

    def worth():
        return service.get(f"{at}/contexts").json()

    more(180)
    assert "has closed yet" in worth()["reason"]
    for _ in range(6):
        more(180)
    wait_until(lambda: worth()["closed"] == 1260 - 200)
    found = worth()
    assert found["decisions"] == 1060
    assert found["more"]["low"] > 0
    assert found["sentence"].startswith("Contexts are worth")
    assert {one["part"] for one in found["winners"]} <= {"new", "not new"}
    more(10)
    wait_until(lambda: service.get(f"{at}/state").json()["decisions"] == 1270)
    assert worth()["closed"] == 1060
    more(100)
    wait_until(lambda: worth()["closed"] == 1170)


@pytest.mark.parametrize(
    "path",
    ["/v1/bandits/nobody/state", "/v1/bandits/nobody/export", "/v1/bandits/nobody/decisions/0/explain"],
)
def test_no_such_bandit(service, path):
    assert problem(service.get(path)) == "unknown-bandit"


def test_what_is_not_there(service):
    assert problem(service.get("/v1/nothing")) == "not-found"
    wrong = service.http.request("DELETE", "/v1/bandits")
    assert problem(wrong) == "method"
    assert wrong.headers["allow"]
    assert problem(service.http.put("/v1/bandits/plays/pieces", json={})) in ("method", "not-found")
    text = service.http.post(
        "/v1/bandits/plays/pieces", content=b"a=b", headers={"content-type": "text/plain"}
    )
    assert problem(text) == "media-type"


def test_every_answer_has_its_headers(service):
    paths = ["/healthz", "/v1/bandits", "/v1/nothing", "/metrics", "/v1/openapi.json"]
    for answer in [*map(service.get, paths), service.post("/v1/bandits/plays/decisions")]:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "no-store" in answer.headers["cache-control"]
        assert "server" not in answer.headers


def test_the_description_has_every_route(service):
    found = service.get("/v1/openapi.json").json()
    assert set(found["paths"]) == {
        "/healthz", "/readyz", "/v1/bandits", "/v1/bandits/{bandit}", "/v1/bandits/{bandit}/state",
        "/v1/bandits/{bandit}/arms", "/v1/bandits/{bandit}/arms/retire", "/v1/bandits/{bandit}/decisions",
        "/v1/bandits/{bandit}/decisions/{id}/explain", "/v1/bandits/{bandit}/decisions/{id}/close",
        "/v1/bandits/{bandit}/pieces", "/v1/bandits/{bandit}/export",
        "/v1/bandits/{bandit}/archive", "/v1/bandits/{bandit}/restore",
        "/v1/bandits/{bandit}/history", "/v1/bandits/{bandit}/contexts",
    }  # fmt: skip
    assert set(found["paths"]["/v1/bandits/{bandit}/decisions"]) == {"get", "post"}
    assert {"Piece", "PieceResult", "BanditState"} <= found["components"]["schemas"].keys()


def test_metrics(service):
    at = fresh(service, "<measured>"[1:-1])
    service.post(f"{at}/arms", {"name": "<img src=x onerror=alert(1)>"})
    service.post(f"{at}/decisions", {"n": 7})
    before = service.get("/metrics").text
    service.post(f"{at}/decisions", {"n": 7})
    service.post(f"{at}/pieces", [{"decision": 0, "value": 1, "key": "a"}] * 3)
    after = service.get("/metrics").text

    def grown(name: str) -> float:
        return value(after, name) - value(before, name)

    assert grown("accrual_decisions_total") == 7
    assert grown('accrual_pieces_total{outcome="stored"}') == 1
    assert grown('accrual_pieces_total{outcome="again"}') == 2
    assert grown("accrual_duplicates_total") == 2
    assert grown("accrual_commit_seconds_count") == 2
    assert value(after, "accrual_pending") > 0
    assert value(after, "accrual_fold_lag_events") == 0
    assert value(after, 'accrual_verdict{outcome="cannot_tell"}') > 0
    assert grown(_seconds("/v1/bandits/{bandit}/decisions", 200)) == 1
    assert grown(_seconds("/v1/bandits/{bandit}/pieces", 200)) == 1
    service.get("/no/such/address")
    service.get("/v1/bandits/nobody/state")
    page = service.get("/metrics").text
    assert value(page, _seconds("none", 404)) >= 1
    assert value(page, _seconds("/v1/bandits/{bandit}/state", 404)) >= 1
    assert "img" not in page
    assert "measured" not in page
    assert "nobody" not in page


def _seconds(route: str, status: int) -> str:
    return f'accrual_request_seconds_count{{route="{route}",status="{status}"}}'


def test_a_request_has_an_id_and_the_access_log_its_seconds(tmp_path, caplog):
    with serving(tmp_path, access_log=True) as service:
        logging.getLogger("accrual.service").addHandler(caplog.handler)  # a service does not propagate
        given = service.get("/v1/bandits", headers={"X-Request-Id": "from-the-proxy:7"})
        odd = service.get("/v1/nothing", headers={"X-Request-Id": "two words"})
    logging.getLogger("accrual.service").removeHandler(caplog.handler)
    assert given.headers["x-request-id"] == "from-the-proxy:7"
    assert re.fullmatch(r"[0-9a-f]{16}", odd.headers["x-request-id"])
    logged = {line.__dict__["request"]: line.__dict__ for line in caplog.records if line.msg == "answered"}
    line = logged["from-the-proxy:7"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/v1/bandits", 200)
    assert 0.0 < line["seconds"] < 60.0
    assert logged[odd.headers["x-request-id"]]["status"] == 404


def value(page: str, name: str) -> float:
    lines = [line for line in page.splitlines() if line.startswith(name + " ")]
    return float(lines[0].split()[1]) if lines else 0.0


def test_requests_share_transactions(service):
    """64 at a time need far fewer transactions than requests."""
    at = fresh(service, "group")
    service.post(f"{at}/decisions")
    before = value(service.get("/metrics").text, "accrual_commit_seconds_count")

    def send(part: int) -> None:
        for i in range(10):
            service.post(f"{at}/pieces", {"decision": 0, "value": 0.1, "key": f"{part}-{i}"})

    threads = [threading.Thread(target=send, args=(part,)) for part in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(service.get("/metrics").text, "accrual_commit_seconds_count") - before < 160
    assert len(service.events("group")) == 2 + 1 + 160


def test_a_store_that_fails_is_said_and_comes_back(service, monkeypatch):
    at = fresh(service, "failing")
    service.post(f"{at}/decisions")
    append = SQLiteStore.append

    def fail(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(SQLiteStore, "append", fail)
    answer = service.post(f"{at}/pieces", {"decision": 0, "value": 0.5, "key": "a"})
    assert answer.status_code == 503
    assert problem(answer) == "store"
    assert answer.headers["retry-after"] == "1"
    assert "disk" not in answer.text  # that is the operator's business
    monkeypatch.setattr(SQLiteStore, "append", append)
    assert service.post(f"{at}/pieces", {"decision": 0, "value": 0.5, "key": "a"}).status_code == 200


def test_a_fault_is_a_problem_document_too(service, monkeypatch):
    at = fresh(service, "fault")
    monkeypatch.setattr(SQLiteStore, "append", lambda *_: math.sqrt(-1))
    answer = service.post(f"{at}/decisions")
    assert (answer.status_code, problem(answer)) == (500, "internal")
    monkeypatch.setattr(ac.Bandit, "explain", lambda *_: math.sqrt(-1))
    answer = service.get(f"{at}/decisions/0/explain")
    assert (answer.status_code, problem(answer)) == (500, "internal")


def test_a_full_line_says_try_again(tmp_path, monkeypatch):
    """With the store held up, what fits waits and is stored in the end; the rest is refused at once."""
    with serving(tmp_path, queue=10) as service:
        service.post("/v1/bandits", BODY)
        service.post("/v1/bandits/plays/decisions")
        append, go = SQLiteStore.append, threading.Event()

        def slow(*given, **named):
            go.wait(30)
            return append(*given, **named)

        monkeypatch.setattr(SQLiteStore, "append", slow)
        answers = []

        def send(part: int) -> None:
            piece = {"decision": 0, "value": 0.1, "key": str(part)}
            answers.append(service.post("/v1/bandits/plays/pieces", piece))
            if sum(answer.status_code == 503 for answer in answers) == 20:
                go.set()

        threads = [threading.Thread(target=send, args=(part,)) for part in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = [answer.status_code for answer in answers]
        assert (statuses.count(200), statuses.count(503)) == (10, 20)
        refused = next(answer for answer in answers if answer.status_code == 503)
        assert problem(refused) == "busy"
        assert refused.headers["retry-after"] == "1"
        assert len(service.events()) == 2 + 1 + 10


def test_a_full_line_counts_every_decision_of_a_request(tmp_path, monkeypatch):
    """A request for a thousand decisions counted as one."""
    with serving(tmp_path, queue=10) as service:
        service.post("/v1/bandits", BODY)
        append, begun, go = SQLiteStore.append, threading.Event(), threading.Event()

        def slow(*given, **named):
            begun.set()
            go.wait(30)
            return append(*given, **named)

        monkeypatch.setattr(SQLiteStore, "append", slow)
        answers: list[int] = []
        first = threading.Thread(
            target=lambda: answers.append(service.post("/v1/bandits/plays/decisions", {"n": 9}).status_code)
        )
        first.start()
        assert begun.wait(30)
        refused = service.post("/v1/bandits/plays/decisions", {"n": 2})
        assert (refused.status_code, problem(refused)) == (503, "busy")
        assert "9 decisions" in refused.json()["detail"]
        go.set()
        first.join()
        assert answers == [200]
        assert service.post("/v1/bandits/plays/decisions", {"n": 2}).status_code == 200


def test_stopped_in_order_with_requests_under_way(tmp_path):
    """SIGTERM: what was asked before is answered, all of that is stored, and the next start has it."""
    with Process(tmp_path) as process:
        service = process.ready()
        service.post("/v1/bandits", BODY)
        stored, stop = [], threading.Event()

        def send(part: int) -> None:
            i = 0
            while not stop.is_set():
                try:
                    answer = service.post("/v1/bandits/plays/decisions", {"key": f"{part}-{i}"})
                except Exception:
                    return
                assert answer.status_code == 200
                stored.append(answer.json()["decisions"][0]["id"])
                i += 1

        threads = [threading.Thread(target=send, args=(part,)) for part in range(8)]
        for thread in threads:
            thread.start()
        while len(stored) < 100:
            pass
        assert process.stop() == -15
        stop.set()
        for thread in threads:
            thread.join()
    assert not [name for name in ("s.db-wal", "s.db-shm") if (tmp_path / name).exists()]
    with ac.Bandit.open(f"sqlite:///{tmp_path}/s.db", "plays") as bandit:
        assert bandit.state().decisions >= len(set(stored)) == len(stored) >= 100


def test_a_demo_that_is_stopped_leaves_nothing_behind(tmp_path, monkeypatch):
    """SIGTERM again: its traffic ends, and what it kept is gone."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    with Process(tmp_path, "--demo") as process:
        service = process.ready()
        wait_until(lambda: service.get("/v1/demo").json()["decisions"])
        assert [path.name.startswith("accrual-demo-") for path in place.iterdir()] == [True]
        assert process.stop() == 0
    assert list(place.iterdir()) == []


def test_a_bandit_of_another_making_is_named_and_not_served(tmp_path):
    """Its policy is Python's alone. The others are served."""

    @dataclasses.dataclass(frozen=True)
    class Mine(ac.AgeIMED):
        pass

    with ac.Bandit(["a", "b"], 10, policy=Mine(), store=f"sqlite:///{tmp_path}/s.db", name="mine"):
        pass
    with serving(tmp_path) as service:
        assert [bandit["name"] for bandit in service.get("/v1/bandits").json()["not_served"]] == ["mine"]
        assert problem(service.post("/v1/bandits/mine/decisions")) == "not-served"
        assert service.post("/v1/bandits", BODY).status_code == 201


def test_a_second_service_on_the_same_file_is_told(tmp_path, capsys):
    from accrual.cli.app import run

    with serving(tmp_path):
        assert run(["serve", "--store", f"sqlite:///{tmp_path}/s.db", "--port", "0"]) == 2
    assert "open for writing already" in capsys.readouterr().err
