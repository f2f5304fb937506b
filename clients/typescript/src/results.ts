/** What is sent to the service, and what it answers. Fields that a newer service adds are kept, without a type. */

/** What is known of whom a decision is for, or about an arm: a value for each feature, null where it is missing. */
export type Context = Readonly<Record<string, string | number | boolean | null>>;

/** A decision that was made. */
export interface Decision {
  readonly id: number;
  readonly arm: string;
  /** Its round, or its time in seconds since 1970. */
  readonly at: number;
  /** The probability with which the arm was chosen; null without a floor. */
  readonly propensity: number | null;
}

/** A piece of a decision's reward, to be sent. */
export interface Piece {
  readonly decision: number;
  readonly value: number;
  /** Rounds, or seconds, since the decision. Unless given, the service's own clock tells it. */
  readonly age?: number;
  /** When it was paid, in place of `age`. */
  readonly at?: number;
  /** Names the piece among those of its decision: sent again with the same key it counts once. */
  readonly key?: string;
  /** The guardrail that it is of, such as refunds; reward unless given. */
  readonly stream?: string;
}

/** What became of a piece. */
export interface PieceResult {
  /** `late` is stored and counted, but not learned from; `again` had been stored before. The last five occur in a batch only. */
  readonly status: "stored" | "again" | "late" | "conflict" | "unknown" | "future" | "early" | "invalid";
  readonly age?: number;
  readonly late?: boolean;
  /** There if the decision has paid more in all than its arm's cap. */
  readonly warning?: string;
  /** Why the piece was not stored. */
  readonly detail?: string;
}

/** What is known of an arm. */
export interface ArmState {
  readonly name: string;
  readonly cap: number;
  readonly retired: boolean;
  readonly decisions: number;
  /** Decisions that may still be paid for. */
  readonly pending: number;
  /** Reward that has arrived in time. */
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
  /** Of the last 1,000 decisions. */
  readonly share: number;
  /** How the arm's reward divides over the ages up to each of the state's `ages`. */
  readonly spread: readonly number[];
  /** What is known about the arm; null for a bandit without features of arms. */
  readonly about: Context | null;
}

/** What may be said of the arms in play, however often one looks. */
export interface Verdict {
  /** The arm that was shown to pay more than every other one in play. */
  readonly winner: string | null;
  /** The chance that a false winner is ever named, in the whole life of a bandit. */
  readonly error: number;
  /** Arms that may still be the best. */
  readonly contenders: readonly string[];
  /** Arms of which it was shown that another one pays more. */
  readonly retirable: readonly string[];
  /** Arms that have changed places: shown to pay more than another, and later less. */
  readonly changed: readonly string[];
  /** About what a decision would lose on average, were the arm ahead taken for good now. */
  readonly loss_if_stopped: number | null;
  /** A guess of how many decisions more must close, from and to; to is null where it may be never. */
  readonly decisions_to_go: readonly [number, number | null] | null;
  /** The answer to "may I stop?" in words. */
  readonly sentence: string;
}

/** How an arm does on a guardrail. */
export interface GuardedArm {
  readonly name: string;
  /** Closed decisions that count. */
  readonly decisions: number;
  /** Of the stream, for a decision. */
  readonly mean: number | null;
  /** Estimated: how much more than the best other arm in play. */
  readonly excess: number | null;
  /** The same at the least, however often one looks. */
  readonly excess_least: number | null;
  /** Whether it was shown to have more by more than the margin. */
  readonly worse: boolean;
  /** The decisions over which that was shown, from and to. */
  readonly span: readonly [number, number] | null;
  readonly retired: boolean;
}

/** What is known of the arms on a guardrail, a stream of pieces of which less is better. */
export interface Guardrail {
  readonly name: string;
  readonly cap: number;
  readonly margin: number;
  /** What becomes of an arm that is worse. */
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
  /** What a decision paid on average then: the last 64 of the arm, or half of fewer. */
  readonly lately: number;
  /** The mean of those before. */
  readonly before: number;
}

/** Whether arms still pay as they did. */
export interface Alarm {
  /** The chance of ever raising a false alarm, for all arms together. */
  readonly error: number;
  /** Why nothing can be said; empty where something can. */
  readonly reason: string;
  /** What is known, in words. */
  readonly sentence: string;
  readonly arms: readonly ChangedArm[];
}

/** What is known of a bandit, as of one position of its log. */
export interface BanditState {
  readonly name: string;
  readonly position: number;
  readonly at: number;
  readonly decisions: number;
  readonly pending: number;
  /** Pieces that came too late, ever. */
  readonly late: number;
  /** Requests sent again and counted once. */
  readonly duplicates: number;
  /** Events that are stored and not in this state yet. */
  readonly behind: number;
  readonly ages: readonly number[];
  readonly arms: readonly ArmState[];
  readonly verdict: Verdict;
  /** Empty for a bandit without guardrails. */
  readonly guardrails: readonly Guardrail[];
  readonly alarm: Alarm;
}
