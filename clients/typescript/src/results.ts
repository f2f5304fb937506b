/** The requests and the answers of the service. Fields that a newer service adds are kept, without a type. */

/** A context, or the features of an arm: a value for each feature, null if it is missing. */
export type Context = Readonly<Record<string, string | number | boolean | null>>;

/** A decision. */
export interface Decision {
  readonly id: number;
  readonly arm: string;
  /** The round, or the time in seconds since 1970. */
  readonly at: number;
  /** The probability with which the arm was chosen; null without a floor. */
  readonly propensity: number | null;
}

/** A piece to send. */
export interface Piece {
  readonly decision: number;
  readonly value: number;
  /** Rounds, or seconds, since the decision. By default it is taken from the service's clock. */
  readonly age?: number;
  /** When it was paid, instead of `age`. */
  readonly at?: number;
  /** A piece that is sent again with the same key counts once. */
  readonly key?: string;
  /** The guardrail to which the piece belongs, such as refunds. The default is the reward. */
  readonly stream?: string;
}

/** What became of a piece. */
export interface PieceResult {
  /** `late` is stored and counted, but not learned from. `again` was stored before. The last five occur in a batch only. */
  readonly status: "stored" | "again" | "late" | "conflict" | "unknown" | "future" | "early" | "invalid";
  readonly age?: number;
  readonly late?: boolean;
  /** Present if the decision has now paid more in all than its arm's cap. */
  readonly warning?: string;
  /** Why the piece was not stored. */
  readonly detail?: string;
}

/** What is known about an arm. */
export interface ArmState {
  readonly name: string;
  readonly cap: number;
  readonly retired: boolean;
  readonly decisions: number;
  /** Decisions whose window has not closed. */
  readonly pending: number;
  /** Reward that arrived in time. */
  readonly observed: number;
  /** Reward still to come from pending decisions. */
  readonly expected: number | null;
  /** What one decision pays on average, up to the age `reached`. */
  readonly estimate: number | null;
  readonly interval: readonly [number, number] | null;
  /** The greatest age that a decision of the arm has reached. */
  readonly reached: number;
  /** Decisions that have paid more in all than the cap. */
  readonly above_cap: number;
  /** The arm's share of the last 1,000 decisions. */
  readonly share: number;
  /** How the arm's reward divides over the ages up to each of the state's `ages`. */
  readonly spread: readonly number[];
  /** The arm's features; null for a bandit without `arm_features`. */
  readonly about: Context | null;
}

/** What may be said of the arms in play, however often one looks. */
export interface Verdict {
  /** Whether an arm has won, none has won yet, or no verdict can be given. */
  readonly outcome: "winner" | "none_yet" | "cannot_tell";
  /** Whether there is a winner, and no arm in play was found to pay differently than before. */
  readonly may_stop: boolean;
  /** The arm shown to pay more than every other arm in play. */
  readonly winner: string | null;
  /** The chance that a false winner is ever named, in the whole life of the bandit. */
  readonly error: number;
  /** Arms that may still be the best. */
  readonly contenders: readonly string[];
  /** Arms for which another arm in play was shown to pay more. */
  readonly retirable: readonly string[];
  /** Arms that have changed places: shown to pay more than another arm over some decisions, and less over others. */
  readonly changed: readonly string[];
  /** About how much a decision would lose on average if the leader were chosen from now on. */
  readonly loss_if_stopped: number | null;
  /** A guess of how many more decisions must close: from, to. The second is null if it may never be enough. */
  readonly decisions_to_go: readonly [number, number | null] | null;
  /** The answer to "may I stop?" in words. */
  readonly sentence: string;
}

/** What is known about an arm on a guardrail. */
export interface GuardedArm {
  readonly name: string;
  /** Closed decisions that count. */
  readonly decisions: number;
  /** The mean total of the stream for a decision. */
  readonly mean: number | null;
  /** An estimate of how much more the arm has than the best other arm in play. */
  readonly excess: number | null;
  /** A lower bound of the excess, however often one looks. */
  readonly excess_least: number | null;
  /** Whether the excess was shown to be above the margin. */
  readonly worse: boolean;
  /** The first and the last decision of the range over which that was shown. */
  readonly span: readonly [number, number] | null;
  readonly retired: boolean;
}

/** What is known about the arms on a guardrail, a stream of pieces where less is better. */
export interface Guardrail {
  readonly name: string;
  readonly cap: number;
  readonly margin: number;
  /** What happens to a worse arm. */
  readonly action: "flag" | "retire";
  /** What is known, in words. */
  readonly sentence: string;
  readonly arms: readonly GuardedArm[];
}

/** An arm that no longer pays as it did. */
export interface ChangedArm {
  readonly name: string;
  /** The closed decision that raised the alarm. */
  readonly decision: number;
  /** The mean when the alarm was raised: of the arm's last 64 decisions, or of half of fewer. */
  readonly lately: number;
  /** The mean of the decisions before those. */
  readonly before: number;
}

/** Whether arms still pay as they did. */
export interface Alarm {
  /** The chance that a false alarm is ever raised, for all arms together. */
  readonly error: number;
  /** Why nothing can be said; empty if something can. */
  readonly reason: string;
  /** What is known, in words. */
  readonly sentence: string;
  readonly arms: readonly ChangedArm[];
}

/** What is known about a bandit at one position of its log. */
export interface BanditState {
  readonly name: string;
  readonly position: number;
  readonly at: number;
  readonly decisions: number;
  readonly pending: number;
  /** Pieces that came too late, since the first decision. */
  readonly late: number;
  /** Requests sent again and counted once. */
  readonly duplicates: number;
  /** Stored events that this state does not have yet. */
  readonly behind: number;
  readonly ages: readonly number[];
  readonly arms: readonly ArmState[];
  readonly verdict: Verdict;
  /** Empty for a bandit without guardrails. */
  readonly guardrails: readonly Guardrail[];
  readonly alarm: Alarm;
}
