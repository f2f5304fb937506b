"""The routes about bandits, their arms, state, decisions and log: all routes but the two of the traffic."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, convert, structs

from accrual.core.errors import InputError
from accrual.live.bandit import Bandit
from accrual.live.context_worth import ContextWorth
from accrual.live.explain import Explanation
from accrual.live.state import BanditState
from accrual.live.watch import NO_STREAM
from accrual.service.bandit_pool import BanditPool, ServedBandit
from accrual.service.messages import (
    BanditIn,
    BanditInfoOut,
    BanditsOut,
    DecisionOut,
    DeleteQuery,
    DoneOut,
    EventOut,
    EventPageOut,
    ExportQuery,
    HistoryOut,
    NewArmIn,
    NoBody,
    NotServedOut,
    RecentOut,
    RecentQuery,
    RetireIn,
    StreamIn,
)
from accrual.service.operations import Call, Operation, decision_id
from accrual.service.refusals import Refusal
from accrual.store.base import (
    ARCHIVED,
    Answer,
    BanditRow,
    CloseDecision,
    RetireArm,
    Status,
    StoredArm,
    stream_names,
)
from accrual.store.events import Events, Kind

_KINDS = {kind.value: kind.name.lower() for kind in Kind}
_AT = "/v1/bandits/{bandit}"
_PARTS = 40  # of a log, for the history of shares
_PART_EVENTS = 1_000  # events of a part, if the log is too long to be read whole
_PART_DECISIONS = 100  # the least decisions of a part, if there are that many
_write = msgspec.json.Encoder().encode


class BanditRoutes:
    """Answer the routes about bandits."""

    def __init__(self, bandits: BanditPool) -> None:
        self._bandits = bandits

    def operations(self) -> list[Operation]:
        """Return a row for each route."""
        return [
            Operation("createBandit", "POST", "/v1/bandits", "admin", self.create, BanditInfoOut,
                      takes=BanditIn, created=True),
            Operation("listBandits", "GET", "/v1/bandits", "read", self.list, BanditsOut),
            Operation("getBandit", "GET", _AT, "read", self.get, BanditInfoOut),
            Operation("archiveBandit", "POST", f"{_AT}/archive", "admin", self.archive, BanditInfoOut,
                      takes=NoBody, body_optional=True),
            Operation("restoreBandit", "POST", f"{_AT}/restore", "admin", self.restore, BanditInfoOut,
                      takes=NoBody, body_optional=True),
            Operation("deleteBandit", "DELETE", _AT, "admin", self.delete, BanditInfoOut, query=DeleteQuery),
            Operation("getState", "GET", f"{_AT}/state", "read", self.state, BanditState),
            Operation("getHistory", "GET", f"{_AT}/history", "read", self.history, HistoryOut),
            Operation("getContextWorth", "GET", f"{_AT}/contexts", "read", self.contexts, ContextWorth),
            Operation("addArm", "POST", f"{_AT}/arms", "admin", self.add_arm, DoneOut, takes=NewArmIn),
            Operation("retireArm", "POST", f"{_AT}/arms/retire", "admin", self.retire_arm, DoneOut,
                      takes=RetireIn),
            Operation("listDecisions", "GET", f"{_AT}/decisions", "read", self.recent, RecentOut,
                      query=RecentQuery),
            Operation("explainDecision", "GET", f"{_AT}/decisions/{{id}}/explain", "read", self.explain,
                      Explanation),
            Operation("closeDecision", "POST", f"{_AT}/decisions/{{id}}/close", "write", self.close, DoneOut,
                      takes=NoBody, body_optional=True),
            Operation("exportEvents", "GET", f"{_AT}/export", "read", self.export, EventPageOut,
                      query=ExportQuery),
        ]  # fmt: skip

    async def _find(self, call: Call) -> ServedBandit:
        return await self._bandits.find(call.path["bandit"])

    async def _info(self, row: BanditRow) -> BanditInfoOut:
        return _bandit(row, await self._bandits.arms(row))

    async def create(self, call: Call) -> tuple[int, BanditInfoOut]:
        """Make a bandit. The same request sent again is no error. Another bandit of this name is."""
        settings = msgspec.to_builtins(call.body)
        name, arms, window = (settings.pop(one) for one in ("name", "arms", "window"))
        served, new = await self._bandits.create(name, arms, window, settings)
        return 201 if new else 200, await self._info(served.row)

    async def list(self, call: Call) -> BanditsOut:
        """List all bandits, oldest first. Archived bandits and bandits that cannot be opened are apart."""
        failures = self._bandits.failures
        rows = [row for row in await self._bandits.rows() if row.name not in failures]
        archived = [await self._info(row) for row in rows if ARCHIVED in row.config]
        served = [await self._info(row) for row in rows if ARCHIVED not in row.config]
        failed = [NotServedOut(name, why) for name, why in sorted(failures.items())]
        return BanditsOut(served, archived, failed)

    async def get(self, call: Call) -> BanditInfoOut:
        """Show how a bandit was made, the arms that it has now, and whether it is archived."""
        return await self._info(await self._bandits.row(call.path["bandit"]))

    async def archive(self, call: Call) -> BanditInfoOut:
        """Stop serving a bandit. All its data are kept, and it can be restored."""
        return await self._info(await self._bandits.archive(call.path["bandit"]))

    async def restore(self, call: Call) -> BanditInfoOut:
        """Serve an archived or deleted bandit again, as it was."""
        return await self._info(await self._bandits.restore(call.path["bandit"]))

    async def delete(self, call: Call) -> BanditInfoOut:
        """Archive a bandit and permanently erase it after `grace`. Until then it can be restored."""
        return await self._info(await self._bandits.archive(call.path["bandit"], call.query.grace))

    async def state(self, call: Call) -> Raw:
        """Show what is known about every arm, and the verdict.

        The answer is computed once for all clients. It is at most half a second old, or four times as old
        as it took to compute, if that is longer.
        """
        served = await self._find(call)
        return Raw(await self._bandits.computed(served, "state", lambda: _write(served.state())))

    async def history(self, call: Call) -> Raw:
        """Show how often each arm was chosen, since the first decision, in up to 40 parts of the log.

        A short log is read whole. A log of more than 40,000 events is sampled.
        """
        served = await self._find(call)
        return Raw(await self._bandits.computed(served, "history", lambda: _write(_share_history(served))))

    async def contexts(self, call: Call) -> ContextWorth:
        """Show what contexts are worth: the reward per decision with and without them.

        The answer is computed from closed decisions when a request asks for it. It is computed again when
        a twentieth more decisions have closed.
        """
        served = await self._find(call)
        return await self._bandits.refold(served.context_worth)

    async def add_arm(self, call: Call) -> DoneOut:
        """Add an arm. The same request sent again is no error."""
        served = await self._find(call)
        arm = served.bandit.arm(*structs.astuple(call.body))
        (answer,) = await self._bandits.read(lambda: served.bandit.submit((arm,)))
        if answer.status is Status.CONFLICT:
            raise Refusal("conflict", "an arm of this name has another cap, another window or other features")
        await self._bandits.read(served.learn_arms)
        return _done(answer)

    async def retire_arm(self, call: Call) -> DoneOut:
        """Never choose an arm again. The policy still learns from pieces of its pending decisions."""
        served = await self._find(call)
        arm = await self._bandits.read(lambda: served.arm_number(call.body.name))
        (answer,) = await served.submit((RetireArm(arm),))
        return _done(answer)

    async def recent(self, call: Call) -> RecentOut:
        """List the last decisions, newest first. Decisions of an old log are left out."""
        served = await self._find(call)
        return await self._bandits.compute(lambda: _recent(served, call.query.limit))

    async def explain(self, call: Call) -> Explanation:
        """Explain a decision: show every arm's index at that moment, and what the index was made of."""
        served, id_ = await self._find(call), decision_id(call)
        return await self._bandits.refold(lambda: _explained(served.bandit, id_))

    async def close(self, call: Call) -> DoneOut:
        """Close a decision: pieces that still come are late. What it has paid counts as before."""
        served, id_ = await self._find(call), decision_id(call)
        (answer,) = await served.submit((CloseDecision(id_),))
        if answer.status is Status.UNKNOWN:
            raise Refusal("unknown-decision", f"no decision has the id {id_}")
        return _done(answer)

    async def export(self, call: Call) -> EventPageOut:
        """Read the log after a position, in order. `accrual db export` writes the whole log as Parquet."""
        served, (after, limit) = await self._find(call), (call.query.after, call.query.limit)
        return await self._bandits.compute(lambda: _events(served, served.events(after, limit), after, limit))


def _done(answer: Answer) -> DoneOut:
    return DoneOut(status="stored" if answer.status is Status.STORED else "again")


def _bandit(row: BanditRow, arms: Sequence[StoredArm]) -> BanditInfoOut:
    fields = {key: value for key, value in row.config.items() if key in BanditInfoOut.__struct_fields__}
    declared = [dict(stream) for stream in row.config.get("streams", ())]
    streams = {stream.pop("name"): convert(stream, StreamIn) for stream in declared}
    playing = [arm.name for arm in arms if not arm.retired]
    retired = [arm.name for arm in arms if arm.retired]
    return BanditInfoOut(
        **fields | {"name": row.name, "arms": playing, "retired": retired, "streams": streams}
    )


def _share_history(served: ServedBandit) -> HistoryOut:
    """Count each arm's decisions in up to 40 parts of the log, as far as the log is folded.

    A short log is read whole, a long log in samples at even distances. Only the store is read, so that
    decisions go on meanwhile.
    """
    end = served.bandit.position
    if end <= _PARTS * _PART_EVENTS:
        parts = _split(_decisions(served, 0, end))
    else:
        starts = np.linspace(0, end - _PART_EVENTS, _PARTS).astype(int)
        parts = [_decisions(served, int(after), _PART_EVENTS) for after in starts]
    served.learn_arms()
    arms = served.arms
    found = [part for part in parts if len(part.seq)]
    return HistoryOut(
        arms=arms,
        at=[float(part.at[-1]) for part in found],
        decisions=[int(part.decision[-1]) + 1 for part in found],
        counts=[np.bincount(part.arm, minlength=len(arms)).tolist() for part in found],
    )


def _decisions(served: ServedBandit, after: int, limit: int) -> Events:
    """Read the decisions of a part of the log, without those that come from an old log."""
    events = served.events(after, limit)
    chosen = (events.kind == Kind.DECISION) & (events.decision >= served.imported)
    return Events._make(column[chosen] for column in events)


def _split(events: Events) -> list[Events]:
    """Split decisions into parts of equal length."""
    count = len(events.seq)
    parts = int(np.clip(count // _PART_DECISIONS, 1, _PARTS))
    ends = np.linspace(0, count, parts + 1).astype(np.int64).tolist()
    return [Events._make(column[first:last] for column in events) for first, last in itertools.pairwise(ends)]


def _recent(served: ServedBandit, limit: int) -> RecentOut:
    last = served.decisions()
    first = max(last - limit, served.imported)
    rows = [served.decision(id) for id in range(last - 1, first - 1, -1)]
    if not served.knows([row.arm for row in rows if row]):
        served.learn_arms()
    return RecentOut(
        decisions=[
            DecisionOut(row.id, served.arm_name(row.arm), row.at, row.propensity) for row in rows if row
        ]
    )


def _explained(bandit: Bandit, id_: int) -> Explanation:
    try:
        return bandit.explain(id_)
    except InputError as error:
        raise Refusal("unknown-decision", str(error)) from None


def _events(served: ServedBandit, events: Events, after: int, limit: int) -> EventPageOut:
    served.learn_arms()
    contexts = served.contexts(events)
    streams = stream_names(served.config)
    rows = []
    for values in zip(*(column.tolist() for column in events), strict=True):
        event: dict[str, Any] = dict(zip(events._fields, values, strict=True))
        kind = event["kind"]
        row = {"seq": event["seq"], "kind": _KINDS[kind], "at": event["at"]}
        if event["decision"] >= 0:
            row["decision"] = event["decision"]
            if event["decision"] < served.imported:
                row["imported"] = True
        if kind == Kind.PIECE:
            row |= {"value": event["value"], "age": event["age"]}
            if event["stream"] != NO_STREAM:
                row["stream"] = streams[event["stream"]]
        elif kind != Kind.CLOSE:
            row["arm"] = served.arm_name(event["arm"])
        if kind == Kind.DECISION:
            row["window"] = event["window"]
            if event["propensity"]:
                row["propensity"] = event["propensity"]
            if contexts:
                row["context"] = contexts[event["decision"]]
        elif kind == Kind.ADD_ARM:
            row |= {"cap": event["cap"], "window": event["window"]}
            about = served.about(event["arm"])
            if about is not None:
                row["about"] = about
        rows.append(EventOut(**row))
    return EventPageOut(events=rows, next=rows[-1].seq if rows else after, end=len(rows) < limit)
