"""The result of a simulation: regret over time, for every policy and run."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError, need
from accrual.core.files import replacing
from accrual.core.pictures import lines

DASHES = ((6, 3), (2, 2), (8, 2, 2, 2), (1, 3))  # of the bounds, which are all grey

_FIGURE: dict[str, Any] = {"figsize": (9, 5.5), "layout": "tight"}
_HEADROOM = 1.6  # a bound that ends this many times above the highest curve is not drawn
_FORMAT = 1  # of the files that `Result.save` writes


@dataclass(frozen=True, repr=False)
class Result:
    """Regret of several policies on the same draws.

    Examples
    --------
    >>> import accrual as ac
    >>> ac.simulate(ac.paper.setting1(), [ac.UCB1(), ac.TPUCBFR(alpha=50)], horizon=2000, runs=4)
    Result(2 policies, 4 runs, 2,000 rounds; least mean regret: UCB1, 1.62e+05)
    """

    labels: tuple[str, ...]
    """The policies, in the order of the arrays' first axis."""
    rounds: Ints
    """The checkpoints."""
    regret: Floats
    """Policies x runs x checkpoints."""
    pulls: Ints
    """Decisions of each arm at the horizon, policies x runs x arms."""
    runs: range
    """The numbers of the runs."""
    meta: dict[str, Any] = field(default_factory=dict)
    """What was simulated: seed, horizon, arms, window, and the version of accrual that did it."""

    @property
    def final_regret(self) -> Floats:
        """Regret at the horizon, policies x runs."""
        return self.regret[:, :, -1]

    def __repr__(self) -> str:
        policies, runs, _ = self.regret.shape
        means = self.final_regret.mean(axis=1)
        best = int(means.argmin())
        return (
            f"Result({policies} {'policy' if policies == 1 else 'policies'}, {runs} run{'s'[: runs != 1]}, "
            f"{self.rounds[-1]:,} rounds; least mean regret: {self.labels[best]}, {means[best]:.3g})"
        )

    def _repr_html_(self) -> str:
        """Return the table of `rows` as a notebook shows it."""
        rows = self.rows()
        head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
        lines = (
            "".join(f"<td>{escape(x) if isinstance(x, str) else _figure(x)}</td>" for x in row.values())
            for row in rows
        )
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        title = f"Regret after {self.rounds[-1]:,} rounds, {len(self.runs):,} runs"
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def rows(self, baseline: str | None = None) -> list[dict[str, Any]]:
        """Return one dict per policy: mean, standard error, quantiles, paired difference to `baseline`.

        The difference to the baseline is taken run by run, and `vs_se` is the standard error of its
        mean. All policies of a run see the same noise, so their regrets may move together; only then is
        `vs_se` smaller than sqrt(se^2 + se_base^2), the error of two independent means. In Setting 1 they
        hardly do: TPUCBFRG(20, begin) less TPUCBFR(20) at 100,000 rounds has a `vs_se` of 2,218 over 100
        runs, where independent runs would have 2,315. The baseline is the first policy unless named.
        """
        base = self.labels[0] if baseline is None else baseline
        if base not in self.labels:
            raise InputError(f"no policy is labelled {base!r}; there are: {', '.join(self.labels)}")
        final = self.final_regret
        difference = final - final[self.labels.index(base)]
        return [
            {
                "policy": label,
                "mean": float(final[p].mean()),
                "se": _standard_error(final[p]),
                "q05": float(np.quantile(final[p], 0.05)),
                "median": float(np.median(final[p])),
                "q95": float(np.quantile(final[p], 0.95)),
                "worst": float(final[p].max()),
                f"vs {base}": float(difference[p].mean()),
                "vs_se": _standard_error(difference[p]),
            }
            for p, label in enumerate(self.labels)
        ]

    def table(self, baseline: str | None = None) -> Any:
        """Return the final regret as a pandas DataFrame, one row per policy (see `rows`)."""
        return need("pandas", "frames").DataFrame(self.rows(baseline)).set_index("policy")

    def to_frame(self) -> Any:
        """Return the regret as a pandas DataFrame in long form: policy, run, round, regret.

        Examples
        --------
        >>> import accrual as ac
        >>> result = ac.simulate(ac.paper.setting1(), [ac.UCB1()], horizon=100, runs=2, checkpoints=2)
        >>> result.to_frame()[["policy", "run", "round"]].values.tolist()
        [['UCB1', 0, 50], ['UCB1', 0, 100], ['UCB1', 1, 50], ['UCB1', 1, 100]]
        """
        pandas = need("pandas", "frames")
        labels = np.array(self.labels, dtype=object)
        index = pandas.MultiIndex.from_product(
            [labels, self.runs, self.rounds], names=["policy", "run", "round"]
        )
        return pandas.DataFrame({"regret": self.regret.ravel()}, index=index).reset_index()

    def plot(self, path: str | os.PathLike[str] | None = None, bounds: Any = None, ax: Any = None) -> Any:
        """Draw mean regret against rounds, with bands of two standard errors.

        Without `path` and `ax` the picture is shown: in a notebook below the cell, elsewhere in a
        window, which a script keeps open with ``matplotlib.pyplot.show()``.

        Parameters
        ----------
        path : path, optional
            Where to write the picture; the ending decides the format.
        bounds : dict of str to array, optional
            Curves to draw dashed, by label, at this result's `rounds`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw_regret(self, path, bounds or {}, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to one file; if that fails, nothing is written.

        Parameters
        ----------
        path : path
            Ending in ``.parquet``, for a file that `load` reads back: one row per policy and run; the
            rounds, labels and settings are in the file's metadata. Or ending in ``.csv``, for the
            regret as text: the columns of `to_frame`.
        """
        ending = Path(path).suffix.lower()
        if ending == ".csv":
            with replacing(path) as partial:
                self.to_frame().to_csv(partial, index=False)
        elif ending == ".parquet":
            self._write_parquet(path)
        else:
            raise InputError(f"a result is saved to a file ending in .parquet or .csv, not to {str(path)!r}")

    def _write_parquet(self, path: str | os.PathLike[str]) -> None:
        pa = need("pyarrow", "frames")
        parquet = need("pyarrow.parquet", "frames")
        policies, runs, _ = self.regret.shape
        flat = policies * runs
        meta = {
            "format": _FORMAT,
            "labels": self.labels,
            "rounds": self.rounds.tolist(),
            "runs": [self.runs.start, self.runs.stop],
            "meta": self.meta,
        }
        table = pa.table(
            {
                "policy": np.repeat(np.array(self.labels, dtype=object), runs),
                "run": np.tile(np.array(self.runs), policies),
                "regret": pa.FixedSizeListArray.from_arrays(self.regret.ravel(), self.regret.size // flat),
                "pulls": pa.FixedSizeListArray.from_arrays(self.pulls.ravel(), self.pulls.size // flat),
            }
        ).replace_schema_metadata({"accrual": json.dumps(meta)})
        with replacing(path) as partial:
            parquet.write_table(table, partial)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a Parquet file that `save` wrote."""
        parquet = need("pyarrow.parquet", "frames")
        pa = need("pyarrow", "frames")
        try:
            table = parquet.read_table(path)
            meta = json.loads(table.schema.metadata[b"accrual"])
        except (pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} is not a result that accrual saved") from error
        if meta["format"] != _FORMAT:
            raise InputError(f"{path} has format {meta['format']}; this version reads {_FORMAT}")
        shape = (len(meta["labels"]), len(range(*meta["runs"])), -1)
        columns = {
            name: table.column(name).combine_chunks().flatten().to_numpy().reshape(shape)
            for name in ("regret", "pulls")
        }
        return cls(
            labels=tuple(meta["labels"]),
            rounds=np.array(meta["rounds"], np.int64),
            runs=range(*meta["runs"]),
            meta=meta["meta"],
            **columns,
        )


def draw_regret(
    result: Result, path: str | os.PathLike[str] | None, bounds: Mapping[str, npt.ArrayLike], ax: Any
) -> Any:
    """Draw `result` (see `Result.plot`)."""
    shown = ax is None and path is None
    if shown:  # pyplot keeps the figure, so that a notebook or a window shows it
        ax = need("matplotlib.pyplot", "plot").figure(**_FIGURE).subplots()
    elif ax is None:
        ax = need("matplotlib.figure", "plot").Figure(**_FIGURE).subplots()
    axis_text = need("matplotlib.ticker", "plot").EngFormatter(sep="")
    mean = result.regret.mean(axis=1)
    runs = result.regret.shape[1]
    band = 2 * result.regret.std(axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else 0 * mean
    # The legend names the curves in the order in which they end, the highest on top.
    order = np.argsort(-mean[:, -1], kind="stable")
    for p, style in zip(order, lines([result.labels[p] for p in order]), strict=True):
        label = f"{result.labels[p]}   {_short(mean[p, -1])}"
        ax.plot(result.rounds, mean[p], label=label, **style)
        low, high = mean[p] - band[p], mean[p] + band[p]
        ax.fill_between(result.rounds, low, high, color=style["color"], alpha=0.2, lw=0)
    highest = float(mean.max())
    top = 1.05 * highest
    for rank, (name, curve) in enumerate(bounds.items()):
        values = np.asarray(curve, dtype=np.float64)
        label = f"{name}   {_short(values[-1])}"
        dashes = (0, DASHES[rank % len(DASHES)])
        if values[-1] > _HEADROOM * highest:  # it would flatten the curves, so only the legend has it
            label, values = f"{label}, above", np.full(len(values), np.nan)
        else:
            top = max(top, 1.05 * float(values[-1]))
        ax.plot(result.rounds, values, color="#666666", linestyle=dashes, label=label, linewidth=1.4)
    ax.set(xlabel="round", ylabel="regret (mean, ± 2 s.e.)")
    ax.set(xlim=(0, result.rounds[-1]), ylim=(0, top or 1.0))
    ax.xaxis.set_major_formatter(axis_text)
    ax.yaxis.set_major_formatter(axis_text)
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    if path is not None:
        with replacing(path) as partial:
            ax.figure.savefig(partial, dpi=150, bbox_inches="tight")
    if shown and ax.figure.canvas.required_interactive_framework:  # there are windows
        need("matplotlib.pyplot", "plot").show(block=False)
    return ax


def _short(value: float) -> str:
    """Write a number with three digits and a unit: 1.91M, 464k, 2.5."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
