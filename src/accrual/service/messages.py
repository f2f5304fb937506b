"""What the quieter routes take and give, as the description shows it."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from accrual.core.errors import only
from accrual.service.json_numbers import whole

BANDIT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NAME_MOST = 200
ARMS_MOST = 1_000


def _plain(text: str) -> str:
    """No control characters: they have no place in a name, and not every database takes them."""
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
        raise ValueError("a name must not have control characters")
    return text


def _no_newline(text: str) -> str:
    if text.endswith("\n"):  # which the pattern's $ lets pass
        raise ValueError("a bandit's name must not end in a newline")
    return text


BanditName = Annotated[
    str,
    Field(pattern=BANDIT, description="Letters, digits, dots, dashes; it is part of addresses."),
    AfterValidator(_no_newline),
]
ArmName = Annotated[
    str,
    Field(min_length=1, max_length=NAME_MOST, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="Any text."),
    AfterValidator(_plain),
]
Cap = Annotated[
    float,
    Field(
        ge=1e-12,
        le=1e12,
        description="The most that one decision of the arm can pay in all, in the unit of its pieces. It is "
        "1 unless given, which is right only where no decision pays more than 1. A decision that pays more "
        "is counted and answered with a warning, and makes the policy choose badly.",
    ),
]
Window = Annotated[
    Annotated[
        int,
        Field(ge=1, le=100_000, description="Rounds: the clock counts decisions."),
        BeforeValidator(whole),
    ]
    | Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhdwy]$", description="A time: 90s, 12h, 60d.")],
    Field(description="The age at which a decision's pieces end."),
]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_other_fields(cls, given: Any) -> Any:
        if isinstance(given, dict):
            only("field", map(str, given), cls.model_fields)
        return given


class ArmIn(_In):
    """An arm of a new bandit."""

    name: ArmName
    cap: Cap = 1.0


class BanditIn(_In):
    """A new bandit."""

    name: BanditName
    arms: Annotated[list[ArmIn], Field(min_length=1, max_length=ARMS_MOST)]
    window: Window
    groups: Annotated[
        int | None,
        Field(ge=1, le=10_000, description="Equal parts of the window; in rounds it must divide the window."),
        BeforeValidator(whole),
    ] = None
    policy: Annotated[
        str,
        Field(
            min_length=1, max_length=500, description="Such as AgeIMED or TPUCBFRG(alpha=50, spread=begin)."
        ),
    ] = "AgeIMED"
    seed: Annotated[
        int | None,
        Field(ge=0, le=2**31 - 1, description="For policies that draw; drawn, and kept, unless given."),
        BeforeValidator(whole),
    ] = None
    allow_negative: Annotated[bool, Field(description="Whether pieces may be negative: refunds.")] = False


class NewArmIn(_In):
    """An arm to be added."""

    name: ArmName
    cap: Cap = 1.0
    window: Annotated[
        Window | None, Field(description="Its own, if shorter than the bandit's, in the same unit.")
    ] = None


class CloseIn(_In):
    """What closing a decision takes: nothing. A body may be left out."""


class RetireIn(_In):
    """An arm to be retired."""

    name: ArmName


class Bandit(BaseModel):
    """A bandit, as it was made."""

    name: str
    rounds: Annotated[bool, Field(description="Whether its clock counts decisions, not seconds.")]
    window: Annotated[float, Field(description="In rounds, or in seconds.")]
    groups: int
    policy: str
    seed: int
    allow_negative: bool
    arms: Annotated[list[str], Field(description="Those it was made with.")]


class NotServed(BaseModel):
    """A bandit that is in the store and cannot be opened."""

    name: str
    why: str


class Bandits(BaseModel):
    """All bandits: those that are served, and those that cannot be."""

    bandits: list[Bandit]
    not_served: Annotated[
        list[NotServed], Field(description="Those that cannot be opened; it is tried again every 30 seconds.")
    ]


class Done(BaseModel):
    """What became of a request."""

    status: Literal["stored", "again"]


class ArmState(BaseModel):
    """An arm, by what has arrived."""

    name: str
    cap: float
    retired: bool
    decisions: int
    pending: Annotated[int, Field(description="Decisions that may still be paid for.")]
    observed: Annotated[float, Field(description="Reward that has arrived in time.")]
    expected: Annotated[
        float | None,
        Field(
            description="Reward still to come from pending decisions, at all ages up to the window. What it "
            "says of ages beyond `reached` is a guess: there an arm pays as other arms do, and at ages that "
            "none has reached evenly, or as the policy's prior says."
        ),
    ]
    estimate: Annotated[
        float | None, Field(description="Of what one decision pays on average, up to the age `reached`.")
    ]
    interval: Annotated[
        tuple[float, float] | None, Field(description="The estimate and 1.96 standard errors to both sides.")
    ]
    reached: Annotated[
        float, Field(description="The greatest age that a decision of the arm has reached, up to its window.")
    ]
    above_cap: Annotated[int, Field(description="Decisions that have paid more in all than the cap.")]
    share: Annotated[float, Field(description="Of the last 1,000 decisions.")]
    spread: Annotated[
        list[float], Field(description="How its pay divides over the ages up to each of `ages`.")
    ]


class State(BaseModel):
    """What is known, as of one position of the log; at most half a second old."""

    name: str
    position: int
    at: float
    decisions: int
    pending: int
    late: Annotated[int, Field(description="Pieces that came too late, ever.")]
    duplicates: Annotated[int, Field(description="Sent again and counted once, since this process started.")]
    behind: Annotated[int, Field(description="Events stored by others that are not in this state yet.")]
    ages: list[float]
    arms: list[ArmState]


class History(BaseModel):
    """Stretches of the log, in order: all of a short one, samples of a long one."""

    arms: list[str]
    at: Annotated[list[float], Field(description="The time, or round, of each stretch's last decision.")]
    decisions: Annotated[list[int], Field(description="How many there had been by then, in all.")]
    counts: Annotated[list[list[int]], Field(description="Of each stretch: decisions of each arm.")]


class DecisionRow(BaseModel):
    """A decision that was made."""

    id: int
    arm: str
    at: float


class Recent(BaseModel):
    """The last decisions, newest first."""

    decisions: list[DecisionRow]


class Reason(BaseModel):
    """How an arm looked."""

    arm: str
    index: Annotated[float | None, Field(description="The largest is chosen; null before all were tried.")]
    terms: Annotated[dict[str, float | None], Field(description="What the index is made of.")]
    estimate: Annotated[
        float | None,
        Field(description="As in the state, at that moment; null for other policies than Age ones."),
    ]


class Explanation(BaseModel):
    """Why a decision fell as it did."""

    id: int
    arm: str
    at: float
    first: Annotated[bool, Field(description="Chosen because nothing was known of it: it was its turn.")]
    exact: Annotated[bool, Field(description="Whether the state made anew gives the same choice.")]
    reasons: list[Reason]


class Event(BaseModel):
    """A row of the log."""

    seq: int
    kind: Literal["decision", "piece", "close", "add_arm", "retire_arm"]
    at: float
    decision: int | None = None
    arm: str | None = None
    value: float | None = None
    age: float | None = None
    window: float | None = None
    cap: float | None = None


class Events(BaseModel):
    """A stretch of the log."""

    events: list[Event]
    next: Annotated[int, Field(description="What to give as `after` for the stretch after this one.")]
    end: Annotated[bool, Field(description="Whether this is all there is.")]


class Truth(BaseModel):
    """What only whoever simulates the traffic can know."""

    bandit: str
    days_per_second: float
    unit: Annotated[str, Field(description="Of what the reward is.")]
    means: Annotated[dict[str, float], Field(description="The true mean total of one decision, by arm.")]
    at: list[float]
    decisions: list[int]
    regret: Annotated[list[float], Field(description="Lost so far against always the best arm.")]
    no_delay: Annotated[
        list[float], Field(description="The same of the same policy that sees every total at once.")
    ]
    evenly: Annotated[float, Field(description="The same of drawing arms evenly, to this moment.")]


class Health(BaseModel):
    """How the service is."""

    status: str


class Ready(Health):
    """What the service can do now."""

    not_served: Annotated[list[str], Field(description="The names of bandits that cannot be opened.")]


def finite(value: Any) -> float | None:
    """A number that JSON can say."""
    number = float(value)
    return number if number - number == 0.0 else None
