"""Features of arms over HTTP: declared with a bandit, given with an arm, shown in its state and its log."""

from __future__ import annotations

import pytest
from tests.serving import BODY, Process, Service, problem, serving

KNOWN = {"genre": ["jazz", "rock"], "minutes": [0, 60], "live": "bool"}
NOTHING = {"genre": None, "minutes": None, "live": None}
ABOUT = {"arms": ["a", "b"], "about": {"a": {"genre": "jazz", "live": True}}}
SHOP = BODY | ABOUT | {"name": "shop", "arm_features": KNOWN}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("about")) as service:
        assert service.post("/v1/bandits", SHOP).status_code == 201
        assert service.post("/v1/bandits", BODY).status_code == 201
        yield service


def about(service: Service, bandit: str) -> dict[str, object]:
    arms = service.get(f"/v1/bandits/{bandit}/state").json()["arms"]
    return {arm["name"]: arm["about"] for arm in arms}


def test_what_is_known_about_arms_is_shown_and_kept(tmp_path):
    for first in (True, False):
        with Process(tmp_path) as process:
            service = process.ready()
            answer = service.post("/v1/bandits", SHOP)
            assert answer.status_code == (201 if first else 200)
            assert answer.json()["arm_features"] == KNOWN
            assert service.get("/v1/bandits/shop").json() == answer.json()
            folk = {"name": "folk", "about": {"minutes": 30}}
            status = service.post("/v1/bandits/shop/arms", folk).json()["status"]
            assert status == ("stored" if first else "again")
            assert about(service, "shop") == {
                "a": {"genre": "jazz", "minutes": None, "live": True},
                "b": NOTHING,
                "folk": NOTHING | {"minutes": 30.0},
            }
            added = [event for event in service.events("shop") if event["kind"] == "add_arm"]
            assert added[-1]["about"] == NOTHING | {"minutes": 30.0}


def test_an_explanation_says_what_is_expected_from_it(service):
    service.post("/v1/bandits", SHOP | {"name": "why", "window": 4})
    for i in range(40):
        service.post("/v1/bandits/why/decisions")
        service.post("/v1/bandits/why/pieces", {"decision": i, "value": 0.5, "age": 0})
    reasons = service.get("/v1/bandits/why/decisions/39/explain").json()["reasons"]
    assert {reason["arm"] for reason in reasons} == {"a", "b"}
    for reason in reasons:
        assert 0.0 <= reason["terms"]["expected from what is known about it"] <= 1.0


def test_without_features_of_arms_there_are_none(service):
    assert about(service, "plays") == {"jazz": None, "rock": None}
    assert service.get("/v1/bandits/plays").json()["arm_features"] is None
    assert not any("about" in event for event in service.events("plays"))


WRONG = [
    ({"genre": "folk"}, "unknown level of the feature 'genre' 'folk'"),
    ({"minutes": 61}, "the feature 'minutes' must be from 0 to 60, not 61"),
    ({"minutes": True}, "the feature 'minutes' must be a number"),
    ({"genr": "jazz"}, "did you mean 'genre'?"),
    ({"genre": ["jazz"]}, "or text or null, not a list"),
    ("jazz", "must be an object"),
]


@pytest.mark.parametrize(("known", "says"), WRONG)
def test_what_cannot_be_known_about_an_arm_is_refused(service, known, says):
    before = service.events("shop")
    cases = [
        ("/v1/bandits/shop/arms", {"name": "wrong", "about": known}),
        ("/v1/bandits", SHOP | {"name": "wrong", "about": {"a": known}}),
    ]
    for path, body in cases:
        answer = service.post(path, body)
        assert (answer.status_code, problem(answer)) == (422, "invalid")
        assert says in answer.json()["detail"]
        assert "\n" not in answer.json()["detail"]
    assert service.events("shop") == before
    assert service.get("/v1/bandits/wrong").status_code == 404


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (BODY | ABOUT, "declare it: arm_features="),
        (SHOP | {"policy": "AgeIMED"}, "AgeIMED learns nothing from features of arms; AgePrior does"),
        (SHOP | {"features": {"new": "bool"}}, "AgeLinTS learns nothing from features of arms"),
        (SHOP | {"arm_features": {}}, "at least one feature"),
        (SHOP | {"arm_features": {"genre": [1, 0]}}, "arm_features: the range of the feature 'genre'"),
    ],
)
def test_a_bandit_whose_arms_cannot_have_features_is_refused(service, body, says):
    answer = service.post("/v1/bandits", body | {"name": "wrong"})
    assert (answer.status_code, problem(answer)) == (422, "invalid")
    assert says in answer.json()["detail"]
    assert service.get("/v1/bandits/wrong").status_code == 404


def test_an_arm_is_added_once(service):
    at, arm = "/v1/bandits/shop/arms", {"name": "once", "about": {"genre": "rock"}}
    assert service.post(at, arm).json()["status"] == "stored"
    assert service.post(at, arm).json()["status"] == "again"
    other = service.post(at, arm | {"about": {"genre": "jazz"}})
    assert (other.status_code, problem(other)) == (409, "conflict")
    assert "other features" in other.json()["detail"]
    assert about(service, "shop")["once"] == NOTHING | {"genre": "rock"}
    nothing = service.post("/v1/bandits/plays/arms", arm)
    assert (nothing.status_code, problem(nothing)) == (422, "invalid")
    assert "no arm_features are declared" in nothing.json()["detail"]
    assert "once" not in about(service, "plays")
