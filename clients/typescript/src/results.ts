/** What is sent to a service, and its answers. Fields that a newer service adds have no type. */
// `make clients` writes this file.

/** Whether arms still pay as they did, however often one looks. */
export interface AlarmState {
  /** The chance that a false alarm is ever raised, for all arms together. */
  readonly error: number;
  /** How many closed decisions were checked. */
  readonly closed: number;
  /** Why nothing can be said; empty if something can be said, now or later. */
  readonly reason: string;
  /** What is known, in words. */
  readonly sentence: string;
  /** The arms that no longer pay as they did. */
  readonly arms: readonly ChangedArm[];
}

/**
 * What is known about an arm from the pieces that have arrived. The estimate is a sum over ages: at each age, the
 * average pay of the decisions that have reached that age. Once a window has closed, it is the average total; if all
 * have closed, the plain mean of the totals. It is never cut off at the cap. The interval is cut off there, unless a
 * decision has paid more than the cap.
 */
export interface ArmState {
  readonly name: string;
  readonly cap: number;
  readonly retired: boolean;
  readonly decisions: number;
  /** Decisions whose window has not closed. */
  readonly pending: number;
  /** Reward that arrived in time. */
  readonly observed: number;
  /**
   * Reward still to come from pending decisions, at all ages up to the window. For ages beyond `reached` it is a guess:
   * the arm is assumed to pay as other arms do. At ages that no arm has reached, it is assumed to pay evenly, or as the
   * policy's prior says.
   */
  readonly expected: number | null;
  /** An estimate of what one decision pays on average, up to the age `reached`; null while nothing is known. */
  readonly estimate: number | null;
  /**
   * An interval for the estimate. It aims at 95 % and is a heuristic (docs/verdicts.md says what it covered in tests).
   * It holds for one look at one arm. Do not stop a test because of it.
   */
  readonly interval: readonly [number, number] | null;
  /** The greatest age that a decision of the arm has reached, up to its window. */
  readonly reached: number;
  /** Decisions that have paid more in all than the cap. */
  readonly above_cap: number;
  /** The arm's share of the last 1,000 decisions. */
  readonly share: number;
  /** The shares of the arm's reward at the ages up to each of the state's `ages`. */
  readonly spread: readonly number[];
  /** The arm's features; null for a bandit without arm_features. */
  readonly about: Readonly<Record<string, string | boolean | number | null>> | null;
}

/** How a bandit was made, and the arms that it has now. */
export interface BanditInfo {
  readonly name: string;
  /** Whether its clock counts decisions rather than seconds. */
  readonly rounds: boolean;
  /** In rounds or in seconds. */
  readonly window: number;
  readonly groups: number;
  readonly policy: string;
  readonly seed: number;
  readonly allow_negative: boolean;
  /** The arms that are in play now. */
  readonly arms: readonly string[];
  /** The arms that have retired. */
  readonly retired: readonly string[];
  /** What one unit of reward is; empty for none. */
  readonly unit?: string;
  /** The share of decisions whose arm is drawn at random. */
  readonly floor?: number;
  readonly features?: Readonly<Record<string, "bool" | readonly (string | number)[]>> | null;
  readonly arm_features?: Readonly<Record<string, "bool" | readonly (string | number)[]>> | null;
  /** Streams of pieces beside the reward, by name. The policy does not learn from them. */
  readonly streams?: Readonly<Record<string, Guardrail>>;
  /** How many decisions come from an old log. Their ids are below this number. */
  readonly imported?: number;
  /** When the bandit was archived, in seconds since 1970; null if it is not archived. */
  readonly archived?: number | null;
  /** When the bandit will be erased, in seconds since 1970; null if never. */
  readonly erase_at?: number | null;
}

/** What is known about a bandit at one position of its log. What a watcher says is under its name. */
export interface BanditState {
  readonly name: string;
  readonly position: number;
  /** The time of the last event: a round, or seconds since 1970. */
  readonly at: number;
  readonly decisions: number;
  /** Decisions whose window has not closed. */
  readonly pending: number;
  /** Pieces that came too late, since the first decision. */
  readonly late: number;
  /** The ages at which the parts of a `spread` end. */
  readonly ages: readonly number[];
  readonly arms: readonly ArmState[];
  /** Empty for a bandit without features. */
  readonly features: readonly FeatureState[];
  readonly verdict: Verdict;
  /** Whether arms still pay as they did. */
  readonly alarm: AlarmState;
  /** Empty for a bandit without guardrails. */
  readonly guardrails: readonly GuardrailState[];
  /** Requests sent again and counted once, since this process opened the bandit. */
  readonly duplicates: number;
  /** Events that other processes stored and that this state does not have yet. */
  readonly behind: number;
}

/** All bandits: served, archived, and those that cannot be served. */
export interface Bandits {
  readonly bandits: readonly BanditInfo[];
  /** Bandits that are archived or deleted. */
  readonly archived: readonly BanditInfo[];
  /** Bandits that cannot be opened. The service tries again every 30 seconds. */
  readonly not_served: readonly NotServed[];
}

/** An arm that no longer pays as it did. */
export interface ChangedArm {
  readonly name: string;
  /** The closed decision that raised the alarm. */
  readonly decision: number;
  /**
   * The mean that a decision paid when the alarm was raised: of the arm's last 64 decisions, or of half of them if
   * there were fewer.
   */
  readonly lately: number;
  /** The mean of the decisions before those. */
  readonly before: number;
}

/**
 * What contexts are worth to a bandit. The estimate uses closed decisions and their propensities. A linear model is
 * fitted to earlier decisions and chooses for later ones: once for each by its context, and once the same arm for all.
 * Intervals are 95 %, for one look: they are not for stopping.
 */
export interface ContextWorth {
  /** How much more a decision pays if its arm is chosen by context; null if it cannot be told. */
  readonly more: Interval | null;
  /** What a decision pays if its arm is chosen by context. */
  readonly with_contexts: Interval | null;
  /** What a decision pays if every decision gets the one arm that pays best. */
  readonly without: Interval | null;
  /** The one arm that pays best; several arms if that changed in the course of the decisions. */
  readonly single: string;
  /** The contexts for which another arm pays more; their intervals hold together with 95 %. */
  readonly winners: readonly Winner[];
  /** How many closed decisions are used: the last ones, of which the first fifth only trains the model. */
  readonly decisions: number;
  /** How many decisions have closed in all. */
  readonly closed: number;
  /** How many decisions of equal weight would give figures as certain as these. */
  readonly effective: number;
  /** Why nothing can be told; empty if it can. */
  readonly reason: string;
  /** The result in words. */
  readonly sentence: string;
}

/** A decision. */
export interface Decision {
  readonly id: number;
  readonly arm: string;
  /** The round, or the time in seconds since 1970. */
  readonly at: number;
  /** The probability with which the arm was chosen; null without a floor. */
  readonly propensity: number | null;
}

/** Decisions, in order. */
export interface Decisions {
  readonly decisions: readonly Decision[];
  /** Whether the key was used before. Then these are the decisions made at that time. */
  readonly again: boolean;
}

/** What became of a request: `again` if the same request was stored before. */
export interface Done {
  readonly status: "again" | "stored";
}

/** An event of the log. */
export interface Event {
  readonly seq: number;
  readonly kind: "add_arm" | "close" | "decision" | "piece" | "retire_arm";
  readonly at: number;
  readonly decision?: number;
  readonly arm?: string;
  readonly value?: number;
  readonly age?: number;
  /** The stream of a piece, if it is not the reward. */
  readonly stream?: string;
  readonly window?: number;
  readonly propensity?: number;
  readonly cap?: number;
  /** The features of an added arm. */
  readonly about?: Readonly<Record<string, string | boolean | number | null>>;
  /** A decision's context, if the bandit has features. */
  readonly context?: Readonly<Record<string, string | boolean | number | null>>;
  /** True for a decision or piece of an old log. */
  readonly imported?: boolean;
}

/** A part of the log, in order. */
export interface EventPage {
  readonly events: readonly Event[];
  /** The `after` of the request for the next part. */
  readonly next: number;
  /** Whether this part is the last. */
  readonly end: boolean;
}

/** Why a decision chose its arm. */
export interface Explanation {
  readonly id: number;
  readonly arm: string;
  /** The round, or the time in seconds since 1970. */
  readonly at: number;
  /** The probability with which the arm was chosen; null without a floor. */
  readonly propensity: number | null;
  /** Whether the arm was chosen because nothing was known about it yet. */
  readonly first: boolean;
  /** Whether the arm was drawn at random, because of the floor, in place of the policy's own choice. */
  readonly drawn: boolean;
  readonly reasons: readonly Reason[];
  /** Whether the state, computed again from the log, gives the same choice. */
  readonly exact: boolean;
  /** The decision's context; empty for a bandit without features. */
  readonly context: Readonly<Record<string, string | boolean | number | null>>;
}

/** What is known about a feature. */
export interface FeatureState {
  readonly name: string;
  /** Decisions with a level that was not declared. */
  readonly unknown: number;
  /** Decisions without a value. */
  readonly missing: number;
  /** Decisions with a number out of range, which counts as the nearest end. */
  readonly beyond: number;
  /** Empty while nothing is known, and for every policy but AgeLinTS. */
  readonly levels: readonly LevelState[];
}

/** What is known about an arm on a guardrail. */
export interface GuardedArm {
  readonly name: string;
  /** Closed decisions that count. */
  readonly decisions: number;
  /** The mean total of the stream for a decision, once one has closed. */
  readonly mean: number | null;
  /** An estimate of how much more the arm has than the best other arm, if the arm is in play. */
  readonly excess: number | null;
  /** A lower bound of the excess. It holds for all arms together, however often one looks. */
  readonly excess_least: number | null;
  /** Whether its excess was shown to be above the margin. */
  readonly worse: boolean;
  /** The first and the last decision of the range over which that was shown. */
  readonly span: readonly [number, number] | null;
  readonly retired: boolean;
}

/** A stream of pieces where less is better, such as refunds. It needs a floor. */
export interface Guardrail {
  readonly kind: "guardrail";
  /** The greatest total of the stream for one decision. */
  readonly cap?: number;
  /** How much more per decision an arm may have than another arm; below the cap. */
  readonly margin?: number;
  /** What happens to a worse arm. It is shown and logged; `retire` also retires it. */
  readonly action?: "flag" | "retire";
}

/** What is known about the arms on a guardrail, a stream of pieces where less is better. */
export interface GuardrailState {
  /** Whether an arm was found worse, none was so far, or nothing can be said. */
  readonly outcome: "cannot_tell" | "none_worse" | "worse_arms";
  readonly name: string;
  readonly cap: number;
  readonly margin: number;
  /** What happens to a worse arm. It is shown and logged; `retire` also retires it. */
  readonly action: "flag" | "retire";
  /** The chance that an arm is ever called worse although it is not. */
  readonly error: number;
  /** Closed decisions that count. */
  readonly scored: number;
  /** Totals of the stream above its cap, which count as the cap. */
  readonly cut: number;
  /** Why nothing can be said; empty if something can be said, now or later. */
  readonly reason: string;
  /** What is known, in words. */
  readonly sentence: string;
  readonly arms: readonly GuardedArm[];
}

/** How often each arm was chosen in each of several parts of the log, in order. */
export interface History {
  readonly arms: readonly string[];
  /** The time, or round, of the last decision of each part. */
  readonly at: readonly number[];
  /** How many decisions there were in all by the end of each part. */
  readonly decisions: readonly number[];
  /** For each part, the decisions of each arm. */
  readonly counts: readonly (readonly number[])[];
}

/** An estimate with its 95 % interval; the ends are NaN if they are not known. */
export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** What the policy expects of the arms in play at one level of a feature. */
export interface LevelState {
  /** For a number, one of the two ends of its range. */
  readonly level: string;
  /** By arm, an estimate of what a decision pays in all, if the other features are as they are on average. */
  readonly expected: Readonly<Record<string, number>>;
}

/** A bandit that is in the store and cannot be opened. */
export interface NotServed {
  readonly name: string;
  readonly why: string;
}

/** How much more one arm pays for a decision than another, on average. */
export interface Pair {
  readonly first: string;
  readonly second: string;
  /** First minus second, estimated from closed decisions. */
  readonly difference: number;
  /** An interval for the difference. It holds for all pairs and at all times together, however often one looks. */
  readonly interval: readonly [number, number];
  /** Earlier intervals: after how many closed decisions, from, to. */
  readonly sequence: readonly (readonly [number, number, number])[];
  /**
   * The first and the last decision of the range over which the first arm was shown to pay more on average, if it was.
   */
  readonly ahead: readonly [number, number] | null;
  /**
   * The first and the last decision of the range over which the second arm was shown to pay more on average, if it was.
   */
  readonly behind: readonly [number, number] | null;
}

/** A piece of a decision's reward, or of another stream. */
export interface Piece {
  /** The decision's id. */
  readonly decision: number;
  readonly value: number;
  /** Rounds, or seconds, since the decision; or a length of time, such as 1h. */
  readonly age?: number | string;
  /**
   * When it was paid, instead of `age`: a round, seconds since 1970, or a time with its zone, such as
   * 2026-11-18T12:30:00Z.
   */
  readonly at?: number | string | Date;
  readonly key?: string;
  /** The stream to which the piece belongs. The default is the reward. */
  readonly stream?: string;
}

/** What became of a piece. */
export interface PieceResult {
  readonly status: "again" | "conflict" | "early" | "future" | "invalid" | "late" | "stored" | "unknown";
  /** The age as stored. */
  readonly age?: number;
  /** Whether the piece is stored and counted but not learned from. */
  readonly late?: boolean;
  /** Present if the decision has now paid more in all than its arm's cap. */
  readonly warning?: string;
  /** Why the piece was not stored. */
  readonly detail?: string;
}

/** What the policy knew of an arm in play when it made a decision. */
export interface Reason {
  readonly arm: string;
  /** The policy chooses the arm with the largest index. Null if nothing was known about the arm. */
  readonly index: number | null;
  /** What the index is made of, as the policy names it. */
  readonly terms: Readonly<Record<string, number>>;
  /** As in the state, at that moment; null while nothing was known, and unless the policy's name begins with Age. */
  readonly estimate: number | null;
}

/** The last decisions, newest first. */
export interface Recent {
  readonly decisions: readonly Decision[];
}

/**
 * What may be said about the arms in play, however often one looks. "Pays more" is meant on average over a range of
 * decisions, which the sentence and `pairs` name. All that `winner` and `retirable` ever say in the life of a bandit is
 * true with a chance of at least 1 - `error`, for any policy, under any drift, and however often one looks: see
 * docs/verdicts.md for the proof.
 */
export interface Verdict {
  /**
   * `winner`: an arm has won. `none_yet`: no arm has won so far. `cannot_tell`: no verdict can be given, for the reason
   * in `reason`.
   */
  readonly outcome: "cannot_tell" | "none_yet" | "winner";
  /** Whether there is a winner, and no arm in play was found to pay differently than before. */
  readonly may_stop: boolean;
  /**
   * The arm that was shown to pay more than every other arm in play, if none of these was ever shown to pay more than
   * it.
   */
  readonly winner: string | null;
  /** The chance that a false winner is ever named, in the whole life of the bandit. */
  readonly error: number;
  /** The arms in play that may still be the best. */
  readonly contenders: readonly string[];
  /** The arms in play for which another arm was shown to pay more, and never the reverse. */
  readonly retirable: readonly string[];
  /**
   * Arms in play that have changed places: each was shown to pay more than another arm over one range of decisions, and
   * less than the same arm over another range.
   */
  readonly changed: readonly string[];
  /**
   * About how much a decision loses on average if all get the leader from now on: a normal approximation, the largest
   * over the other arms, and never more than the best-paid arm has paid on average. Null before there is a leader.
   */
  readonly loss_if_stopped: number | null;
  /**
   * About how many more decisions must close: from, to. It is a guess, which assumes that arms go on paying as they
   * have. The second number is null if there may never be a winner. Null if there is a winner, or if nothing can be
   * told.
   */
  readonly decisions_to_go: readonly [number, number | null] | null;
  /** `decisions_to_go` in rounds or seconds at the present pace. */
  readonly time_to_go: readonly [number, number | null] | null;
  /** Why nothing can be said; empty if something can be said, now or later. */
  readonly reason: string;
  /** The answer to "may I stop?" in words. */
  readonly sentence: string;
  /** The arm with the largest estimate. Do not stop because of it. */
  readonly leader: string | null;
  /** The first decision that counts: 0, or the first one after the newest arm was added. */
  readonly began: number;
  /** Closed decisions that count. */
  readonly scored: number;
  /**
   * Closed decisions that do not count, because no propensity was recorded or because their worker did not know the
   * newest arm yet.
   */
  readonly skipped: number;
  /** Totals above the cap, which count as the cap here. */
  readonly cut: number;
  /** For each arm, bounds of what a decision pays on average, which hold at all times with a chance of 1 - `error`. */
  readonly intervals: Readonly<Record<string, readonly [number, number]>>;
  /** The leader compared with every other arm in play. */
  readonly pairs: readonly Pair[];
  /** Arms that are not chosen as often as their propensities say, or whose pay has stopped. */
  readonly warnings: readonly string[];
}

/** A part of the decisions for which another arm pays more than the arm that is best for all. */
export interface Winner {
  /** The part, by a feature, such as ``"country=us"``. */
  readonly part: string;
  readonly decisions: number;
  /** The arm that pays more there. */
  readonly arm: string;
  /** The arm that pays best for all. */
  readonly than: string;
  /** How much more it pays per decision. All such intervals hold together with 95 %. */
  readonly more: Interval;
}
