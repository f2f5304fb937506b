"""The command line: every command, bad input in one line, whole files or none, Ctrl-C."""

from __future__ import annotations

import csv
import math
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import typer

import accrual as ac
from accrual.cli import app
from accrual.cli.live.serve import make_bandits
from accrual.cli.output import say
from accrual.problems.spreads import FAMILIES
from accrual.store.backends import open_store
from accrual.store.base import ERASE_AT

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "two-arms.toml")
SMALL = ["--horizon", "300", "--runs", "3"]
PNG = b"\x89PNG\r\n"


def process(*arguments: str, before: str = "", **settings) -> subprocess.CompletedProcess[str]:
    """Run a command line in a new process, after the statements `before`."""
    code = f"import sys\n{before}\nfrom accrual.cli import main\nsys.exit(main())"
    settings.setdefault("env", dict(os.environ))  # and not what readline has added behind Python's back
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, **settings
    )


# --- what the commands do ---


def test_version_and_help(cli):
    assert cli("--version") == (0, f"accrual {ac.__version__}\n", "")
    assert cli()[1] == cli("--help")[1]
    for name in app.COMMANDS:
        assert f"  {name}" in cli("--help")[1]
        assert cli(name, "--help")[1].startswith(f"Usage: accrual {name} [OPTIONS]")


def test_help_lists_commands_by_purpose_in_lines_that_fit(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = cli("--help")[1].splitlines()
    assert [line for line in lines if line in ("Study:", "Logs:", "Live:")] == ["Study:", "Logs:", "Live:"]
    listed = lines[lines.index("Study:") :]
    commands = typer.main.get_command(app.app).commands  # type: ignore[attr-defined]
    assert sorted(line.split()[0] for line in listed if line.startswith("  ")) == sorted(commands)
    assert max(map(len, lines)) <= 60
    assert not [line for line in listed if "..." in line]


@pytest.mark.parametrize("group", ["bandits", "db", "keys"])
def test_a_group_of_commands_alone_lists_them_in_lines_that_fit(cli, monkeypatch, group):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, err = cli(group)
    assert (code, err, out) == (0, "", cli(group, "--help")[1])
    listed = out.partition("Commands:")[2].splitlines()
    assert listed
    assert not [line for line in listed if line.endswith("...")]


def test_bandits_are_listed_archived_restored_deleted_and_erased(cli, tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    for name in ("plays", "other"):
        ac.Bandit(["jazz"], 80, store=url, name=name).close()
    at = ("--store", url)
    assert cli("bandits", "archive", "plays", *at)[1].startswith("plays: archived since 20")
    with pytest.raises(ac.InputError, match="is archived; restore it"):
        ac.Bandit(["jazz"], 80, store=url, name="plays")
    assert cli("bandits", "restore", "plays", *at)[1] == "plays: in use\n"
    assert cli("bandits", "delete", "plays", "--grace", "30s", *at)[::2] == (
        2, "accrual: grace must be at least 1h, not '30s'\n"
    )  # fmt: skip
    assert cli("bandits", "delete", "plays", *at)[1].startswith("plays: deleted, to be erased at 20")
    assert cli("bandits", "erase", *at)[1] == "nothing to erase\n"
    lines = [line.split()[:2] for line in cli("bandits", "list", *at)[1].splitlines()]
    assert ["plays", "deleted,"] in lines
    assert ["other", "in"] in lines
    store = open_store(url)
    found = store.find("plays")
    assert found is not None
    store.amend(found.number, {ERASE_AT: 1.0})
    store.close()
    assert cli("bandits", "erase", *at)[1] == "erased: plays\n"
    assert cli("bandits", "restore", "plays", *at)[2] == "accrual: unknown bandit 'plays' (one of: other)\n"
    assert cli("db", "verify", url)[0] == 0


def test_a_store_without_bandits_says_so(cli, tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    open_store(url).close()
    code, out, err = cli("bandits", "list", "--store", url)
    assert (code, err) == (0, "")
    assert out.startswith(f"no bandits in {url} yet; ")
    code, _, err = cli("bandits", "archive", "plays", "--store", url)
    assert (code, err) == (2, "accrual: unknown bandit 'plays': there is no bandit\n")


@pytest.mark.parametrize(
    "line",
    [
        ("db", "verify", "{url}"),
        ("db", "export", "{url}", "folder"),
        ("bandits", "erase", "--store", "{url}"),
        ("bandits", "list", "--store", "{url}"),
        ("keys", "list", "--store", "{url}"),
        ("keys", "create", "--store", "{url}"),  # it lacks a scope
        ("serve", "--host", "0.0.0.0", "--store", "{url}"),  # it lacks a key
    ],
)
def test_a_mistyped_path_is_said_and_makes_no_file(cli, tmp_path, line):
    code, _, err = cli(*(word.format(url=f"sqlite:///{tmp_path}/typo.db") for word in line))
    assert code == 2
    assert re.fullmatch("accrual: (there is no file .*typo.db; .*|.*--scope.*)\n", err)
    assert not list(tmp_path.iterdir())


def test_the_key_that_a_hint_prints_can_be_made(cli, tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    said = cli("serve", "--host", "0.0.0.0", "--store", url)[2]
    command = said.rpartition("needs a key: accrual ")[2].split()
    assert cli(*command)[0] == 0
    assert "admin read write" in cli("keys", "list", "--store", url)[1]


def test_serve_makes_a_bandit_of_a_log_with_refunds(tmp_path):
    rows = "".join(
        f"{i},{'jazz' if i % 2 else 'rock'},{1.7e9 + i * 600},{i % 5 / 5 - 0.1},{1.7e9 + i * 600 + 3600}\n"
        for i in range(300)
    )
    (tmp_path / "log.csv").write_text(f"id,arm,at,value,piece_at\n{rows}")
    url = f"sqlite:///{tmp_path}/s.db"
    make_bandits([f"plays={tmp_path}/log.csv"], url)
    with ac.Bandit.open(url, "plays") as bandit:
        bandit.observe(bandit.decide().id, -0.1)


def test_serve_makes_a_bandit_of_a_fit_or_of_a_log_once(tmp_path):
    rows = "".join(
        f"{i},{'jazz' if i % 2 else 'rock'},{1.7e9 + i * 600},{i % 5 / 5},{1.7e9 + i * 600 + i % 11 * 3600}\n"
        for i in range(600)
    )
    (tmp_path / "log.csv").write_text(f"id,arm,at,value,piece_at\n{rows}")
    ac.fit(tmp_path / "log.csv", window="12h", groups=12).save(tmp_path / "problem.json")
    url = f"sqlite:///{tmp_path}/s.db"
    for _ in range(2):
        make_bandits([f"plays={tmp_path}/problem.json", f"logged={tmp_path}/log.csv"], url)
    with ac.Bandit.open(url, "plays") as bandit:
        state = bandit.state()
        assert {arm.name for arm in state.arms} == {"jazz", "rock"}
        assert bandit._config.window == 12 * 3600
        assert state.decisions == bandit._config.imported > 100
    ac.Bandit(["jazz"], "12h", store=url, name="own").close()
    for wrong, said in (
        ("own=problem.json", "made without a prior"),
        ("plays", "written like"),
        ("a b=c", "like"),
    ):
        with pytest.raises(ac.InputError, match=said):
            make_bandits([wrong], url)


def test_a_service_that_is_refused_with_its_prior_leaves_no_file(cli, tmp_path):
    rows = "".join(f"{i},{'jazz' if i % 2 else 'rock'},{i},{i % 5 / 5},{i + 1}\n" for i in range(300))
    (tmp_path / "log.csv").write_text(f"id,arm,at,value,piece_at\n{rows}")
    with pytest.raises(ac.InputError, match="a log with times"):
        make_bandits([f"plays={tmp_path}/log.csv"], f"sqlite:///{tmp_path}/s.db")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for option in ("--host=0.0.0.0", f"--port={taken.getsockname()[1]}"):
            code, _, err = cli("serve", "--store", "sqlite:///s.db", "--prior", "plays=log.csv", option)
            assert code == 2, err
    assert os.listdir(tmp_path) == ["log.csv"]


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_leaves_columns_out_and_breaks_no_number(cli, monkeypatch, width):
    line = ("simulate", "setting1", *SMALL, "--policy", "UCB1", "--policy", "TPUCBFRG(20, very_begin)")
    figures = cli(*line)[1].split()
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = cli(*line)[1]
    assert max(map(len, narrow.splitlines())) <= width
    told = narrow.index("columns left out")
    assert narrow[told:].split()[-1] == "s.e."
    assert {word for word in narrow[:told].split() if word.strip("─")} <= set(figures)


def test_sentences_keep_numbers_and_their_units_together(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    say("How long to wait: a window of 17.46 d catches 99 % of that (95 % interval 15.26 d to 38.12 d)")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert not [line for line in lines if line.startswith(("%", "d "))]


def test_the_version_needs_no_extra_and_the_module_runs():
    bare = "sys.modules['typer'] = sys.modules['numba'] = sys.modules['scipy'] = None"
    ran = process("--version", before=bare)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"accrual {ac.__version__}\n", "", 0)
    module = subprocess.run(
        [sys.executable, "-m", "accrual", "spread", "begn"], capture_output=True, text=True, check=False
    )
    assert module.returncode == 2
    assert module.stderr.startswith("accrual: unknown spread 'begn'")


def test_simulate_prints_what_python_gives(cli):
    code, out, err = cli("simulate", "setting1", *SMALL, "--seed", "7", "--policy", "UCB1", "--threads", "1")
    assert (code, err) == (0, "")
    assert out.startswith("setting1: regret after 300 rounds, 3 runs, seed 7\n")
    row = ac.simulate(ac.paper.setting1(), [ac.UCB1()], horizon=300, runs=3, seed=7).rows()[0]
    assert out.splitlines()[3].split()[:2] == ["UCB1", f"{row['mean']:,.0f}"]


def test_simulate_without_policies_compares_the_usual_ones(cli):
    _, out, _ = cli("simulate", "setting2/c1/late", *SMALL)
    firsts = [line.split("  ")[0] for line in out.splitlines()[3:7]]
    assert firsts == ["TPUCBFR(10)", "TPUCBFRG(10, begin)", "DelayedUCB1", "UCB1"]
    assert "vs TPUCBFR(10)" in out.splitlines()[1]


def test_simulate_a_file_and_write_everything(cli, tmp_path):
    code, out, err = cli(
        "simulate", EXAMPLE, *SMALL, "--plot", "a.png", "--save", "a.parquet", "--csv", "a.csv"
    )
    assert (code, err) == (0, "")
    result = ac.Result.load("a.parquet")
    assert result.labels == ("TPUCBFR(6)", "TPUCBFRG(6, begin)", "by hand", "DelayedUCB1")
    assert all(label in out for label in result.labels)
    with open("a.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in table] == result.final_regret.mean(axis=1).tolist()
    assert Path("a.png").read_bytes().startswith(PNG)
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.parquet", "a.png"]


def test_policies_on_the_command_line_replace_the_files(cli):
    _, out, _ = cli("simulate", EXAMPLE, *SMALL, "--policy", "UCB1", "--policy", "TPUCBFRG(3, zipf(2))")
    assert [line.split("  ")[0] for line in out.splitlines()[3:5]] == ["UCB1", "TPUCBFRG(3, zipf(2))"]
    assert "by hand" not in out


def test_one_run_has_no_standard_error(cli):
    _, out, _ = cli("simulate", EXAMPLE, "--horizon", "50", "--runs", "1", "--policy", "UCB1")
    assert out.splitlines()[3].split()[2] == "-"


def test_spread_prints_shares_and_summaries(cli):
    code, out, _ = cli("spread", "0.5,0.3,0.2", "zipf(1)", "--groups", "3")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert [line[1] for line in lines[2:5]] == ["0.5000", "0.3000", "0.2000"]
    # Zipf over three groups is 6/11, 3/11, 2/11: E[Y] = 18/11, coincidence 49/121.
    assert lines[-2] == ["zipf(1)", "1.6364", "0.4050"]
    # All bars are on one scale: 0.5 against the longest, 6/11.
    bars = [cell.count("█") for cell in lines[2] if "█" in cell]
    assert bars[0] == round(bars[1] * 0.5 / (6 / 11))


def test_spread_over_many_groups_keeps_to_a_screen_and_sums_to_one(cli):
    _, out, _ = cli("spread", "begin", "--groups", "1000")
    rows = [line.split() for line in out.splitlines()[2:52]]
    assert rows[0][0] == "1-20"
    assert rows[-1][0] == "981-1000"
    assert sum(float(row[1]) for row in rows) == pytest.approx(1, abs=50 * 5e-5)  # four digits each


def test_many_spreads_show_figures_without_bars(cli):
    _, out, _ = cli("spread", *ac.spread.NAMES, "--groups", "4", "--plot", "s.png")
    assert "█" not in out
    assert out.splitlines()[0].split() == ["group", *ac.spread.NAMES]
    assert Path("s.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    "text",
    [
        "uniform",
        *ac.spread.NAMES,
        "zipf(1.23456789)",
        "boltzmann(0.125)",
        "hypergeom(300)",
        "betabinom(2.5, 7)",
    ],
)
def test_a_spreads_label_reads_back(text):
    one = ac.spread.parse(text)
    assert one.label == text
    assert ac.spread.parse(one.label) == one


def test_bounds_are_those_of_python(cli):
    code, out, _ = cli("bounds", "setting1", "--alpha", "50", "--horizon", "1e4", "--plot", "b.svg")
    assert code == 0
    rows = dict(line.rsplit("  ", 1) for line in out.splitlines() if line.startswith(("upper", "lower")))
    rows = {name.strip(): value.strip() for name, value in rows.items()}
    problem = ac.paper.setting1()
    upper = ac.bounds.upper_tpucbfrg(problem, 10_000, 50, "begin")
    assert rows["upper, TPUCBFRG(50, begin)"] == f"{float(upper):,.0f}"
    ours = ac.bounds.upper_ageucb(problem, 10_000, 50, "begin")
    assert rows["upper, AgeUCB(50, begin)"] == f"{float(ours):,.0f}"
    assert len(rows) == 8
    # Setting 1's groups pay the same; "begin" allows the late ones less than that.
    assert "No bound for free chances: group 36 of arm 0 pays 1 on average, more than the 0.904" in out
    assert "<svg" in Path("b.svg").read_text()


@pytest.mark.parametrize(
    ("spread", "rows", "verdict"),
    [
        (
            "very_begin",
            (0.164, 0.986, 0.199),
            "no lower bound for one chance and a lower bound for free chances",
        ),
        (
            "very_end",
            (0.164, 0.986, 1.777),
            "no lower bound for one chance and no lower bound for free chances",
        ),
        ("uniform", (0.164, 0.164, 0.164), "a lower bound for one chance and a lower bound for free chances"),
    ],
)
def test_bounds_say_for_which_class_they_are(cli, spread, rows, verdict):
    laws = "\n".join(f'[[problem.laws]]\nkind = "bernoulli"\np = {p}' for p in (0.5, 0.35))
    Path("p.toml").write_text(
        f'[problem]\ncaps = [1.0, 1.0]\nwindow = 20\ngroups = 20\nspread = "{spread}"\n{laws}\n'
    )
    code, out, _ = cli("bounds", "p.toml", "--spread", spread, "--horizon", "1e6")
    assert code == 0
    names = ("groups with one chance", "groups with free chances", "Theorem 1 as printed")
    for name, value in zip(names, rows, strict=True):
        (line,) = [line for line in out.splitlines() if line.startswith(f"lower, {name}")]
        assert float(line.split()[-1]) / math.log(1e6) == pytest.approx(value, rel=0.01)
    assert f"As printed it is {verdict}." in out


def test_bench_prints_the_report(cli, monkeypatch):
    from accrual.studies import bench

    monkeypatch.setattr(bench, "report", lambda: [("one policy-round", "80 ns")])
    code, out, _ = cli("bench")
    assert code == 0
    assert out.splitlines()[2].split("  ")[0] == "one policy-round"
    assert out.splitlines()[2].endswith("80 ns")


def test_headline_sorts_compares_and_draws(cli):
    code, out, err = cli("headline", "--runs", "2", "--horizon", "400", "--out", "new/h.png")
    assert (code, err) == (0, "")
    assert "picture: new/h.png\nnext: accrual serve --demo" in out
    assert Path("new/h.png").read_bytes().startswith(PNG)
    rows = [line.split("  ") for line in out.splitlines()[2:15]]
    means = [float(next(cell for cell in row[1:] if cell).replace(",", "")) for row in rows]
    assert means == sorted(means)
    assert sum("%" in line for line in out.splitlines()) == 12  # all but the baseline


def test_headline_needs_neither_frames_nor_files(tmp_path):
    blocked = "sys.modules['pandas'] = sys.modules['pyarrow'] = None"
    done = process("headline", "--runs", "1", "--horizon", "200", before=blocked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "headline.png").exists()


# --- what comes out of a pipe ---


def test_piped_output_is_plain_and_whole(tmp_path):
    problem = "problem = {caps = [1, 2], window = 4, groups = 2}\n"
    label = "a label that is far longer than any terminal would show on a line of eighty columns, é"
    (tmp_path / "p.toml").write_text(f"{problem}[[policy]]\nname = 'UCB1'\nlabel = '{label}'", "utf-8")
    done = process("simulate", "p.toml", *SMALL, cwd=tmp_path, encoding="utf-8")
    assert done.returncode == 0
    assert done.stdout.splitlines()[3].startswith(label)
    assert "\x1b" not in done.stdout + done.stderr
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert process("simulate", "p.toml", *SMALL, cwd=tmp_path, env=ascii_only).returncode == 0


def test_a_reader_that_stops_reading_is_no_error_and_files_are_written(tmp_path):
    command = [sys.executable, "-m", "accrual", "spread", "uniform", "--plot", str(tmp_path / "a.png")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    with open("/dev/full", "w") as full:
        done = subprocess.run(command[:-2], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "accrual: No space left on device\n")


# --- bad input ---

NO_FILE = "No such file or directory"
POLICY = "cannot read the policy {!r}; write for example 'TPUCBFRG(alpha=50, spread=begin)'"

BAD = {
    "simulate": "Missing argument 'SETTING'.",
    "simulat setting1": "No such command 'simulat'. Did you mean 'simulate'?",
    "simulate setting1 --run 3": "No such option: --run (Possible options: --runs)",
    "simulate none.toml": f"cannot read none.toml: {NO_FILE}",
    "simulate folder.toml": "cannot read folder.toml: Is a directory",
    "simulate setting1 --horizon ten": "Invalid value for '--horizon': 'ten' is not a whole number",
    "simulate setting1 --horizon 1.5": "Invalid value for '--horizon': '1.5' is not a whole number",
    "simulate setting1 --horizon nan": "Invalid value for '--horizon': 'nan' is not a whole number",
    "simulate setting1 --horizon inf": "Invalid value for '--horizon': 'inf' is not a whole number",
    "simulate setting1 --horizon 9": "horizon must be at least the number of arms (10), not 9",
    "simulate setting1 --runs 0": "runs must be a whole number from 1 to 2147483647, not 0",
    "simulate setting1 --seed -1": "seed must be a whole number from 0 to 9223372036854775807, not -1",
    "simulate setting1 --threads 0": "threads must be a whole number of at least 1, not 0",
    "simulate setting1 --policy UCB1 --policy UCB1": "--policy gives UCB1 twice",
    "simulate setting1 --policy UCB1(": POLICY.format("UCB1("),
    "simulate setting1 --policy UCB1(3)": POLICY.format("UCB1(3)"),
    "simulate setting1 --policy TPUCBFR(5,alpha=5)": POLICY.format("TPUCBFR(5,alpha=5)"),
    "simulate setting1 --policy TPUCBFR": "TPUCBFR needs alpha=...",
    "simulate setting1 --policy TPUCBFR(alpha=30)": (
        "alpha must divide the window: 30 does not divide 100 (nearest: 25 and 50)"
    ),
    "simulate setting1 --policy TPUCBFR(alfa=30)": (
        "unknown setting of TPUCBFR 'alfa'; did you mean 'alpha'? (one of: alpha)"
    ),
    "simulate setting1 --policy TPUCBFRG(5,[0.5,0.6])": (
        "a spread must sum to 1; it sums to 1.1 (divide by that)"
    ),
    "simulate setting1 --plot a.bmp": "cannot write a.bmp: its name must end in .png or .svg or .pdf",
    "simulate setting1 --save a.pkl": "cannot write a.pkl: its name must end in .parquet or .csv",
    "simulate setting1 --csv no/a.csv": f"cannot write no/a.csv: {NO_FILE}",
    "simulate setting1 --csv folder.csv": "cannot write folder.csv: it is there and is not a file",
    "headline --out file/h.png": "cannot write file/h.png: Not a directory",
    "headline --runs 0": "runs must be a whole number from 1 to 2147483647, not 0",
    "bounds setting1 --alpha 30": (
        "alpha must divide the window: 30 does not divide 100 (nearest: 25 and 50)"
    ),
    "bounds setting1 --horizon 0": "horizon must be a whole number from 1 to 2147483647, not 0",
    "spread": "Missing argument 'SPREAD...'.",
    "spread zpf(2)": (f"unknown spread 'zpf'; did you mean 'zipf'? (one of: {', '.join(FAMILIES)})"),
    "spread zipf(2,3)": "cannot read the spread 'zipf(2,3)'; write for example 'zipf(2)'",
    "spread zipf(-1)": "a Zipf spread's s must be 0 or more, not -1.0",
    "spread hypergeom(10)": (
        "a hypergeometric spread over 50 groups needs a population of at least 98, not 10"
    ),
    "spread 0.5,nan": "a spread must be finite; group 2 is nan",
    "spread -- -0.5,1.5": "a spread must not be negative; group 1 is -0.5",
    "spread begin --groups 0": "groups must be a whole number from 1 to 1000000, not 0",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_answered_in_one_line(cli, tmp_path, line):
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    before = sorted(os.listdir(tmp_path))
    assert cli(*line.split()) == (2, "", f"accrual: {BAD[line]}\n")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("simulate settin1", "unknown setting 'settin1'; did you mean 'setting1'? (one of: setting1, "),
        ("simulate setting1 --policy UCB", "unknown policy 'UCB'; did you mean 'UCB1'? (one of: "),
        ("spread begn", "unknown spread 'begn'; did you mean 'begin'? (one of: uniform, "),
        ("simulate setting1 --runs 2000000000", "not enough memory: Unable to allocate "),
    ],
)
def test_long_answers_are_one_line_too(cli, line, start):
    code, out, err = cli(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"accrual: {start}")
    assert err.count("\n") == 1


def test_a_missing_extra_is_named_before_the_work(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    line = "accrual: this needs {}, which is not installed: pip install 'accrual[{}]'\n"
    long = ["simulate", "setting1", "--horizon", "1e9"]
    assert cli(*long, "--plot", "a.png") == (2, "", line.format("matplotlib", "plot"))
    assert cli(*long, "--save", "a.parquet") == (2, "", line.format("pyarrow", "frames"))
    assert cli("headline") == (2, "", line.format("matplotlib", "plot"))


def test_without_typer_the_command_says_what_to_install():
    done = process("--help", before="sys.modules['typer'] = None")
    assert done.returncode == 2
    assert done.stderr == "accrual: this needs typer, which is not installed: pip install 'accrual[cli]'\n"


def test_a_picture_that_fails_halfway_leaves_the_old_one(cli, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def half(self, path, **settings):
        Path(path).write_bytes(PNG)
        raise OSError(28, "No space left on device", str(path))

    (tmp_path / "a.png").write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", half)
    code, _, err = cli("simulate", EXAMPLE, *SMALL, "--plot", "a.png")
    assert code == 2
    assert err.endswith("No space left on device\n")
    assert os.listdir(tmp_path) == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"


# --- Ctrl-C ---


def test_ctrl_c_stops_the_work_and_leaves_nothing(tmp_path):
    ours, theirs = pty.openpty()  # a terminal for stderr, so that the progress bar tells us when to stop it
    code = "import sys; from accrual.cli import main; sys.exit(main())"
    line = ["simulate", "setting1", "--horizon", "1e7", "--runs", "500", "--csv", "a.csv", "--plot", "a.png"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *line], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs
    ) as child:
        os.close(theirs)
        assert b"policy-rounds" in _read_until(ours, b"policy-rounds", seconds=60)
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)  # the whole work would take an hour
    rest = _read_until(ours, b"stopped", seconds=60)
    os.close(ours)
    assert child.returncode == 130
    assert b"accrual: stopped" in rest
    assert b"Traceback" not in rest
    assert os.listdir(tmp_path) == []


def _read_until(stream: int, word: bytes, seconds: float) -> bytes:
    seen = b""
    give_up = time.monotonic() + seconds
    while word not in seen and time.monotonic() < give_up:
        try:
            seen += os.read(stream, 4096)
        except OSError:  # the other end is closed
            break
    return seen


def test_the_same_line_prints_the_same_table(cli):
    line = ["simulate", EXAMPLE, *SMALL]
    first = cli(*line, "--threads", "1", "--save", "one.parquet")
    assert first == cli(*line, "--threads", "2", "--save", "two.parquet")
    one, two = (ac.Result.load(f"{name}.parquet").regret for name in ("one", "two"))
    assert np.array_equal(one, two)
