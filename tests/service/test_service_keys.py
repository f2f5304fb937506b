"""Who is let in, and who is not."""

from __future__ import annotations

import hmac
import re
import time

import pytest
from tests.serving import BODY, problem, serving, wait_until

from accrual.cli.app import run
from accrual.core.errors import InputError
from accrual.service.app import create, prepare
from accrual.service.keys import KeyRing, new_key
from accrual.service.settings import Settings, load, named
from accrual.store.backends import make_tables, open_keys


def url(folder) -> str:
    return f"sqlite:///{folder}/s.db"


def made(folder, capsys, *scopes: str) -> str:
    """A new key, from the command line."""
    options = [word for scope in scopes for word in ("--scope", scope)]
    assert run(["keys", "create", "--store", url(folder), "--name", "shop", *options]) == 0
    return str(capsys.readouterr().out.strip())


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_scopes_hold_on_every_route(tmp_path, capsys):
    keys = {scope: made(tmp_path, capsys, scope) for scope in ("read", "write", "admin")}
    with serving(tmp_path) as service:
        assert service.get("/healthz").status_code == 200  # for those who watch over it
        assert service.get("/v1/openapi.json").status_code == 200
        made_of = BODY | {"features": {"plan": ["free"]}, "policy": "AgePrior"}
        assert service.post("/v1/bandits", made_of, headers=bearer(keys["admin"])).status_code == 201
        at = "/v1/bandits/plays"
        routes = [
            ("GET", "/v1/bandits", None, "read"),
            ("GET", at, None, "read"),
            ("GET", f"{at}/state", None, "read"),
            ("GET", f"{at}/contexts", None, "read"),
            ("GET", f"{at}/history", None, "read"),
            ("GET", f"{at}/decisions", None, "read"),
            ("GET", f"{at}/decisions/0/explain", None, "read"),
            ("GET", f"{at}/export", None, "read"),
            ("GET", "/metrics", None, "read"),
            ("POST", f"{at}/decisions", {}, "write"),
            ("POST", f"{at}/pieces", {"decision": 0, "value": 0.5}, "write"),
            ("POST", f"{at}/decisions/0/close", None, "write"),
            ("POST", "/v1/bandits", made_of, "admin"),
            ("POST", f"{at}/arms", {"name": "folk"}, "admin"),
            ("POST", f"{at}/arms/retire", {"name": "folk"}, "admin"),
            ("POST", f"{at}/archive", None, "admin"),
            ("DELETE", at, None, "admin"),
            ("POST", f"{at}/restore", None, "admin"),
        ]
        described = service.get("/v1/openapi.json").json()["paths"]
        assert len(routes) == 1 + sum(
            len(ways) for path, ways in described.items() if path.startswith("/v1/")
        )
        service.post(f"{at}/decisions", headers=bearer(keys["write"]))
        before = service.get(f"{at}/export", headers=bearer(keys["read"])).json()
        for method, path, sent, scope in routes:
            bad = [
                ({}, "no-key", 401),
                (bearer("acc_" + "0" * 12 + "_" + "A" * 43), "bad-key", 401),
                (bearer(keys[scope][:-1] + ("A" if keys[scope][-1] != "A" else "B")), "bad-key", 401),
                (bearer("nonsense"), "bad-key", 401),
                ({"Authorization": f"Basic {keys[scope]}"}, "bad-key", 401),
                *[(bearer(key), "scope", 403) for other, key in keys.items() if other != scope],
            ]
            for headers, kind, status in bad:
                answer = service.http.request(method, path, json=sent, headers=headers)
                assert (answer.status_code, problem(answer)) == (status, kind), (method, path, headers)
                assert status == 403 or answer.headers["www-authenticate"].startswith("Bearer")
        assert service.get(f"{at}/export", headers=bearer(keys["read"])).json() == before
        for method, path, sent, scope in routes:
            answer = service.http.request(method, path, json=sent, headers=bearer(keys[scope]))
            assert answer.status_code in (200, 201), (method, path, answer.text)


def test_a_key_is_made_rotated_and_revoked_while_the_service_runs(tmp_path, capsys, monkeypatch):
    with serving(tmp_path) as service:
        assert service.post("/v1/bandits", BODY).status_code == 201  # nobody has a key: this machine may
        first = made(tmp_path, capsys, "read")
        state = "/v1/bandits/plays/state"
        wait_until(lambda: service.get(state).status_code == 401, 10)
        assert service.get(state, headers=bearer(first)).status_code == 200
        assert run(["keys", "rotate", first.split("_")[1], "--store", url(tmp_path)]) == 0
        second = capsys.readouterr().out.strip()
        wait_until(lambda: service.get(state, headers=bearer(second)).status_code == 200, 10)
        assert problem(service.get(state, headers=bearer(first))) == "bad-key"
        assert run(["keys", "revoke", second.split("_")[1], "--store", url(tmp_path)]) == 0
        wait_until(lambda: service.get(state, headers=bearer(second)).status_code == 401, 10)
        assert problem(service.get(state)) == "no-key"  # and it is not open again


def test_the_database_has_no_secret(tmp_path, capsys):
    key = made(tmp_path, capsys, "read", "write")
    (row,) = open_keys(url(tmp_path)).all()
    secret = key.split("_", 2)[2]
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert secret.encode() not in everything
    assert secret not in repr(row)
    assert row.scopes == {"read", "write"}
    run(["keys", "list", "--store", url(tmp_path)])
    shown = capsys.readouterr().out
    assert secret not in shown
    assert re.search(rf"{row.id} +read write .* good +shop", shown)


def test_a_rotated_key_may_stay_good_for_a_while(tmp_path, capsys):
    key = made(tmp_path, capsys, "read")
    run(["keys", "rotate", key.split("_")[1], "--grace", "1h", "--store", url(tmp_path)])
    new = capsys.readouterr().out.strip()
    ring = KeyRing(open_keys(url(tmp_path)), required=True)
    assert ring.find(key)
    assert ring.find(new)
    assert ring.good == 2
    run(["keys", "revoke", key.split("_")[1], "--store", url(tmp_path)])
    ring.refresh()
    assert ring.find(key) is None
    run(["keys", "rotate", key.split("_")[1], "--store", url(tmp_path)])
    assert "has ended" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["make"], "No such command 'make'"),
        (["create"], "needs a scope"),
        (["create", "--scope", "wirte"], "did you mean 'write'"),
        (["create", "x", "--scope", "read"], "unexpected extra argument"),
        (["revoke"], "Missing argument 'ID'"),
        (["revoke", "0000"], "no key has the id"),
        (["rotate", "0000", "--grace", "soon"], "--grace must be"),
        (["create", "--scope", "read", "--name", "a\nb"], "printable"),
    ],
)
def test_what_keys_refuses(tmp_path, capsys, words, says):
    make_tables(url(tmp_path))
    assert run(["keys", *words, "--store", url(tmp_path)]) == 2
    assert says in capsys.readouterr().err


def test_digests_are_compared_in_constant_time(tmp_path, monkeypatch):
    """Also for an id that does not exist."""
    make_tables(url(tmp_path))
    table = open_keys(url(tmp_path))
    row, text = new_key("a", ["read"], time.time())
    table.add(row)
    ring, compared = KeyRing(table, required=True), []
    compare = hmac.compare_digest

    def counted(*two):
        compared.append(two)
        return compare(*two)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    assert ring.find(text)
    assert not ring.find(text[:-1] + ("x" if text[-1] != "x" else "y"))
    assert not ring.find("acc_" + "0" * 12 + text[16:])
    assert len(compared) == 3


def test_beyond_this_machine_only_with_keys(tmp_path, capsys):
    settings = Settings(store=url(tmp_path), host="0.0.0.0", port=0)
    with pytest.raises(InputError, match="needs a key"):
        create(settings)
    assert run(["serve", "--store", url(tmp_path), "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "needs a key" in capsys.readouterr().err
    key = made(tmp_path, capsys, "read")
    assert prepare(settings).required
    run(["keys", "revoke", key.split("_")[1], "--store", url(tmp_path)])
    with pytest.raises(InputError, match="needs a key"):
        prepare(settings)
    assert Settings(host="::1").loopback
    assert not Settings(host="::").loopback
    assert not Settings(host="example.org").loopback


def test_a_key_may_not_ask_too_often(tmp_path):
    with serving(tmp_path, rate=5) as service:
        answers = [service.get("/v1/bandits") for _ in range(12)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) >= 5
        assert problem(refused[0]) == "rate"
        assert refused[0].headers["retry-after"] == "1"
        assert service.get("/healthz").status_code == 200
        time.sleep(0.5)
        assert service.get("/v1/bandits").status_code == 200


def test_the_service_is_called_by_its_name(tmp_path):
    with serving(tmp_path, hosts=("Bandits.example",)) as service:
        named = ("localhost", "127.0.0.1:8000", "bandits.example", "BANDITS.example:443", "[::1]:8000")
        for host in (*named, "10.1.2.3", "10.1.2.3:8000", "[2001:db8::1]:443"):
            assert service.get("/v1/bandits", headers={"Host": host}).status_code == 200, host
        for host in (
            "evil.example",
            "localhost.evil.example",
            "localhost:8000.evil",
            "",
            "[::1",
            "127.0.0.1.evil.example",
            "10.1.2",
        ):
            answer = service.get("/v1/bandits", headers={"Host": host})
            assert (answer.status_code, problem(answer)) == (421, "host"), host
        assert service.get("/", headers={"Host": "evil.example"}).status_code == 421
        for probe in ("/healthz", "/readyz", "/metrics"):
            assert service.get(probe, headers={"Host": "any.example"}).status_code == 200, probe
        two = b"GET /v1/bandits HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n"
        assert b" 400 " in service.raw(two).split(b"\r\n")[0]


def test_pages_of_other_sites_are_kept_out(tmp_path):
    with serving(tmp_path) as service:
        for site, status in [("cross-site", 403), ("same-site", 403), ("same-origin", 201), ("none", 200)]:
            answer = service.post("/v1/bandits", BODY, headers={"Sec-Fetch-Site": site})
            assert answer.status_code == status


def test_settings_from_file_environment_and_flags(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('port = 1\nqueue = 2\nhosts = ["a", "b"]\naccess_log = true\nrate = 7\n')
    environment = {"ACCRUAL_QUEUE": "3", "ACCRUAL_RATE": "8", "ACCRUAL_CONFIG": str(file)}
    found = load(environment=environment, options={"rate": 9.0, "host": None})
    assert (found.port, found.queue, found.rate, found.hosts, found.access_log) == (
        1,
        3,
        9.0,
        ("a", "b"),
        True,
    )
    assert load(environment={"ACCRUAL_HOSTS": "a, b"}).names >= {"a", "b", "localhost"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 1", "did you mean 'port'"),
        ("port = 'x'", "port in .* must be a whole number"),
        ("port = 70000", "at most 65535"),
        ("queue = 0", "queue must be"),
        ("rate = -1", "rate must be"),
        ("access_log = 'maybe'", "true or false"),
        ("hosts = [1]", "list of names"),
        ("workers = 2", "SQLite file has one writer"),
        ("store = 'mysql://x'", "unknown database"),
        ("= 1", "is not TOML"),
    ],
)
def test_wrong_settings_are_said(tmp_path, text, says):
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        load(file)
    with pytest.raises(InputError, match="NAME=VALUE"):
        named(["queue"])
