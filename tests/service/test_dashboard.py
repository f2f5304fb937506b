"""The page, in a real browser; and what it stands on: its files, the history, simulated traffic."""

from __future__ import annotations

import csv
import hashlib
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from tests.browsing import CHROMIUM, NOTICE, Watched, started, watched
from tests.serving import BODY, Service, problem, serving, wait_until

import accrual as ac
from accrual.cli import app
from accrual.policies.catalog import DEFAULT
from accrual.service import bandit_routes, dashboard
from accrual.service.edge import POLICY
from accrual.studies.demo import PROBLEM, Demo, Regret

EVIL = "<img src=x onerror=alert(1)>"
BEST = "Statistics you can use"
VENDOR = dashboard.FOLDER / "vendor"

expect.set_options(timeout=20_000)

in_browser = pytest.mark.skipif(CHROMIUM is None, reason=NOTICE)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The course platform, six simulated days a second."""
    with serving(tmp_path_factory.mktemp("demo"), demo=Demo(6.0)) as service:
        wait_until(lambda: service.get("/v1/demo").json()["decisions"])
        yield service


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("plain")) as service:
        yield service


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.fixture
def seen(browser):
    """A page that must not complain, nor ask anything of another host."""
    with watched(browser) as seen:
        yield seen
        assert seen.errors == []
        assert seen.asked
        assert all(address.startswith(seen.page.evaluate("location.origin")) for address in seen.asked)


def number(page: Page, name: str, place: str = "#figures") -> float:
    """One of the figures at the top, or of those for engineers."""
    box = page.locator(f"{place} > div").filter(has=page.get_by_text(name, exact=True))
    text = box.locator("dd").first.inner_text().split()[0].replace(",", "")
    return float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)


def made(folder: Path, capsys: pytest.CaptureFixture[str], *scopes: str) -> dict[str, str]:
    """A new key of each scope."""
    keys = {}
    for scope in scopes:
        assert app.run(["keys", "create", "--scope", scope, "--store", f"sqlite:///{folder}/s.db"]) == 0
        keys[scope] = capsys.readouterr().out.split()[0]
    return keys


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


# First, while the simulated traffic is young.


@in_browser
def test_the_demo_learns_while_watched(demo, seen):
    page = seen.page
    page.goto(f"{demo.url}/#courses")
    expect(page.locator("#simulated")).to_contain_text("Simulated traffic")
    expect(page.locator("#status")).to_have_text("Live")
    expect(page.locator("#arms-rows tr")).to_have_count(6)
    before = number(page, "Decisions"), number(page, "Reward arrived")
    page.wait_for_function(  # the best arm has come to be known as such, and gets most decisions
        """best => [...document.querySelectorAll('#arms-rows tr')].some(row =>
             row.querySelector('.arm-name').textContent === best
             && row.querySelector('.tag').textContent === 'leads'
             && parseFloat(row.querySelectorAll('td')[1].textContent) > 60)""",
        arg=BEST,
        timeout=60_000,
    )
    wait_until(lambda: number(page, "Decisions") > before[0] + 500, 60)
    wait_until(lambda: number(page, "Reward arrived") > before[1] + 500, 60)
    assert BEST in page.locator("#verdict").inner_text()


# Without a browser.


def test_vendored_files_are_what_they_were():
    (record,) = tomllib.loads((VENDOR / "vendored.toml").read_text()).values()
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "vendored.toml"
    }
    assert found == record["sha256"]
    assert f"(v{record['version']})" in (VENDOR / "uPlot.esm.js").read_text()[:400]


def test_the_page_is_of_files_that_the_policy_allows(plain):
    page = plain.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    for path in dashboard.FOLDER.rglob("*.*"):
        answer = plain.get(f"/dashboard/{path.relative_to(dashboard.FOLDER)}")
        if path.suffix in (".toml", ""):
            assert answer.status_code == 404
        else:
            assert answer.content == path.read_bytes()
            assert "innerHTML" not in answer.text or path.parent == VENDOR
    html = page.text
    assert "style=" not in html
    assert "<style" not in html
    assert html.count("<script") == html.count('<script type="module" src="/dashboard/')


@pytest.mark.parametrize(
    "path",
    ["/dashboard/", "/dashboard/nothing.js", "/dashboard/__init__.py", "/dashboard/%2e%2e/__init__.py"],
)
def test_the_page_has_no_other_files(plain, path):
    answer = plain.get(path)
    assert answer.status_code == 404
    assert problem(answer) == "not-found"
    assert problem(plain.post("/")) == "method"


def test_history_of_a_short_log_is_whole(plain, monkeypatch):
    plain.post("/v1/bandits", BODY | {"name": "past"})
    for _ in range(5):
        plain.post("/v1/bandits/past/decisions", {"n": 100})
    time.sleep(0.6)  # a state may be half a second old
    found = plain.get("/v1/bandits/past/history").json()
    assert found["arms"] == ["jazz", "rock"]
    assert found["decisions"] == [100, 200, 300, 400, 500]
    assert found["at"] == [100.0, 200.0, 300.0, 400.0, 500.0]
    arms = plain.get("/v1/bandits/past/state").json()["arms"]
    assert np.sum(found["counts"], axis=0).tolist() == [arm["decisions"] for arm in arms]
    monkeypatch.setattr(bandit_routes, "_PARTS", 4)
    monkeypatch.setattr(bandit_routes, "_PART_EVENTS", 50)
    wait_until(lambda: plain.get("/v1/bandits/past/history").json() != found)  # it is used again for a while
    sampled = plain.get("/v1/bandits/past/history").json()  # of 502 events: the two arms, then decisions
    assert sampled["decisions"] == [48, 198, 349, 500]
    assert [sum(counts) for counts in sampled["counts"]] == [48, 50, 50, 50]


def test_history_of_nothing(plain):
    plain.post("/v1/bandits", BODY | {"name": "fresh"})
    found = plain.get("/v1/bandits/fresh/history").json()
    assert found == {"arms": ["jazz", "rock"], "at": [], "decisions": [], "counts": []}


def test_regret_is_the_sum_of_gaps():
    regret = Regret(DEFAULT)
    best = int(np.argmax(PROBLEM.means))
    worst = int(np.argmin(PROBLEM.means))
    totals = np.zeros((len(PROBLEM.caps), 2))
    totals[best] = 8.0
    regret.add(1.0, [worst, best], totals)
    at, decisions, lost, oracle, evenly = regret.curves()
    assert (at, decisions) == ([1.0], [2.0])
    assert lost == [pytest.approx(PROBLEM.gaps[worst])]
    assert evenly == [pytest.approx(2 * PROBLEM.gaps.mean())]
    assert oracle == [pytest.approx(PROBLEM.gaps[:2].sum())]  # each arm is tried once, in order
    for i in range(2000):
        regret.add(2.0 + i, [best], totals[:, :1])
    at, decisions, lost, oracle, _ = regret.curves()
    assert len(at) <= 401
    assert decisions[-1] == 2002
    assert lost[-1] == pytest.approx(PROBLEM.gaps[worst])
    assert oracle[-1] < 12 * PROBLEM.gaps.max()  # it saw at once which arm is best


def test_the_demo_is_real_traffic(demo):
    truth = demo.get("/v1/demo").json()
    name = truth["bandit"]
    assert truth["means"] == pytest.approx(dict(zip(PROBLEM.arms, PROBLEM.means, strict=True)))
    wait_until(lambda: any(event["kind"] == "piece" for event in demo.events(name)))
    events = demo.events(name)
    decided = {event["decision"]: event for event in events if event["kind"] == "decision"}
    pieces = [event for event in events if event["kind"] == "piece"]
    assert all(piece["value"] == 1.0 for piece in pieces)
    assert all(piece["at"] >= decided[piece["decision"]]["at"] for piece in pieces)
    truth = demo.get("/v1/demo").json()
    assert truth["decisions"] == sorted(truth["decisions"])
    assert truth["regret"] == sorted(truth["regret"])
    assert truth["regret"][-1] <= PROBLEM.gaps.max() * truth["decisions"][-1]


def test_without_a_demo_there_is_no_truth(plain):
    assert problem(plain.get("/v1/demo")) == "not-found"
    assert plain.get("/dashboard/about.json").json()["demo"] is False


def test_the_truth_needs_a_key_where_there_are_keys(tmp_path, capsys):
    keys = made(tmp_path, capsys, "read", "write")
    with serving(tmp_path, demo=Demo()) as service:
        assert service.get("/").status_code == 200
        assert service.get("/dashboard/about.json").json()["keys"] is True
        assert problem(service.get("/v1/demo")) == "no-key"
        assert problem(service.get("/v1/demo", headers=bearer(keys["write"]))) == "scope"
        assert service.get("/v1/demo", headers=bearer(keys["read"])).status_code == 200


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--speed", "2"], "--demo"),
        (["--demo", "--speed", "0"], "between 0.01 and 20"),
        (["--demo", "--speed", "nan"], "between 0.01 and 20"),
        (["--demo", "--host", "0.0.0.0"], "give --store"),
        (["--demo", "--store", "postgresql://nobody@127.0.0.1:1/x", "--workers", "2"], "--workers 1"),
    ],
)
def test_simulated_traffic_that_cannot_be(options, says, capsys):
    assert app.run(["serve", *options]) == 2
    assert says in capsys.readouterr().err


def test_ctrl_c_ends_the_demo_and_its_folder(tmp_path):
    command = [str(Path(sys.executable).with_name("accrual")), "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)}, cwd=tmp_path
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "simulated traffic" in line
    service = Service(int(line.rsplit(":", 1)[1]))
    wait_until(lambda: service.get("/v1/bandits").json()["bandits"])
    service.http.close()
    assert list(tmp_path.glob("accrual-demo-*/demo.db"))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert "Traceback" not in said
    assert not list(tmp_path.glob("accrual-demo-*"))
    assert not list(tmp_path.glob("*.db"))


# In a browser.


@in_browser
def test_every_panel(demo, seen):
    page = seen.page
    page.goto(f"{demo.url}/#courses")
    for name in ("Decisions", "Reward arrived", "Still expected"):
        assert number(page, name) >= 0
    page.locator("#engineers summary").press("Enter")  # a click would miss it while the panels above grow
    expect(page.locator("#engineers")).to_have_attribute("open", "")
    for name in ("Pending", "Late pieces", "Duplicates", "Not learned yet"):
        assert number(page, name, "#engineers-figures") >= 0
    truth = demo.get("/v1/demo").json()
    state = demo.get(f"/v1/bandits/{truth['bandit']}/state").json()
    rows = page.locator("#arms-rows tr")
    expect(rows).to_have_count(6)
    known = [arm for arm in state["arms"] if arm["estimate"] is not None]
    assert known
    for arm in known:
        row = rows.filter(has_text=arm["name"])
        shown = float(row.locator("td").first.locator("b").inner_text())
        low, high = arm["interval"]
        wide = high - low
        assert low - wide <= shown <= high + wide  # the page is a moment older, or younger
        assert row.locator("svg .dot").count() == 1
        assert row.locator("svg .truth").count() == 1
        assert row.locator("svg .expected").count() == 1
    for chart, labels in (("share", 6), ("spread", 6), ("regret", 2)):
        host = page.locator(f"#{chart}-chart")
        expect(host.locator("canvas")).to_be_visible()
        expect(host.locator(".labels li")).to_have_count(labels)
        assert drawn(page, f"#{chart}-chart canvas") > 3
    parts = [float(text.strip(" %<")) for text in page.locator("#share-chart .label-value").all_inner_texts()]
    assert sum(parts) == pytest.approx(100, abs=3)
    assert all("half" in text for text in page.locator("#spread-chart .label-value").all_inner_texts())
    assert "Choosing evenly would have missed" in page.locator("#regret-note").inner_text()
    page.locator("#regret-chart .u-over").hover(position={"x": 5, "y": 20})
    first = page.locator("#regret-chart .label-value").first
    expect(first).not_to_have_text(f"{truth['regret'][-1]:,.0f}")
    expect(page.locator("#recent li")).to_have_count(12)
    expect(page.locator("#why h3")).to_contain_text("Why #")


def drawn(page: Page, canvas: str) -> int:
    """How many different colours a chart has."""
    return int(
        page.evaluate(
            """selector => {
              const canvas = document.querySelector(selector);
              const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
              const found = new Set();
              for (let i = 0; i < data.length; i += 4)
                if (data[i + 3] > 250) found.add([data[i], data[i + 1], data[i + 2]].join());
              return found.size;
            }""",
            canvas,
        )
    )


@in_browser
def test_the_keyboard_reaches_why(demo, seen):
    page = seen.page
    page.goto(f"{demo.url}/#courses")
    expect(page.locator("#recent li")).to_have_count(12)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#recent') !== null"):
            break
    page.keyboard.press("Tab")
    focused = page.locator("#recent button:focus")
    expect(focused).to_have_count(1)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    id_ = focused.locator(".id").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("#why h3")).to_contain_text(f"Why {id_} got ")
    expect(focused).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#held")).to_be_visible()
    page.wait_for_timeout(1500)  # a look or two later it is still there
    assert focused.locator(".id").inner_text() == id_
    scores = page.locator("#why tbody tr")
    assert scores.count() == 6
    assert scores.first.locator(".tag").inner_text() == "chosen"


def axe(page: Page) -> list[tuple[str, str]]:
    """What axe finds wrong with a page, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(violation["id"], violation["nodes"][0]["html"]) for violation in found]


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_axe(demo, browser, scheme):
    with watched(browser, color_scheme=scheme, reduced_motion="reduce") as seen:
        seen.page.goto(f"{demo.url}/#courses")
        expect(seen.page.locator("#why table")).to_be_visible()
        expect(seen.page.locator("#spread-chart canvas")).to_be_visible()
        assert axe(seen.page) == []
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(15, 20, 26)") == (scheme == "dark")
        assert seen.errors == []


@in_browser
def test_a_phone_need_not_scroll_sideways(demo, browser):
    with watched(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as seen:
        page = seen.page
        page.goto(f"{demo.url}/#courses")
        expect(page.locator("#why table")).to_be_visible()
        expect(page.locator("#regret-chart canvas")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.locator("#recent button").nth(3).tap()
        expect(page.locator("#recent button").nth(3)).to_have_attribute("aria-pressed", "true")
        assert seen.errors == []


@in_browser
def test_first_steps_then_a_bandit_and_a_chooser(tmp_path, browser):
    with serving(tmp_path) as service, watched(browser) as seen:
        page = seen.page
        page.goto(service.url)
        expect(page.locator("#empty")).to_be_visible()
        for command in page.locator("#empty pre code").all():
            line = command.inner_text().replace("curl ", "curl -sf ", 1)
            subprocess.run(["bash", "-c", line], check=True, capture_output=True, timeout=120)
        expect(page.locator("#headline")).to_have_text("No verdict can be given")
        expect(page.locator("#empty")).to_be_hidden()
        arms = [EVIL, "b" * 200, *(f"arm {i}" for i in range(98))]
        service.post("/v1/bandits", {"name": "hundred", "arms": arms, "window": 5_000})
        made = service.post("/v1/bandits/hundred/decisions", {"n": 300}).json()["decisions"]
        paid = [
            {"decision": one["id"], "value": 1.0 if one["arm"] == EVIL else 0.1, "age": 0} for one in made
        ]
        service.post("/v1/bandits/hundred/pieces", paid[:200])
        service.post("/v1/bandits/hundred/decisions", {"n": 100})
        page.goto(f"{service.url}/#hundred")
        page.reload()
        expect(page.locator("#bandit")).to_have_value("hundred")
        expect(page.locator("#verdict")).to_contain_text(EVIL)
        expect(page.locator("#arms-rows tr").first).to_contain_text(EVIL)
        expect(page.locator("#arms-rows tr")).to_have_count(10)
        page.get_by_role("button", name="Show all 100 arms").first.click()
        expect(page.locator("#arms-rows tr")).to_have_count(100)
        expect(page.locator("#share-chart .labels li")).to_have_count(7)
        expect(page.locator("#regret-panel")).to_be_hidden()
        page.locator("#recent button").first.click()
        expect(page.locator("#why")).to_contain_text(EVIL)
        assert page.evaluate("[...document.images].map(image => image.getAttribute('src'))") == [
            "/dashboard/icon.svg"
        ]
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        page.locator("#bandit").select_option("plays")
        expect(page.locator("#arms-rows tr")).to_have_count(2)
        assert page.url.endswith("#plays")
        assert seen.errors == []


@in_browser
def test_rewards_above_the_cap_are_shown_and_the_winner_is_the_one_that_earned_most(plain, seen):
    page, at = seen.page, "/v1/bandits/low"
    plain.post("/v1/bandits", {"name": "low", "arms": ["jazz", "rock"], "window": 20})
    for _ in range(30):
        for one in plain.post(f"{at}/decisions", {"n": 2}).json()["decisions"]:
            value = 28_000 if one["arm"] == "rock" else 0.9
            plain.post(f"{at}/pieces", {"decision": one["id"], "value": value, "age": 0})
    page.goto(f"{plain.url}/#low")
    expect(page.locator("#above-cap")).to_contain_text("Rewards above the cap: rock (")
    expect(page.locator("#above-cap")).to_contain_text("cap 1)")
    expect(page.locator("#headline")).to_have_text("No verdict can be given")
    expect(page.locator("#verdict")).to_contain_text("So far rock has the highest estimate, 28k per decision")


@in_browser
def test_of_many_arms_of_which_nothing_is_known_none_is_called_best(plain, seen):
    page = seen.page
    arms = [f"arm {i}" for i in range(120)]
    plain.post("/v1/bandits", {"name": "new", "arms": arms, "window": "60d"})
    plain.post("/v1/bandits/new/decisions", {"n": 200})
    page.goto(f"{plain.url}/#new")
    expect(page.locator("#arms-note")).to_have_text("10 of 120 arms; none of them has an estimate yet.")
    expect(page.locator("#headline")).to_have_text("No verdict can be given")
    expect(page.locator("#arms-rows .tag").filter(has_text="leads")).to_have_count(0)
    expect(page.locator("#figures")).to_contain_text("no arm has an estimate yet")
    expect(page.locator("#above-cap")).to_be_hidden()


@in_browser
def test_an_arm_has_one_number_in_the_table_and_under_why_while_it_is_early(plain, seen):
    """Two arms that pay 0.001 a round, of 800: after some 40 rounds a decision has earned 0.04 or so and
    will earn 0.8. What is still expected counts all 800 rounds, and says that this is a guess."""
    page, at = seen.page, "/v1/bandits/slow"
    body = {"name": "slow", "arms": ["jazz", "rock"], "window": 800, "policy": "AgeIMED"}
    plain.post("/v1/bandits", body)
    made: list[dict[str, float]] = []
    for _ in range(40):
        made += plain.post(f"{at}/decisions").json()["decisions"]
        now = made[-1]["at"]
        paid = [{"decision": one["id"], "value": 0.001, "age": now - one["at"]} for one in made]
        plain.post(f"{at}/pieces", paid)
    page.goto(f"{plain.url}/#slow")
    expect(page.locator("#why table")).to_be_visible()
    reasons = plain.get(f"{at}/decisions/39/explain").json()["reasons"]
    estimates = {arm["name"]: arm["estimate"] for arm in plain.get(f"{at}/state").json()["arms"]}
    for reason in reasons:
        name = reason["arm"]
        assert reason["estimate"] == pytest.approx(estimates[name], rel=0.2)  # it was one round younger
        assert reason["terms"]["expected total"] > 5 * reason["estimate"]
        row = page.locator("#arms-rows tr").filter(has_text=name)
        assert float(row.locator("td").first.locator("b").inner_text()) == pytest.approx(
            estimates[name], rel=0.01
        )
        cells = page.locator("#why tbody tr").filter(has_text=name).locator("td")
        assert float(cells.nth(1).inner_text()) == pytest.approx(reason["estimate"], rel=0.01)
    assert number(page, "Still expected") == pytest.approx(0.8 * 40 - sum(range(1, 41)) / 1000, rel=0.05)
    expect(page.locator("#figures")).to_contain_text("a guess for ages beyond")


@in_browser
def test_why_names_the_number_that_its_table_shows(plain, seen):
    """AgePrior moves the estimates of arms towards each other, and chooses by the moved ones."""
    page, at = seen.page, "/v1/bandits/few"
    body = {"name": "few", "arms": ["jazz", "rock", "folk"], "window": 40}
    plain.post("/v1/bandits", body)
    for number in range(60):
        (one,) = plain.post(f"{at}/decisions").json()["decisions"]
        value = {"jazz": 0.9, "rock": 0.5, "folk": 0.1}[one["arm"]] if number % 3 else 0.0
        plain.post(f"{at}/pieces", [{"decision": one["id"], "value": value, "age": 0}])
    page.goto(f"{plain.url}/#few")
    expect(page.locator("#why table")).to_be_visible()
    chosen = next(r for r in plain.get(f"{at}/decisions/59/explain").json()["reasons"] if r["arm"] == "jazz")
    assert chosen["terms"]["estimate"] != pytest.approx(chosen["estimate"], rel=0.005)
    cells = page.locator("#why tbody tr").filter(has_text="jazz").locator("td")
    assert float(cells.nth(1).inner_text()) == pytest.approx(chosen["terms"]["estimate"], rel=0.001)
    expect(page.locator("#why p").first).to_contain_text(cells.nth(1).inner_text())


@in_browser
def test_a_bandit_that_nobody_has_used(plain, seen):
    page = seen.page
    plain.post("/v1/bandits", {"name": "unused", "arms": ["jazz", "rock"], "window": "60d"})
    page.goto(f"{plain.url}/#unused")
    expect(page.locator("#headline")).to_have_text("No decision yet")
    expect(page.locator("#figures")).to_contain_text("no decision is pending")
    expect(page.locator("#figures")).not_to_contain_text("a guess")
    expect(page.locator("#share-of")).to_have_text("of decisions")
    expect(page.locator("#why")).to_have_text("No decision has been made yet.")
    expect(page.locator("#recent")).to_be_hidden()
    expect(page.locator("#share-chart")).to_contain_text("Shown from 200 decisions on. There have been 0.")


@in_browser
def test_one_arm_leads_nobody_and_colours_follow_the_decisions(plain, seen):
    page = seen.page
    plain.post("/v1/bandits", {"name": "single", "arms": ["jazz"], "window": 20})
    plain.post("/v1/bandits/single/decisions", {"n": 30})
    plain.post("/v1/bandits/single/pieces", {"decision": 29, "value": 0.5, "age": 0})
    page.goto(f"{plain.url}/#single")
    expect(page.locator("#headline")).to_have_text("jazz is the only arm in play")
    expect(page.locator("#why")).to_contain_text("It was the only arm in play")
    expect(page.locator("#arms-rows .tag").filter(has_text="leads")).to_have_count(0)
    chosen = page.evaluate(
        """async () => {
          const { Palette } = await import("/dashboard/colours.js");
          const arm = (i) => ({ name: `arm ${i}`, decisions: i, share: i < 10 ? 0.1 : 0 });
          return new Palette().update([...Array(20).keys()].map(arm));
        }"""
    )
    assert chosen == [f"arm {i}" for i in range(14, 20)]
    tops = page.evaluate(
        """async () => {
          const { Chart } = await import("/dashboard/charts.js");
          const host = document.body.appendChild(document.createElement("div"));
          const words = { words: String, range: () => [0, 1] };
          const chart = new Chart(host, { x: { label: "" }, y: words, stacked: true });
          const rest = { value: "", read: () => "" };
          const line = (i) => ({ name: `${i}`, slot: i, y: [i / 9, i / 9], from: i / 9, ...rest });
          host.hidden = true; // as the page is until it has been drawn
          chart.draw([0, 1], [1, 4, 7].map(line));
          host.hidden = false;
          for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
          return [...host.querySelectorAll("li")].map((label) => label.style.top);
        }"""
    )
    assert len(set(tops)) == 3, "labels lie over each other after the first drawing"


@in_browser
def test_what_is_known_about_arms_is_shown(plain, seen):
    known = {"genre": ["jazz", EVIL], "minutes": [0, 60], "live": "bool"}
    about = {"a": {"genre": EVIL, "minutes": 7.5}, "b": {"live": False}}
    body = {"name": "known", "arms": ["a", "b", "c"], "arm_features": known, "about": about}
    plain.post("/v1/bandits", BODY | body)
    page = seen.page
    page.goto(f"{plain.url}/#known")
    told = page.locator("#arms-rows .about")
    expect(told).to_have_text([f"genre: {EVIL}, minutes: 7.5", "live: no", ""])
    expect(told.last).to_be_hidden()
    plain.post("/v1/bandits/known/decisions", {"n": 3})  # new arms in turn
    with page.expect_download() as got:
        page.locator("#export").click()
    rows = list(csv.DictReader(Path(got.value.path()).read_text().splitlines()))
    assert [(row["about_genre"], row["about_live"]) for row in rows] == [(EVIL, ""), ("", "false"), ("", "")]


@in_browser
def test_all_bandits_with_their_units_and_the_log_as_a_file(tmp_path, browser):
    with serving(tmp_path) as service, watched(browser) as seen:
        page = seen.page
        for name, unit in (("shop", "€"), ("school", "lectures")):
            body = BODY | {"name": name, "unit": unit, "arms": [' =a "b", c'], "floor": 0.1}
            body |= {"features": {"country": ["\uff1dde", "us"]}, "policy": "LinUCB"}
            assert service.post("/v1/bandits", body).status_code == 201
            contexts = [{"country": "\uff1dde"}, {"country": "us"}, {}]
            service.post(f"/v1/bandits/{name}/decisions", {"n": 3, "context": contexts})
            service.post(f"/v1/bandits/{name}/pieces", {"decision": 0, "value": 0.25, "age": 0})
        page.goto(service.url)
        rows = page.locator("#overview-rows tr")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("€0.25")
        expect(rows.nth(1)).to_contain_text("0.25 lectures")
        expect(rows.nth(1)).to_contain_text("depends on the context")
        assert axe(page) == []
        page.get_by_role("link", name="school").click()
        expect(page.locator("#headline")).to_be_visible()
        expect(page.locator("#overview")).to_be_hidden()
        expect(page.locator("#arms-note")).to_contain_text("Reward is in lectures.")
        expect(page.locator("#contexts h3")).to_have_text(["country"])
        expect(page.locator("#contexts")).to_contain_text("It was missing in 1 decision.")
        expect(page.locator("#worth-sentence")).to_contain_text("with fewer than two arms in play")
        shown = page.evaluate(
            """async () => {
              const { drawWorth } = await import("/dashboard/contexts.js");
              const figure = (value) => ({ value, low: value - 0.05, high: value + 0.05 });
              const [more, rest] = [figure(0.1), figure(0.4)];
              const winners = [{ part: "not new", decisions: 9, arm: "<b>long", than: "short", more }];
              drawWorth({ more, with_contexts: rest, without: rest, single: "short", winners, decisions: 50,
                          closed: 90, effective: 1, reason: "", sentence: "Contexts are worth it." });
              return document.getElementById("contexts-worth").innerText;
            }"""
        )
        assert "the last 50 of 90 closed decisions" in shown
        assert "<b>long instead of short, where not new" in shown
        assert "0.100 more" in shown
        with page.expect_download() as loading:
            page.get_by_role("button", name="Download the log").click()
        with open(loading.value.path(), newline="", encoding="utf-8") as file:
            events = list(csv.DictReader(file))
        assert [(event["id"], event["value"]) for event in events] == [("0", "0.25"), ("1", ""), ("2", "")]
        assert events[0]["propensity"] == "1"
        assert events[0]["arm"] == """' =a "b", c"""  # or a spreadsheet would take it for a formula
        assert [event["country"] for event in events] == ["'\uff1dde", "us", ""]
        page.get_by_role("link", name="All bandits").click()
        expect(rows).to_have_count(2)
        expect(page.locator("#watch")).to_be_hidden()
        page.goto("about:blank")  # or a reading of the page may meet the deletion: the browser notes a 409
        service.http.delete("/v1/bandits/shop?grace=1d")
        page.goto(service.url)
        expect(rows).to_have_count(1)
        expect(page.locator("#archived-rows")).to_contain_text("shop: archived on ")
        expect(page.locator("#archived-rows")).to_contain_text("to be erased on ")
        assert axe(page) == []
        assert seen.errors == []


@in_browser
def test_the_downloaded_log_can_be_fitted(plain, seen, tmp_path):
    plain.post("/v1/bandits", BODY | {"name": "fitted", "window": 20})
    for _ in range(40):
        (one,) = plain.post("/v1/bandits/fitted/decisions").json()["decisions"]
        value = 0.5 if one["arm"] == "rock" else 0.25
        plain.post("/v1/bandits/fitted/pieces", {"decision": one["id"], "value": value, "age": 0})
    seen.page.goto(f"{plain.url}/#fitted")
    with seen.page.expect_download() as got:
        seen.page.locator("#export").click()
    log = tmp_path / "log.csv"
    got.value.save_as(log)
    fitted = ac.fit(log, window=20, groups=4)
    means = {arm.name: arm.mean.value for arm in fitted.known if arm.mean is not None}
    assert means == pytest.approx({"rock": 0.5, "jazz": 0.25})


@in_browser
def test_the_api_is_described_without_any_other_host(plain, seen):
    page = seen.page
    page.goto(f"{plain.url}/docs")
    described = plain.get("/v1/openapi.json").json()
    count = sum(len(methods) for methods in described["paths"].values())
    expect(page.locator("#operations section")).to_have_count(count)
    expect(page.locator("#operations")).to_contain_text("POST /v1/bandits/{bandit}/pieces")
    expect(page.locator("#types")).to_contain_text("How many equal parts the window has.")
    assert axe(page) == []


@in_browser
def test_a_key_stays_out_of_the_address(tmp_path, browser, capsys):
    keys = made(tmp_path, capsys, "read", "admin")
    with serving(tmp_path) as service, watched(browser) as seen:
        page = seen.page
        assert service.post("/v1/bandits", BODY, headers=bearer(keys["admin"])).status_code == 201
        page.goto(service.url)
        expect(page.locator("#key-form")).to_be_visible()
        expect(page.locator("#key")).to_be_focused()
        assert seen.errors == []
        page.keyboard.type("acc_wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#key-wrong")).to_contain_text("unknown, or has been revoked")
        assert any("401" in error for error in seen.errors)  # the browser's own note of the refusal
        seen.errors.clear()
        page.locator("#key").fill(keys["read"])
        page.get_by_role("button", name="Show the bandits").click()
        expect(page.locator("#headline")).to_have_text("No decision yet")
        page.reload()  # the tab remembers it
        expect(page.locator("#headline")).to_have_text("No decision yet")
        assert not any(keys["read"] in address for address in [page.url, *seen.asked])
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        page.get_by_role("button", name="Forget key").click()
        expect(page.locator("#key-form")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
        assert seen.errors == []


@in_browser
def test_a_service_that_stops_is_noticed(tmp_path, browser):
    with watched(browser) as seen:
        page = seen.page
        with serving(tmp_path) as service:
            service.post("/v1/bandits", BODY)
            port = service.port
            page.goto(service.url)
            expect(page.locator("#headline")).to_have_text("No decision yet")
            expect(page.locator("#trouble")).to_be_hidden()
        expect(page.locator("#trouble")).to_contain_text("Disconnected since")
        expect(page.locator("#status")).to_have_text("Disconnected")
        expect(page.locator("#headline")).to_have_text("No decision yet")  # what was known stays
        with serving(tmp_path, port=port):
            expect(page.locator("#status")).to_have_text("Live")
            expect(page.locator("#trouble")).to_be_hidden()


@in_browser
def test_verdicts_and_guardrails_are_said_in_words(plain, browser):
    """One of two arms pays more and has more refunds: a verdict, and then a guardrail that trips.

    Then the other arm, which never paid, pays every time: an alarm.
    """
    name, stream = "guarded", f"refunds {EVIL}"
    body = BODY | {"name": name, "window": 2, "groups": 2, "floor": 0.5, "seed": 1}
    guardrail = {"kind": "guardrail"}
    rails = {stream: guardrail | {"margin": 0.1, "action": "retire"}, "complaints": guardrail}
    assert plain.post("/v1/bandits", body | {"streams": rails}).status_code == 201
    at = f"/v1/bandits/{name}"

    def play(rounds: int, refunds: bool, best: str = "rock") -> None:
        for _ in range(rounds):
            (one,) = plain.post(f"{at}/decisions").json()["decisions"]
            good = one["arm"] == best
            pieces = [{"decision": one["id"], "value": float(good), "age": 0}]
            if refunds and good:
                pieces.append({"decision": one["id"], "value": 1, "age": 0, "stream": stream})
            plain.post(f"{at}/pieces", pieces)

    with watched(browser, color_scheme="dark", viewport={"width": 390, "height": 844}) as seen:
        page = seen.page
        play(150, False)
        page.goto(f"{plain.url}/#{name}")
        expect(page.locator("#verdict-state")).to_have_text("You may stop")
        expect(page.locator("#headline")).to_have_text("rock paid most")
        expect(page.locator("#todo-commands code")).to_contain_text("""/arms/retire'""")
        expect(page.locator("#todo-commands code")).to_contain_text("""-d '{"name":"jazz"}'""")
        expect(page.locator("#sequence svg .band")).to_be_visible()
        expect(page.locator("#guardrails")).to_contain_text(f"No arm is known to be worse on {stream}.")
        play(150, True)
        expect(page.locator("#guardrails .notice")).to_contain_text(f"Worse on {stream}: rock (retired)")
        expect(page.locator("#guardrail-alert")).to_contain_text(f"Worse on {stream}: rock (retired)")
        expect(page.locator("#headline")).to_have_text("jazz is the only arm in play")
        tag = page.locator("#arms-rows tr").filter(has_text="rock").locator(".tag")
        expect(tag).to_have_text(f"retired by {stream}")
        expect(page.locator("#alarm")).to_be_hidden()
        play(60, False, best="jazz")
        expect(page.locator("#alarm")).to_contain_text("No longer pays as before: jazz (")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen.errors == []


@in_browser
def test_what_the_page_says_of_a_verdict_follows_from_its_fields(plain, seen):
    seen.page.goto(plain.url)
    arms = [{"name": name, "retired": False, "estimate": None} for name in "ab"]
    pair = {"first": "a", "second": "b", "ahead": [700, 900], "behind": None}
    fields = {
        "winner": None, "may_stop": False, "error": 0.05, "contenders": ["a", "b"], "retirable": [],
        "changed": [], "loss_if_stopped": None, "decisions_to_go": None, "time_to_go": None, "reason": "",
        "leader": "a", "scored": 9, "skipped": 0, "pairs": [pair], "sentence": "not read",
    }  # fmt: skip

    def said(outcome, alarm, floor=0.1, policy="AgePrior", worth=None, **others):
        verdict = fields | {"outcome": outcome} | others
        state = {"at": 1.8e9, "decisions": 9, "arms": arms, "verdict": verdict, "alarm": {"arms": alarm}}
        script = """async ([state, bandit, worth]) => {
          const found = (await import('/dashboard/verdict.js')).answer(state, bandit, worth, (n) => `${n} s`);
          const text = (parts) => parts.map((part) => part.arm ?? part).join("");
          return [found.kind, text(found.head), text(found.todo), text(found.why), found.retire ?? []];
        }"""
        bandit = {"floor": floor, "policy": policy, "features": {"new": "bool"} if worth else None}
        return seen.page.evaluate(script, [state, bandit, worth])

    changed = [{"name": "b", "decision": 1_000}]
    swapped = [pair | {"behind": [0, 500]}]
    kind, head, todo, why, retire = said("winner", [], winner="a", may_stop=True)
    assert (kind, head, retire) == ("stop", "a paid most", ["b"])
    assert todo == "Give all decisions to a: retire the other."
    assert why.startswith(
        "a paid more on average than every other arm in play: from decision 700 to 900. The"
    )
    assert "at most 5 %" in why
    kind, head, todo, why, retire = said("winner", changed, winner="a")
    assert (kind, head, retire) == ("changed", "a paid most, but pay has changed since", [])
    assert "pay differently: b (found at decision 1,000)." in why
    kind, head, _, why, _ = said("none_yet", [], changed=["a", "b"], pairs=swapped)
    assert (kind, head) == ("changed", "Arms have changed places")
    assert "b paid more than a from decision 0 to 500, and less from decision 700 to 900." in why
    kind, head, todo, why, _ = said("cannot_tell", [], floor=0.0, reason="there is no floor", skipped=1)
    assert (kind, head) == ("unknown", "No verdict can be given")
    assert todo.startswith("Make a bandit with a floor")
    assert why.startswith("There is no floor. Not counted: 1 ended decision without")
    kind, head, todo, _, _ = said("none_yet", [], decisions_to_go=[100, None])
    assert (kind, head) == ("wait", "a leads, by what is known so far")
    assert "at least about 100 more decisions, and may take much longer" in todo
    _, _, todo, _, _ = said("none_yet", [], decisions_to_go=[104, 1_160], time_to_go=[86_400, 864_000])
    assert "100 to 1,200 more decisions must end (86000 s to 860000 s), until about 16 Jan to 25 Jan" in todo
    _, _, todo, _, retire = said("none_yet", [], retirable=["b"])
    assert (todo.count("cannot be said yet"), retire) == (1, ["b"])
    more = {"value": 0.1, "low": 0.05, "high": 0.15}
    by = {"part": "new", "arm": "a", "than": "b", "more": more}
    worth = {"more": more, "single": "b", "sentence": "Contexts help.", "winners": [by]}
    kind, head, todo, why, retire = said(
        "winner", [], winner="a", may_stop=True, policy="AgeLinTS", worth=worth
    )
    assert (kind, retire) == ("depends", [])
    assert head == "Choosing by context earns 0.100 more per decision (0.0500 to 0.150)"
    assert why == "Contexts help. Where new: a pays 0.100 more than b."


@in_browser
def test_what_the_overview_says_first(plain, seen):
    seen.page.goto(plain.url)
    arm = {"name": "a", "retired": False, "above_cap": 0}
    calm = {
        "decisions": 9,
        "guardrails": [],
        "arms": [arm],
        "alarm": {"arms": []},
        "verdict": {"may_stop": False},
    }

    def said(floor=0.1, policy="AgePrior", **others):
        script = "async ([b, s]) => (await import('/dashboard/overview.js')).statuses(b, s).map(x => x.text)"
        bandit = {"floor": floor, "policy": policy, "features": {"new": "bool"}}
        return seen.page.evaluate(script, [bandit, calm | others])

    assert said() == ["Learning"]
    assert said(floor=0.0) == ["No floor: no verdict can be given"]
    won = {"may_stop": True, "winner": "a"}
    assert said(verdict=won) == ["You may stop: a paid most"]
    assert said(verdict=won, policy="AgeLinTS") == ["Chooses by context"]
    rail = {"name": "refunds", "arms": [{"name": "a", "worse": True}, {"name": "b", "worse": False}]}
    assert said(guardrails=[rail], arms=[arm | {"above_cap": 2}], alarm={"arms": [arm]}) == [
        "Guardrail refunds: a worse", "Paid more than the cap: 1 arm", "Pay has changed: a",
    ]  # fmt: skip


@in_browser
def test_the_guards_can_fail(plain, browser):
    """What the tests above rely on: a page that runs a script of its own, or asks elsewhere, is caught."""
    with watched(browser) as seen:
        seen.page.goto(plain.url)
        seen.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')")
        seen.page.evaluate("fetch('http://example.invalid/').catch(() => {})")
        wait_until(
            lambda: _idle(seen) and any("Content Security Policy" in error for error in seen.errors), 20
        )


def _idle(seen: Watched) -> bool:
    seen.page.wait_for_timeout(50)
    return True
