"""The CUDA engine: all policies and runs of a simulation at once, on one NVIDIA GPU.

Every policy in every run is a chain; chains whose policies share their functions are played by
one kernel. Rounds are played span by span, so that memory does not grow with the horizon, a launch
stays short, and Ctrl-C takes effect soon. Three things change no result: the spans, the passes into
which runs are divided where memory is short, and how chains are divided over blocks.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from accrual.core.arrays import Floats, Ints
from accrual.core.errors import InputError
from accrual.core.progress import Progress
from accrual.engine.cuda import feed as feeds
from accrual.engine.cuda import kernels, parts
from accrual.engine.cuda.compiler import cuda
from accrual.engine.fast_loop import PolicyPlan
from accrual.engine.law_kernels import LawArrays, PackedLaws
from accrual.engine.play import Task
from accrual.policies.base import check_indices, no_survey
from accrual.problems.problem import Problem

_WARP = 32
_WARPS_MOST = 4  # for a chain that has a block to itself
# A chain that learns from groups is played by a team of threads if they share all of its work except the
# choice. If one of them does more alone, such as a survey without steps, only up to this many chains.
_WIDE_MOST = 2048
# If a survey has steps, up to this many: beyond, one thread for each chain is quicker, as none is idle.
_TEAMS_MOST = 20_000
_TABLE_MOST = 2048  # in any case, teams only with at most this many arms
# The most arms for which threads share the groups of a round: each thread that adds up reads all groups.
_SIDE_BY_SIDE_MOST = 128
_TEAM_LEAST = 4  # threads that play a chain, at least, where a survey has steps
_THREADS = 320  # on each processor, up to which more of them for each chain pay
_BLOCKS = 1  # for each multiprocessor: only where there are more chains do several share a block
# Bytes of shared memory for a block: with more, too few blocks run at a time (with 22 KiB for chains, eleven
# policies took a third longer).
_TEAM_NEAR, _CHAIN_NEAR = 22 * 1024, 18 * 1024
_SPAN_LEAST, _SPAN_MOST = 128, 8192
_FEED = 2e9  # bytes of feed at which longer spans stop paying
_SHORT, _LONG = 0.15, 0.4  # seconds: a launch that takes less or more makes the next longer or shorter
_GRID, _BLOCK = 1056, 128  # blocks, and threads in a block, that draw or fill
_NAP = 2e-3  # seconds between two checks of whether a span is over; the next span runs meanwhile
_DRAW_NEAR = 48 * 1024  # bytes: drawing is done in shared memory if half a usual block fits in so much
_SAID = 200  # characters of a library's error message
_SHARE = 0.5  # of the GPU's free memory that one simulation takes at most

# Only one thread at a time may start the driver, find and allocate free memory, or launch a kernel for the
# first time (otherwise each thread would compile the same kernels).
_turn = threading.Lock()


def play(task: Task, progress: Progress) -> tuple[Floats, Ints]:
    """Play on the GPU; what is returned is described in `accrual.engine.play.play`."""
    problem, laws, plans, rounds, horizon, seed, runs, _ = task
    kinds = _alike(plans)
    with _turn:
        _ready()
    regret = np.zeros((len(plans), len(runs), len(rounds)))
    pulls = np.zeros((len(plans), len(runs), len(problem.caps)), np.int64)
    done = 0
    # To free memory is to wait for the whole GPU, so it is put off while simulations run side by side.
    with cuda.defer_cleanup():
        while done < len(runs):
            with _turn:
                left = runs[done:]
                sizes = _sizes(problem, laws, plans, rounds, len(left))
                source = GpuRunFeeds(problem, laws, sizes, (seed, left[: sizes.runs]))
                teams = [Team([plans[p] for p in kind], rounds, source) for kind in kinds]
            finish(source, teams, horizon, progress)
            rows = slice(done, done + len(source.runs))
            for kind, team in zip(kinds, teams, strict=True):
                regret[kind, rows], pulls[kind, rows] = team.results()
                for number in kind:
                    check_indices(plans[number].policy.label, pulls[number, rows])
            done += len(source.runs)
    return regret, pulls


@functools.cache
def _ready() -> None:
    """Raise an `InputError` that says what is missing, if no kernel can be compiled and run."""
    try:
        found = cuda.is_available()
        if found:
            feeds.clear_kernel()[1, 1](cuda.device_array(1))
    except Exception as error:  # many kinds: of the driver, the toolkit, and of libraries that are not found
        said = " ".join(str(error).split())[:_SAID]
        raise InputError(
            f"device 'cuda' cannot run here ({type(error).__name__}: {said}); it needs a driver and a CUDA "
            "toolkit that fit each other (pip install 'numba-cuda[cu13]'): or use 'cpu'"
        ) from error
    if not found:
        gpu = "an NVIDIA GPU and its driver; none was found"
        toolkit = "a CUDA toolkit; none was found: pip install 'numba-cuda[cu13]'"
        raise InputError(f"device 'cuda' needs {toolkit if cuda.cuda_error() is None else gpu}, or use 'cpu'")


class _Sizes(NamedTuple):
    """How much is played at a time, so that it fits the GPU."""

    span: int  # rounds of a launch at most
    runs: int  # at a time, at most
    changes: int  # columns of the feed, or 0 where no policy reads them
    paid: int


def _sizes(
    problem: Problem, laws: PackedLaws, plans: Sequence[PolicyPlan], rounds: Ints, runs: int
) -> _Sizes:
    """Decide how many runs to play at a time, and in which spans, so that they fit the GPU."""
    feedback = {plan.policy.feedback for plan in plans}
    changes = parts.AHEAD * (problem.groups // parts.AHEAD + 1) if "pieces" in feedback else 0
    paid = problem.groups + 1 if "groups" in feedback else 2
    a_round = 8 * laws.count * (changes + paid)
    a_chain = 8 * len(rounds) + 2 * (problem.window + 1) + 32 * len(problem.caps)
    stats = sum(field.nbytes for plan in plans for field in plan.policy.stats(plan.params))
    free = _SHARE * float(cuda.current_context().get_memory_info()[0])
    free -= 16.0 * _GRID * _BLOCK * (problem.groups + 1)
    most = min(_SPAN_MOST, rounds[-1])
    span = int(np.clip(_FEED / (a_round * runs) - problem.window, min(_SPAN_LEAST, most), most))
    a_run = a_round * (problem.window + span) + stats + len(plans) * a_chain
    if free < a_run:
        raise InputError("one run does not fit into half of the GPU's free memory; use device 'cpu'")
    return _Sizes(span, runs if free >= runs * a_run else int(free // a_run), changes, paid)


def _alike(plans: Sequence[PolicyPlan]) -> list[list[int]]:
    """Group the plans that one kernel can play together; return their places in the list."""
    found: dict[Any, list[int]] = {}
    for p, plan in enumerate(plans):
        stats = plan.policy.stats(plan.params)
        shapes = tuple((np.shape(field), np.asarray(field).dtype) for field in (*plan.params, *stats))
        kind = (plan.policy.functions, plan.policy.feedback, type(plan.params), type(stats))
        found.setdefault((*kind, shapes, len(plan.times.ages)), []).append(p)
    return list(found.values())


def _zeros_on_gpu(size: int, dtype: Any, stream: Any) -> Any:
    array = cuda.device_array(max(size, 1), dtype, stream=stream)
    feeds.clear_kernel()[_GRID, _BLOCK, stream](array)
    return array


def _to_gpu(array: Any, stream: Any) -> Any:
    """Copy `array` to the GPU, which takes no empty ones."""
    given = np.ascontiguousarray(array)
    return cuda.to_device(given if given.size else np.zeros(np.maximum(given.shape, 1), given.dtype), stream)


class GpuRunFeeds:
    """The feed of all runs, span after span."""

    def __init__(self, problem: Problem, laws: PackedLaws, sizes: _Sizes, key: tuple[int, range]) -> None:
        self.problem, self.sizes = problem, sizes
        self.seed, self.runs = key
        # One for each simulation: a GPU has 32 queues, and streams in one queue wait for each other.
        self.stream = cuda.stream()
        groups, rows, count = problem.groups, problem.window + sizes.span, laws.count
        self.one_law = count == 1
        kind, ends, params = laws.arrays
        joined = tuple(type(kind)(*(_to_gpu(each, self.stream) for each in kind)) for kind in params)
        self._laws = LawArrays(_to_gpu(kind, self.stream), _to_gpu(ends, self.stream), joined)
        each = (groups + groups % 2) * (1 if self.one_law else 2)  # what a thread draws at a time
        block = next((size for size in (_BLOCK, _BLOCK // 2) if 8 * each * size <= _DRAW_NEAR), 0)
        near = (_GRID * _BLOCK // block, block, self.stream, 8 * each * block) if block else None
        self._scratch = cuda.device_array(1 if near else each * _GRID * _BLOCK, stream=self.stream)
        self._draw = feeds.draw_kernel(laws.draw, near is not None)[near or (_GRID, _BLOCK, self.stream)]
        cells = rows * count * sizes.changes + 2 * parts.AHEAD
        self._changes = _zeros_on_gpu(cells * len(self.runs), np.float64, self.stream)
        self._paid = _zeros_on_gpu(rows * count * sizes.paid * len(self.runs), np.float64, self.stream)
        self._shape = (rows, count, sizes.changes, sizes.paid)
        self._log = cuda.device_array(sizes.span, stream=self.stream)
        # Only from pinned memory does a copy not wait for the work before it; two, for two spans.
        self._pinned = [cuda.pinned_array(sizes.span) for _ in range(2)]
        even = problem.division == "even"
        self._how = feeds.Sizes(groups, problem.window // groups, even, sizes.changes > 0)
        self._next = 1

    def read(self, length: int) -> tuple[parts.GpuFeed, parts.Span]:
        """Draw the next `length` rounds (at most `sizes.span`)."""
        start = self._next
        self._pinned.reverse()
        past = np.maximum(np.arange(start, start + length) - 1.0, 1.0)
        self._pinned[0][:length] = np.log(past)
        self._log.copy_to_device(self._pinned[0], self.stream)
        feed = parts.GpuFeed(self._changes, self._paid, self._log, *self._shape)
        span = parts.Span(start, length, self.seed, self.runs[0], len(self.runs), 0)
        self._draw(self._laws, self._scratch, feed, span, self._how)
        self._next += length
        return feed, span


class Team:
    """Policies that one kernel plays, in every run: their params, statistics and regret."""

    def __init__(self, plans: Sequence[PolicyPlan], rounds: Ints, source: GpuRunFeeds) -> None:
        self.stream = source.stream
        self.policies, self._runs = len(plans), len(source.runs)
        self.chains = self.policies * self._runs
        self._rounds = rounds
        self._params = self._stacked([plan.params for plan in plans])
        self._marks = _to_gpu(rounds, self.stream)
        self._regret = cuda.device_array((len(rounds), self.chains), stream=self.stream)
        policy, params, problem = plans[0].policy, plans[0].params, plans[0].problem
        arms = len(problem.caps)
        first = [plan.policy.stats(plan.params) for plan in plans]
        named = policy.functions.hooks.summed_fields if arms <= _SIDE_BY_SIDE_MOST else ()
        sums = tuple(type(first[0])._fields.index(name) for name in named)
        processors = getattr(cuda.get_current_device(), "MULTIPROCESSOR_COUNT", 1)  # none in the simulator
        steps = bool(policy.functions.hooks.survey_steps)
        width = _team_width(len(plans[0].times.ages) if sums else 1, self.chains / processors, steps)
        table = max(arms, (1 + max(len(sums), 2)) * width)
        most = _TEAMS_MOST if sums and steps else _WIDE_MOST
        pays = self.chains <= most or (sums and policy.functions.survey is no_survey)
        teams = policy.feedback == "groups" and bool(pays) and table <= _TABLE_MOST
        lanes = max(_WARP // width, 1)
        if not teams:
            lanes = min(max(int(self.chains / (_BLOCKS * processors)), 1), _WARP)
        blocks = -(-self.chains // lanes)
        rates, slots = arms * (policy.feedback == "pieces"), problem.window + 1
        arm = np.dtype(np.uint8 if arms <= 256 else np.uint16)
        most = _TEAM_NEAR if teams else _CHAIN_NEAR
        near = _near(first[0], (table * teams, rates, slots), lanes, arm, most)
        self.stats = self._started(first, (blocks, lanes))
        self._times = parts.GpuLearningTimes(*self._stacked([plan.times for plan in plans]))
        self._work = parts.Work(
            _zeros_on_gpu(blocks * slots * lanes, arm, self.stream),
            _zeros_on_gpu(blocks * 4 * rates * lanes, np.float64, self.stream),
            near.starts,
        )
        caps, gaps, law = (_to_gpu(array, self.stream) for array in (problem.caps, problem.gaps, problem.law))
        self._problem = parts.GpuProblem(caps, gaps, law, problem.window, problem.phi, problem.even)
        kind = parts.KernelSpec(
            policy.functions, policy.feedback, type(params), len(params), type(first[0]), near.fields,
            source.one_law, near.rate, near.arms, arm, sums,
        )  # fmt: skip
        self._kernel = (kernels.team_kernel if teams else kernels.chain_kernel)(kind)
        self._grid = (blocks, (width, lanes) if teams else lanes, self.stream, near.size)

    def advance(self, feed: parts.GpuFeed, span: parts.Span) -> None:
        """Play a span."""
        self._kernel[self._grid](
            self._params, tuple(self.stats), self._problem, self._times, self._work, feed,
            span._replace(chains=self.chains), self._checkpoints(span),
        )  # fmt: skip

    def _stacked(self, tuples: Sequence[Any]) -> tuple[Any, ...]:
        """Stack each field of all policies' tuples as one array, the policies first."""
        return tuple(_to_gpu(np.stack(fields), self.stream) for fields in zip(*tuples, strict=True))

    def _started(self, first: Sequence[Any], grid: tuple[int, int]) -> Any:
        """Return the first statistics of every chain, a tuple of arrays blocks x items x lanes."""
        return type(first[0])(*(self._filled(fields, grid) for fields in zip(*first, strict=True)))

    def _filled(self, fields: Sequence[Any], grid: tuple[int, int]) -> Any:
        first, (blocks, lanes) = np.stack(fields), grid
        out = cuda.device_array((blocks, *first.shape[1:], lanes), first.dtype, stream=self.stream)
        feeds.fill_kernel()[_GRID, _BLOCK, self.stream](
            _to_gpu(first.reshape(len(first), -1), self.stream),
            out.reshape(blocks, first[0].size, lanes), self._runs, self.chains,
        )  # fmt: skip
        return out

    def _checkpoints(self, span: parts.Span) -> parts.GpuCheckpoints:
        return parts.GpuCheckpoints(self._marks, self._regret, int(np.searchsorted(self._rounds, span.start)))

    def results(self) -> tuple[Floats, Ints]:
        """Return regret and decisions of each arm, policies x runs x checkpoints or arms."""
        shape = (self.policies, self._runs, -1)
        regret = self._regret.copy_to_host(stream=self.stream)
        return regret.T.reshape(shape), self.of_chains(self.stats.pulls).reshape(shape)

    def of_chains(self, array: Any) -> Any:
        """Copy a statistic to the host, the chains first."""
        host = array.copy_to_host(stream=self.stream)
        self.stream.synchronize()
        return np.moveaxis(host, -1, 1).reshape(-1, *host.shape[1:-1])[: self.chains]


def finish(source: Any, teams: Sequence[Any], horizon: int, progress: Progress) -> None:
    """Play to the horizon; while one span runs, the next one is queued."""
    under_way: list[tuple[int, Any]] = []
    start, length = 1, min(_SPAN_LEAST, source.sizes.span)
    chains = sum(team.chains for team in teams)
    ended = time.monotonic()
    while start <= horizon or under_way:
        if len(under_way) == 2 or start > horizon:
            played, event = under_way.pop(0)
            _wait(event)
            progress.advance(played * chains)
            took, ended = time.monotonic() - ended, time.monotonic()
            if took < _SHORT:
                length = min(2 * length, source.sizes.span)
            elif took > _LONG:
                length = max(length // 2, 1)
            continue
        length_now = min(length, horizon + 1 - start)
        with _turn if start == 1 else contextlib.nullcontext():
            feed, span = source.read(length_now)
            for team in teams:
                team.advance(feed, span)
        event = cuda.event()
        event.record(source.stream)
        under_way.append((length_now, event))
        start += length_now


def _wait(event: Any) -> None:
    """Wait for the event, but let other threads and Ctrl-C through."""
    query = getattr(event, "query", lambda: True)  # in the simulator everything is over at once
    while not query():
        time.sleep(_NAP)


def _team_width(groups: int, chains: float, steps: bool) -> int:
    """Return how many threads play a chain, given the chains on each processor.

    Usually there is a thread for each group that may finish in a round. Where a survey has steps, of many
    chains several share a warp. The number is a power of two, by which arms are shared out.
    """
    width = _WARP
    while width < min(groups, _WARP * _WARPS_MOST):
        width *= 2
    while steps and width > _TEAM_LEAST and chains * width > _THREADS:
        width //= 2
    return width


class _Near(NamedTuple):
    """What a block keeps in shared memory."""

    size: int  # bytes
    starts: parts.Starts
    fields: tuple[Any, ...]  # of each statistic: its dtype, or None where it stays away
    rate: bool
    arms: bool


def _near(stats: Any, sizes: tuple[int, int, int], lanes: int, arm: np.dtype[Any], most: int) -> _Near:
    """Place in shared memory the table, and in `most` bytes rates, the ring of arms, flat statistics."""
    table, arms, slots = sizes
    size = 8 * table * lanes

    def place(width: int, item: int) -> int | None:
        nonlocal size
        first = -(-size // item)
        if item * (first + lanes * width) > most:
            return None
        size = item * (first + lanes * width)
        return first

    rate, ring = place(4 * arms, 8), place(slots, arm.itemsize)
    # An odd number of things for each lane, so that lanes do not meet in one bank of the memory.
    widths = [field.size | 1 for field in stats]
    places = [
        place(width, field.itemsize) if field.ndim == 1 else None
        for field, width in zip(stats, widths, strict=True)
    ]
    fields = tuple(None if at is None else field.dtype for field, at in zip(stats, places, strict=True))
    starts = parts.Starts(table, rate or 0, ring or 0, tuple(at or 0 for at in places), tuple(widths))
    return _Near(size, starts, fields, rate is not None, ring is not None)
