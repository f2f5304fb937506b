"""What a simulation found: regret over time, for every policy and run."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from accrual.core.errors import InputError, need
from accrual.core.files import replacing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FORMAT = 1


@dataclass(frozen=True)
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

    def rows(self, baseline: str | None = None) -> list[dict[str, Any]]:
        """One dict per policy: mean, standard error, quantiles, paired difference to `baseline`.

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
        """The final regret as a pandas DataFrame, one row per policy (see `rows`)."""
        return need("pandas", "frames").DataFrame(self.rows(baseline)).set_index("policy")

    def plot(self, path: str | os.PathLike[str] | None = None, bounds: Any = None, ax: Any = None) -> Any:
        """Draw mean regret against rounds, with bands of two standard errors.

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
        """Write everything to one Parquet file, whole or not at all.

        One row per policy and run; the rounds, labels and settings are in the file's metadata.
        """
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
        """Read what `save` wrote."""
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


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
