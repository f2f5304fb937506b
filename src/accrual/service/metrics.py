"""What the service counts, for Prometheus. No label holds text from outside."""

from __future__ import annotations

import operator
import os
from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from accrual.live.commit import Call, Decide
from accrual.store.base import NewPiece, Status

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # the folder in which several processes share their counts

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_OUTCOME = operator.attrgetter("status", "late")


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()

        # "live" leaves out processes that have died; `server.Workers` marks them. Gauges that all workers
        # have in common show the value of the worker that measured last.
        common = "livemostrecent"

        def gauge(name: str, text: str, mode: str = common, labels: Sequence[str] = ()) -> Gauge:
            return Gauge(name, text, labels, registry=registry, multiprocess_mode=mode)  # type: ignore[arg-type]

        self.decisions = Counter("accrual_decisions_total", "Decisions made.", registry=registry)
        self.pieces = Counter("accrual_pieces_total", "Pieces, by outcome.", ["outcome"], registry=registry)
        self.duplicates = Counter(
            "accrual_duplicates_total", "Decisions and pieces that had been stored before.", registry=registry
        )
        self.failed = Counter("accrual_commits_failed_total", "Transactions that failed.", registry=registry)
        self.task_failures = Counter(
            "accrual_task_failures_total", "Background tasks that failed and were started again, by task.",
            ["task"], registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "accrual_commit_seconds",
            "Seconds for a transaction and for learning from it.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._request_seconds = Histogram(
            "accrual_request_seconds", "Seconds until a request was answered, by route and status.",
            ["route", "status"], registry=registry, buckets=_SECONDS,
        )  # fmt: skip
        self._of_route: dict[tuple[str, int], Histogram] = {}
        self.group = Histogram(
            "accrual_commit_size", "Decisions and pieces in one transaction.", registry=registry,
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
        )  # fmt: skip
        self.waiting = gauge("accrual_waiting", "Decisions and pieces that wait to be stored.", "livesum")
        self.pending = gauge("accrual_pending", "Decisions whose window has not closed.")
        self.late = gauge("accrual_late", "Pieces that came too late, since the first decision.")
        self.above_cap = gauge("accrual_above_cap", "Decisions that paid more than their cap.")
        self.changed = gauge("accrual_changed_arms", "Arms that no longer pay as they did.")
        self.verdict = gauge(
            "accrual_verdict", "Bandits, by the outcome of their verdict.", labels=["outcome"]
        )
        self.guardrails = gauge(
            "accrual_guardrails", "Guardrails, by what they have found.", labels=["outcome"]
        )
        self.lag_events = gauge(
            "accrual_fold_lag_events", "Stored events that a worker has not learned from.", "livemax"
        )
        self.lag_seconds = gauge(
            "accrual_fold_lag_seconds",
            "Seconds since a worker had learned from every stored event.",
            "livemax",
        )
        self.bandits = gauge("accrual_bandits", "Bandits open.")
        self.not_served = gauge("accrual_bandits_not_served", "Bandits that cannot be opened.", "livemax")
        self.states_failed = gauge("accrual_states_failed", "Bandits whose state cannot be computed.")

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered. `route` is a pattern of the API, never a path from outside."""
        histogram = self._of_route.get((route, status))
        if histogram is None:
            histogram = self._of_route[route, status] = self._request_seconds.labels(route, status)
        histogram.observe(seconds)

    def committed(self, seconds: float, calls: Sequence[Call]) -> None:
        """Count a transaction."""
        self.seconds.observe(seconds)
        self.group.observe(sum(call.size for call in calls))
        decisions = again = 0
        outcomes: Tally[tuple[Status, bool]] = Tally()
        for call in calls:
            for request, answer in zip(call.requests, call.answers or (), strict=False):
                if isinstance(request, NewPiece):
                    outcomes[_OUTCOME(answer)] += 1
                elif answer.status is Status.AGAIN:
                    again += 1
                elif isinstance(request, Decide):
                    decisions += len(answer.arms)
        for (status, late), count in outcomes.items():
            again += count if status is Status.AGAIN else 0
            self.pieces.labels("late" if late and status is Status.STORED else status.value).inc(count)
        if decisions:
            self.decisions.inc(decisions)
        if again:
            self.duplicates.inc(again)

    def page(self) -> bytes:
        """Return the metrics of all workers in the format of Prometheus."""
        if os.environ.get(DIRECTORY):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self._registry)
