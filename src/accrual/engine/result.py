"""The result of a simulation: regret over time, for every policy and run."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, need
from accrual.core.files import replacing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FORMAT = 1


@dataclass(frozen=True, repr=False)
class Result:
    """Regret of several policies on the same draws.

    Attributes
    ----------
    labels : tuple of str
        The policies, in the order of the arrays' first axis.
    rounds : ndarray
        The checkpoints.
    regret : ndarray
        Policies x runs x checkpoints.
    pulls : ndarray
        Decisions of each arm at the horizon, policies x runs x arms.
    runs : range
        The numbers of the runs.
    meta : dict
        What was simulated: seed, horizon, arms, window, and the version of accrual that did it.

    Examples
    --------
    >>> import accrual as ac
    >>> ac.simulate(ac.paper.setting1(), [ac.UCB1(), ac.TPUCBFR(alpha=50)], horizon=2000, runs=4)
    Result(2 policies, 4 runs, 2,000 rounds; least mean regret: UCB1, 1.62e+05)
    """

    labels: tuple[str, ...]
    rounds: Ints
    regret: Floats
    pulls: Ints
    runs: range
    meta: dict[str, Any] = field(default_factory=dict)

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
        """Give the table of `rows` as a notebook shows it."""
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
        """Give one dict per policy: mean, standard error, quantiles, paired difference to `baseline`.

        The difference to the baseline is taken run by run, and `vs_se` is the standard error of its
        mean. It is smaller than the error of two independent means, sqrt(se^2 + se_base^2), only where
        the two policies' regrets move together: all policies of a run see the same noise, but what it
        does to their regrets is alike only as far as they make the same choices. In Setting 1 that is
        little: TPUCBFRG(20, begin) less TPUCBFR(20) at 100,000 rounds has a `vs_se` of 2,218 over 100
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
        """Give the final regret as a pandas DataFrame, one row per policy (see `rows`)."""
        return need("pandas", "frames").DataFrame(self.rows(baseline)).set_index("policy")

    def to_frame(self) -> Any:
        """Give the regret as a pandas DataFrame in long form: policy, run, round, regret.

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
        from accrual.engine.plot import draw_regret

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


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
