"""Compare the results with the paper: its printed numbers, and its statements in words."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from accrual.studies.paper.results import LearnerRows, PaperResults, SettingRows
from accrual.studies.paper.settings import SPREADS

# Three significant digits are good to 0.5 % at worst, and a mean over 100 runs to about another
# 0.5 %, theirs and ours; 2.5 % leaves room for both and none for a different experiment.
TOLERANCE = 0.025


@dataclass(frozen=True)
class PaperLine:
    """One learner in one setting."""

    setting: str
    title: str
    learner: str
    paper: float | None
    ours: float
    error: float  # standard error of `ours`
    comparable: bool  # whether the paper's number is for the same data

    @property
    def difference(self) -> float | None:
        """Ours over the paper's number, less 1."""
        return None if self.paper is None else self.ours / self.paper - 1.0

    @property
    def agrees(self) -> bool | None:
        """Whether ours is within the tolerance; None if there is nothing to compare."""
        if self.difference is None or not self.comparable:
            return None
        return abs(self.difference) <= TOLERANCE


def lines(data: PaperResults) -> list[PaperLine]:
    """Make a line for every learner of every setting."""
    return [
        line(setting, learner) for setting in data.settings.values() for learner in setting.learners.values()
    ]


def line(setting: SettingRows, learner: LearnerRows) -> PaperLine:
    """Return the line of one learner."""
    return PaperLine(
        setting=setting.id,
        title=setting.title,
        learner=learner.label,
        paper=learner.printed,
        ours=learner.final,
        error=learner.final_error,
        comparable=setting.data != "synthetic",
    )


def printed(data: PaperResults) -> list[PaperLine]:
    """Return the lines that have a printed number to compare with."""
    return [one for one in lines(data) if one.agrees is not None]


def disagreements(data: PaperResults) -> list[str]:
    """Return one sentence for each printed number with which ours does not agree."""
    return [
        f"{one.setting} {one.learner}: paper {one.paper:.3g}, ours {one.ours:.4g} ± {one.error:.2g}, "
        f"difference {100 * (one.difference or 0):+.1f} % (at most {100 * TOLERANCE:g} % agrees)"
        for one in printed(data)
        if one.agrees is False
    ]


def csv_text(data: PaperResults) -> str:
    """Return all lines as CSV."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(
        ["setting", "learner", "paper", "ours", "standard_error", "difference_percent", "agrees", "runs"]
    )
    for one in lines(data):
        difference = "" if one.difference is None else f"{100 * one.difference:.2f}"
        agrees = {True: "yes", False: "no", None: ""}[one.agrees]
        if one.paper is not None and not one.comparable:
            agrees = "not comparable: synthetic data"
        error = "" if math.isnan(one.error) else f"{one.error:.1f}"
        paper = "" if one.paper is None else f"{one.paper:g}"
        rows.writerow(
            [
                one.setting,
                one.learner,
                paper,
                f"{one.ours:.1f}",
                error,
                difference,
                agrees,
                data.manifest["runs"],
            ]
        )
    return out.getvalue()


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper in our words, what the results say, and whether the sentence holds."""

    text: str
    found: str
    holds: bool


def statements(data: PaperResults) -> list[Statement]:
    """Check every statement for which there are results."""
    return [one for check in _CHECKS for one in check(data)]


def _gain(better: LearnerRows, base: LearnerRows) -> float:
    return 100 * (1 - better.final / base.final)


def _learner(setting: SettingRows, kind: str) -> LearnerRows:
    learner = setting.kind(kind)
    assert learner is not None, f"{setting.id} has no learner {kind}"
    return learner


def _coincidence(data: PaperResults) -> Iterator[Statement]:
    shares = {curve.label: curve.y for curve in data.spreads.get("spread/named50", [])}
    if shares:
        ic = {name: float(y @ y) for name, y in shares.items()}
        printed = {"extreme_begin": 0.51, "very_end": 0.14, "begin": 0.05, "end": 0.05}
        yield Statement(
            "At 50 groups the index of coincidence is about 0.51 for extreme_begin, 0.14 for very_end and "
            "0.05 for begin and end.",
            ", ".join(f"{name} {ic[name]:.3f}" for name in printed),
            all(abs(ic[name] - value) < 0.0051 for name, value in printed.items()),
        )


def _gains(data: PaperResults) -> Iterator[Statement]:
    fifty = data.settings.get("setting1/alpha50")
    if fifty:
        base = _learner(fifty, "TPUCBFR")
        gains = {name: _gain(_learner(fifty, name), base) for name in ("begin", "begin_middle")}
        yield Statement(
            "In Setting 1 at α_est = 50, begin and begin_middle do clearly better than TPUCBFR.",
            ", ".join(f"{name} {gain:+.1f} %" for name, gain in gains.items()) + " less regret",
            all(gain > 10 for gain in gains.values()),
        )
    five = data.settings.get("setting1/alpha5")
    if five:
        begin, middle = _learner(five, "begin"), _learner(five, "begin_middle")
        yield Statement(
            "At α_est = 5, begin is too optimistic: begin_middle does better at long horizons.",
            f"begin {begin.final:.3g}, begin_middle {middle.final:.3g}",
            middle.final < begin.final,
        )
    settings = [*data.starting("setting1"), *data.starting("setting2"), *data.starting("spotify")]
    if settings:
        gains = {one.id: _gain(_learner(one, "begin"), _learner(one, "TPUCBFR")) for one in settings}
        worst = min(gains, key=lambda id: gains[id])
        yield Statement(
            "TPUCBFRG with begin has less regret than TPUCBFR in every setting tried.",
            f"smallest gain {gains[worst]:+.1f} % ({worst}), largest {max(gains.values()):+.1f} %",
            gains[worst] > 0,
        )
        better = []
        for one in settings:
            best = min((_learner(one, name) for name in SPREADS), key=lambda learner: learner.final)
            if best.kind != "begin" and one.id != "setting1/alpha5":
                better.append(
                    f"{one.id}: {best.kind} {best.final:.3g} (begin {_learner(one, 'begin').final:.3g})"
                )
        yield Statement(
            "begin is essentially the ideal learner. (Read as: none of the other seven spreads does better, "
            "except at α_est = 5, where the paper says so itself.)",
            "; ".join(better) or "begin is the best of the eight everywhere else",
            not better,
        )
    largest = data.settings.get("setting2/c4/late")
    if largest:
        gain = _gain(_learner(largest, "begin"), _learner(largest, "TPUCBFR"))
        yield Statement(
            "The gain in Setting 2 is as high as 48.2 % (τ_max = 200, α = 100, late).",
            f"{gain:.1f} %",
            abs(gain - 48.2) < 1.5,
        )


def _rising(data: PaperResults) -> Iterator[Statement]:
    settings = data.starting("setting1")
    if len(settings) > 2:
        ordered = sorted(settings, key=lambda one: int(one.id.removeprefix("setting1/alpha")))
        final = [_learner(one, "TPUCBFR").final for one in ordered]
        yield Statement(
            "TPUCBFR depends strongly on the assumed α, and larger values do better.",
            " > ".join(f"{value:.3g}" for value in final) + " as α_est grows",
            all(a > b for a, b in pairwise(final)),
        )
        values = [_learner(one, "TPUCBEW").final for one in ordered]
        ratio = max(values) / min(values)
        yield Statement(
            "TPUCBEW changes little with the assumed α (Romano et al., quoted by the paper).",
            f"largest over smallest regret {ratio:.3f}; TPUCBFR's is {max(final) / min(final):.2f}",
            ratio < 1.15 and ratio < max(final) / min(final),
        )
    twenty = data.settings.get("setting1/alpha20")
    if twenty:
        ew, fr = _learner(twenty, "TPUCBEW"), _learner(twenty, "TPUCBFR")
        ahead = ew.rounds[ew.mean < fr.mean]
        until = int(ahead[-1]) if len(ahead) else 0
        yield Statement(
            "TPUCBEW is better than TPUCBFR at short horizons and worse at long ones.",
            f"at α_est = 20 it is ahead until about round {until:,} and has "
            f"{ew.final / fr.final:.2f} times the regret at the end",
            0 < until < 0.6 * ew.rounds[-1] and ew.final > fr.final,
        )


def _scenarios(data: PaperResults) -> Iterator[Statement]:
    for config, claim in ((2, 0.3), (3, 0.5)):
        three = [data.settings.get(f"setting2/c{config}/{name}") for name in ("early", "uniform", "late")]
        if not all(three):
            continue
        early, even, late = (one for one in three if one is not None)
        changes = {
            label: late.learners[label].final - early.learners[label].final
            for label, learner in late.learners.items()
            if learner.kind in (*SPREADS, "TPUCBFR")
        }
        percent = {
            label: 100 * abs(change) / early.learners[label].final for label, change in changes.items()
        }
        most = max(changes, key=lambda label: abs(changes[label]))
        relative = max(percent, key=lambda label: percent[label])
        where = f"τ_max = {late.window}, α = {late.groups}"
        yield Statement(
            f"Between late and early rewards the largest change of regret is about {claim} % ({where})"
            + (", and it is very_end's, 4.8e3." if config == 2 else "."),
            f"largest: {most} {changes[most]:+.3g}, {percent[most]:.2f} %; in percent: {relative} "
            f"{percent[relative]:.2f} %",
            abs(percent[most] - claim) < 0.15 and (config != 2 or "very_end" in most),
        )
        ordered = []
        for label in changes:
            steps = [
                b.learners[label].regret[:, -1] - a.learners[label].regret[:, -1]
                for a, b in ((early, even), (even, late))
            ]
            # A step counts against the order only if it is clearly negative.
            ordered.append(
                all(
                    step.mean() > -2 * step.std(ddof=min(1, len(step) - 1)) / np.sqrt(len(step))
                    for step in steps
                )
                and late.learners[label].final > early.learners[label].final
            )
        yield Statement(
            f"Regret grows from early to uniform to late ({where}).",
            f"{sum(ordered)} of {len(ordered)} learners, to within two standard errors of each step",
            all(ordered),
        )


def _bounds(data: PaperResults) -> Iterator[Statement]:
    for setting in data.starting("setting1"):
        even, shaped = (curve.y for curve in setting.curves)
        yield Statement(
            "In Setting 1 the α-smooth and the β-spread upper bounds coincide.",
            f"largest relative difference {float(np.max(np.abs(shaped / even - 1))):.1e}",
            bool(np.allclose(even, shaped, rtol=1e-9)),
        )
        break
    early = data.settings.get("setting2/c2/early")
    if early:
        smooth, spread = (float(curve.y[-1]) for curve in early.curves)
        yield Statement(
            "In Setting 2.2 (τ_max = 100, α = 50) the β-spread upper bound is the tighter one.",
            f"β-spread {spread:.3g}, α-smooth {smooth:.3g} at the last round",
            spread < smooth,
        )
        end = _learner(early, "very_end")
        yield Statement(
            "There, very_end exceeds the β-spread upper bound.",
            f"very_end ends at {end.final:.3g}, the bound at {spread:.3g}",
            end.final > spread,
        )


def _zipf(data: PaperResults) -> Iterator[Statement]:
    setting = data.settings.get("zipf")
    if setting:
        final = {one.kind: one.final for one in setting.learners.values()}
        yield Statement(
            "zipf(1) does better than TPUCBFR but worse than begin.",
            f"begin {final['begin']:.3g}, zipf(1) {final['zipf(1)']:.3g}, TPUCBFR {final['TPUCBFR']:.3g}",
            final["begin"] < final["zipf(1)"] < final["TPUCBFR"],
        )
        least = min(final[f"zipf({s})"] for s in (2, 3, 4))
        beaten = [name for name in ("very_begin", "begin", "begin_middle") if final[name] < least]
        yield Statement(
            "Zipf spreads with s ≥ 2 do worse than most beta-binomial ones.",
            f"the best of them has {least:.3g}; ahead of it: {', '.join(beaten) or 'none'}",
            len(beaten) >= 2,
        )


def _boltzmann(data: PaperResults) -> Iterator[Statement]:
    setting = data.settings.get("boltzmann")
    if setting:
        half, very = _learner(setting, "boltzmann(0.5)"), _learner(setting, "very_begin")
        last = int(half.rounds[-1])
        gap = {t: 100 * (half.at(t) / very.at(t) - 1) for t in (15_000, last) if t <= last}
        yield Statement(
            "boltzmann(0.5) is nearly identical to very_begin. (Read as: within 5 %.)",
            ", ".join(f"{value:+.1f} % at round {t:,}" for t, value in gap.items()),
            all(abs(value) < 5 for value in gap.values()),
        )
        quarter, begin = _learner(setting, "boltzmann(0.25)"), _learner(setting, "begin")
        ahead = quarter.rounds[quarter.mean < begin.mean]
        until = int(ahead[-1]) if len(ahead) else 0
        yield Statement(
            "boltzmann(0.25) is slightly ahead of begin up to about round 38,000, begin afterwards.",
            f"ahead until about round {until:,}; at the end {quarter.final:.3g} against {begin.final:.3g}",
            abs(until / 38_000 - 1) < 0.25 and begin.final < quarter.final,
        )


def _hypergeometric(data: PaperResults) -> Iterator[Statement]:
    setting = data.settings.get("hypergeometric")
    if setting:
        begin = _learner(setting, "begin")
        rivals = [_learner(setting, f"hypergeom({n})") for n in (200, 300, 400, 500)]
        early = [rival.kind for rival in rivals if rival.at(10_000) < begin.at(10_000)]
        yield Statement(
            "Hypergeometric spreads with N from 200 to 500 are slightly ahead of begin in the first "
            "15,000 rounds.",
            f"ahead at round 10,000: {', '.join(early) or 'none'}",
            len(early) == len(rivals),
        )
        best = min(setting.learners.values(), key=lambda one: float(np.trapezoid(one.mean, one.rounds)))
        yield Statement(
            "Over the whole horizon begin is the best learner of that comparison.",
            f"smallest area under its curve: {best.label}",
            best.kind == "begin",
        )


def _spotify(data: PaperResults) -> Iterator[Statement]:
    setting = data.settings.get("spotify")
    if setting:
        claimed = ("begin", "begin_middle", "very_begin", "TPUCBFR", "extreme_begin")
        final = {name: _learner(setting, name).final for name in claimed}
        order = tuple(sorted(claimed, key=lambda name: final[name]))
        yield Statement(
            "Spotify: begin is best, then begin_middle, very_begin, TPUCBFR, and extreme_begin is worst."
            + (" (SYNTHETIC data here.)" if setting.data == "synthetic" else ""),
            " < ".join(f"{name} {final[name]:.3g}" for name in order),
            order == claimed,
        )


def _theorem1(data: PaperResults) -> Iterator[Statement]:
    for setting in data.starting("audit"):
        (learner,) = setting.learners.values()
        slope, error = learner.growth()
        printed, free, common = (curve.per_log for curve in setting.curves)
        last = int(learner.rounds[-1])
        yield Statement(
            "Theorem 1: in the long run no uniformly efficient policy's regret grows more slowly than the "
            f"printed lower bound ({setting.title.split(': ')[-1]}). (Read as: over the last tenfold of "
            "rounds, not by more than three standard errors.)",
            f"from round {last // 10:,} to {last:,} {learner.label} gains {slope:.3g} ± {error:.2g} of "
            f"regret per unit of ln t; the printed bound gains {printed:.3g}, the bound for free chances "
            f"{free:.3g}, the bound for one chance {common:.3g}",
            not slope + 3 * error < printed,
        )


_CHECKS: tuple[Callable[[PaperResults], Iterator[Statement]], ...] = (
    _gains, _rising, _scenarios, _bounds, _coincidence,
    _zipf, _boltzmann, _hypergeometric, _spotify, _theorem1,
)  # fmt: skip
