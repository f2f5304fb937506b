"""A bandit that changes from plain Python to machine code between two events goes on to the same bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import accrual as ac
from accrual.core.jit import bound_kernel
from accrual.live.warm import warm

GUARDED = {"floor": 0.1, "streams": {"refunds": ac.Guardrail(margin=0.01)}}
CONTEXTS = {"floor": 0.1, "features": {"country": ["de", "us"], "visits": (0, 50)}}


class Compilation:
    """Stands for a compilation in the background, which is done when the test says so."""

    done = False


def history(policy: str, options: dict[str, Any], before: Callable[[int], None]) -> list[str]:
    """Live through every kind of event; `before` is called before each. Return all that came of it."""
    bandit = ac.Bandit({"a": 1.0, "b": 2.0}, 6, policy=policy, seed=3, **options)
    told: list[Any] = []
    contexts = {"country": "us", "visits": 7} if "features" in options else None
    many = None if contexts is None else [contexts] * 3

    def piece(id: int, value: float, age: float, stream: str | None = None) -> Any:
        return bandit.observe(id, value, age=age, stream=stream).status

    events: list[Callable[[], Any]] = [
        lambda: bandit.decide(context=contexts),
        lambda: piece(0, 0.25, 0),
        lambda: bandit.decide(n=3, context=many),
        lambda: piece(1, 0.5, 0),
        lambda: piece(0, 0.125, 1),
        lambda: bandit.add_arm("c"),
        lambda: bandit.decide(n=3, context=many),
        lambda: bandit.close_decision(2),
        lambda: bandit.decide(context=contexts),
        lambda: piece(3, 0.5, 2),
        *([lambda: piece(4, 1.0, 0, stream="refunds")] if "streams" in options else []),
        lambda: bandit.decide(n=3, context=many),
        lambda: bandit.state().verdict,
        lambda: bandit.retire_arm("a"),
        lambda: bandit.decide(n=3, context=many),
        lambda: bandit.explain(12),
        lambda: piece(9, 0.5, 1),
        lambda: bandit.decide(n=3, context=many),
        bandit.state,
    ]
    for number, event in enumerate(events):
        before(number)
        told.append(repr(event()))
    arrays = bandit._follower.ledger.arrays()
    return [*told, *(f"{name} {array.tobytes().hex()}" for name, array in sorted(arrays.items()))]


@pytest.mark.parametrize(("policy", "options"), [("AgePrior", GUARDED), ("AgeLinTS", CONTEXTS)])
def test_it_may_change_over_at_any_event(policy, options, monkeypatch):
    seen: list[int] = []
    with monkeypatch.context() as compiled:
        compiled.setattr(bound_kernel.BoundKernel, "answer_at_once", lambda *_: None)
        wanted = history(policy, options, seen.append)
    monkeypatch.setattr(bound_kernel, "is_on_disk", lambda *_: False)
    for place in (*seen, len(seen)):
        compilation = Compilation()
        monkeypatch.setattr(bound_kernel, "_compilation", lambda *_, own=compilation: own)

        def change(number: int, at: int = place, own: Compilation = compilation) -> None:
            own.done = number >= at

        assert history(policy, options, change) == wanted, place


@pytest.mark.parametrize(("policy", "options"), [("AgePrior", GUARDED), ("AgeLinTS", CONTEXTS), ("IMED", {})])
def test_another_process_compiles_what_the_bandit_runs(policy, options, monkeypatch):
    ledger = ac.Bandit({"a": 1.0, "b": 2.0}, "2d", policy=policy, **options)._follower.ledger
    compiled: list[Any] = []
    monkeypatch.setattr(bound_kernel.BoundKernel, "compile", lambda own: compiled.append(what(own)))

    def what(bound: bound_kernel.BoundKernel) -> Any:
        return bound.kernel, bound_kernel.native_tuple(bound._state)._numba_type_

    recipe = ledger.kernel._recipe
    assert recipe is not None
    warm(*json.loads(recipe().text or ""))
    assert compiled[0] == what(ledger.kernel)
    if "features" in options:
        assert compiled[1] == what(ledger.context_encoder.kernel)
