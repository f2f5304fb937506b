"""The quieter routes: bandits, arms, state, reasons, the log."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from accrual.core.errors import InputError
from accrual.live.bandit import Bandit as LiveBandit
from accrual.live.config import window_of
from accrual.service import messages
from accrual.service.admission import require_scope
from accrual.service.bandit_pool import BanditPool, ServedBandit
from accrual.service.messages import BANDIT, finite
from accrual.service.refusals import Refusal
from accrual.service.share_history import share_history
from accrual.store.base import AddArm, Answer, BanditRow, Close, Events, Item, Kind, RetireArm, Status

_ID_MOST = 2**53
_KINDS = {kind.value: kind.name.lower() for kind in Kind}

Id = Annotated[int, Path(ge=0, le=_ID_MOST, description="A decision's id.")]


def _scope(scope: str) -> Any:
    async def check(request: Request) -> None:
        require_scope(request.scope["accrual.key"], scope)

    return Depends(check)


def router(bandits: BanditPool) -> APIRouter:
    """The routes, for these bandits."""
    routes = APIRouter(prefix="/v1")

    async def found(
        bandit: Annotated[str, Path(pattern=BANDIT, description="A bandit's name.")],
    ) -> ServedBandit:
        return await bandits.find(bandit)

    Found = Annotated[ServedBandit, Depends(found)]

    @routes.post(
        "/bandits", status_code=201, dependencies=[_scope("admin")], operation_id="createBandit",
        responses={200: {"model": messages.Bandit, "description": "It was there, just so."}},
    )  # fmt: skip
    async def create(given: messages.BanditIn, response: Response) -> messages.Bandit:
        """Make a bandit. The same again is no error; another one under a name that is taken is."""
        arms = {arm.name: arm.cap for arm in given.arms}
        if len(arms) < len(given.arms):
            raise Refusal("invalid", "arms must have different names")
        settings = given.model_dump(include={"groups", "policy", "seed", "allow_negative"}, exclude_none=True)
        served, new = await bandits.create(given.name, arms, given.window, settings)
        response.status_code = 201 if new else 200
        return _shown(served.row)

    @routes.get("/bandits", dependencies=[_scope("read")], operation_id="listBandits")
    async def listed() -> messages.Bandits:
        """All bandits, in the order in which they were made, and apart those that cannot be served."""
        rows = [row for row in await bandits.rows() if row.name not in bandits.failures]
        failed = [messages.NotServed(name=name, why=why) for name, why in sorted(bandits.failures.items())]
        return messages.Bandits(bandits=[_shown(row) for row in rows], not_served=failed)

    @routes.get("/bandits/{bandit}", dependencies=[_scope("read")], operation_id="getBandit")
    async def one(served: Found) -> messages.Bandit:
        """A bandit, as it was made."""
        return _shown(served.row)

    @routes.get("/bandits/{bandit}/state", dependencies=[_scope("read")], operation_id="getState")
    async def state(served: Found) -> messages.State:
        """What is known of every arm."""
        return await bandits.read(lambda: _state(served))

    @routes.get("/bandits/{bandit}/history", dependencies=[_scope("read")], operation_id="getHistory")
    async def past(served: Found) -> messages.History:
        """How often each arm was chosen, from the first decision on: up to 40 stretches of the log."""
        return await bandits.read(lambda: share_history(served, served.state().position))

    @routes.post("/bandits/{bandit}/arms", dependencies=[_scope("admin")], operation_id="addArm")
    async def add_arm(served: Found, given: messages.NewArmIn) -> messages.Done:
        """Add an arm, which takes its turn with the others. The same again is no error."""
        window = _window(served, given.window)
        answer = await _one(served, AddArm(given.name, given.cap, window))
        if answer.status is Status.CONFLICT:
            raise Refusal("conflict", "there has been an arm of this name, with another cap or window")
        await bandits.read(served.learn_arms)
        return _done(answer)

    @routes.post("/bandits/{bandit}/arms/retire", dependencies=[_scope("admin")], operation_id="retireArm")
    async def retire_arm(served: Found, given: messages.RetireIn) -> messages.Done:
        """Never choose an arm again. Its pending decisions still teach."""
        arm = await bandits.read(lambda: served.arm_number(given.name))
        return _done(await _one(served, RetireArm(arm)))

    @routes.get("/bandits/{bandit}/decisions", dependencies=[_scope("read")], operation_id="listDecisions")
    async def recent(served: Found, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> messages.Recent:
        """The last decisions, newest first."""
        return await bandits.read(lambda: _recent(served, limit))

    @routes.get(
        "/bandits/{bandit}/decisions/{id}/explain",
        dependencies=[_scope("read")],
        operation_id="explainDecision",
    )
    async def explain(served: Found, id: Id) -> messages.Explanation:
        """Why a decision fell as it did: every arm's index, and what it is made of, at that moment."""
        return await bandits.refold(lambda: _explained(served.bandit, id))

    @routes.post(
        "/bandits/{bandit}/decisions/{id}/close", dependencies=[_scope("write")], operation_id="closeDecision"
    )
    async def close(served: Found, id: Id, given: messages.CloseIn | None = None) -> messages.Done:
        """Refuse further pieces of a decision: nothing more will come. What it has paid counts as before."""
        answer = await _one(served, Close(id))
        if answer.status is Status.UNKNOWN:
            raise Refusal("unknown-decision", f"no decision has the id {id}")
        return _done(answer)

    @routes.get("/bandits/{bandit}/export", dependencies=[_scope("read")], operation_id="exportEvents")
    async def export(
        served: Found,
        after: Annotated[int, Query(ge=0, le=_ID_MOST, description="A position of the log.")] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
    ) -> messages.Events:
        """The log beyond a position, in order. `accrual db export` writes all of it as Parquet."""
        return await bandits.read(lambda: _events(served, served.events(after, limit), after, limit))

    return routes


async def _one(served: ServedBandit, item: Item) -> Answer:
    (answer,) = await served.queue.submit((item,))
    return answer


def _done(answer: Answer) -> messages.Done:
    return messages.Done(status="stored" if answer.status is Status.STORED else "again")


def _window(served: ServedBandit, given: int | str | None) -> float:
    if given is None:
        return float(served.config["window"])
    rounds, length = window_of(given)
    if rounds != served.config["rounds"]:
        unit = "rounds" if served.config["rounds"] else "time, such as 12h"
        raise Refusal("invalid", f"this bandit's windows count {unit}")
    return length


def _shown(row: BanditRow) -> messages.Bandit:
    names = [arm[0] for arm in row.config["arms"]]
    kept = {key: value for key, value in row.config.items() if key in messages.Bandit.model_fields}
    return messages.Bandit(**kept | {"name": row.name, "arms": names})


def _state(served: ServedBandit) -> messages.State:
    state = served.state()
    arms = [messages.ArmState(**arm._asdict()) for arm in state.arms]
    counts = {"duplicates": served.queue.duplicates, "behind": served.bandit.behind}
    return messages.State(**state._asdict() | {"arms": arms} | counts)


def _recent(served: ServedBandit, limit: int) -> messages.Recent:
    last = served.decisions()
    rows = [served.decision(id) for id in range(last - 1, max(last - 1 - limit, -1), -1)]
    if not served.knows([row.arm for row in rows if row]):
        served.learn_arms()
    return messages.Recent(
        decisions=[
            messages.DecisionRow(id=row.id, arm=served.arm_name(row.arm), at=row.at) for row in rows if row
        ]
    )


def _explained(bandit: LiveBandit, id: int) -> messages.Explanation:
    try:
        found = bandit.explain(id)
    except InputError as error:
        raise Refusal("unknown-decision", str(error)) from None
    reasons = [
        messages.Reason(
            arm=reason.arm,
            index=None if reason.value is None else finite(reason.value),
            terms={name: finite(value) for name, value in reason.terms.items()},
            estimate=reason.estimate,
        )
        for reason in found.reasons
    ]
    return messages.Explanation(**found._asdict() | {"reasons": reasons})


def _events(served: ServedBandit, events: Events, after: int, limit: int) -> messages.Events:
    served.learn_arms()
    rows = []
    for seq, kind, at, decision, arm, value, age in zip(*(column.tolist() for column in events), strict=True):
        row: dict[str, Any] = {"seq": seq, "kind": _KINDS[kind], "at": at}
        if decision >= 0:
            row["decision"] = decision
        if arm >= 0:
            row["arm"] = served.arm_name(arm)
        if kind == Kind.PIECE:
            row |= {"value": value, "age": age}
        elif kind == Kind.DECISION:
            row["window"] = age
        elif kind == Kind.ADD_ARM:
            row |= {"cap": value, "window": age}
        rows.append(messages.Event(**row))
    return messages.Events(events=rows, next=rows[-1].seq if rows else after, end=len(rows) < limit)
