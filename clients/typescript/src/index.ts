/** A typed client of accrual's decision service, for Node, edge functions and pages that the service itself serves. */

import { InputError, readProblem, ServiceError } from "./errors.js";
import type { BanditState, Decision, Decisions, Piece, PieceResult } from "./results.js";

export { InputError, PROBLEM_KINDS, ServiceError } from "./errors.js";
export type { ErrorKind } from "./errors.js";
export type * from "./results.js";

/** A context: a value for each feature, null if it is missing. */
export type Context = Readonly<Record<string, string | number | boolean | null>>;

const BATCH_MOST = 1000; // decisions or pieces in one request
const AGAIN = new Set([408, 429, 502, 503, 504]); // statuses after which a call is sent again
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
const PATIENCE = 30_000; // the most that a service may ask to wait; all in milliseconds

export interface ClientOptions {
  /** As `accrual keys create` printed it. Never put a key into a page: everyone who reads the page has the key. */
  readonly key?: string;
  /** Milliseconds to wait for an answer. The default is 10,000. */
  readonly timeout?: number;
  /** How often a call is sent at most, if there is no answer or the service asks to try again. The default is 5. */
  readonly attempts?: number;
}

export interface DecideOptions {
  /** A call that is sent again with the same key gets the same decision. By default a key is drawn. */
  readonly key?: string;
  /** The decision's context, for a bandit with features. */
  readonly context?: Context;
}

export interface DecideManyOptions {
  /** A call that is sent again with the same key gets the same decisions. By default a key is drawn. */
  readonly key?: string;
  /** A context for each decision, for a bandit with features. */
  readonly context?: readonly Context[];
}

/**
 * Call a decision service. A call that gets no answer is sent again with the same key, and counted once.
 *
 * @example
 * const client = new Client("http://127.0.0.1:8000", { key: "acc_..." });
 * const decision = await client.decide("plays");
 * await client.observe("plays", { decision: decision.id, value: 0.7, key: "play-991" });
 */
export class Client {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeout: number;
  readonly #attempts: number;

  constructor(url: string, options: ClientOptions = {}) {
    if (!/^https?:\/\//.test(url)) {
      throw new InputError(`url must be an address such as http://127.0.0.1:8000, not ${show(url)}`);
    }
    this.#url = url.replace(/\/+$/, "");
    this.#headers = options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` };
    this.#timeout = whole("timeout", options.timeout ?? 10_000, 1);
    this.#attempts = whole("attempts", options.attempts ?? 5, 1);
  }

  /** Make one decision. */
  async decide(bandit: string, options: DecideOptions = {}): Promise<Decision> {
    const [decision] = await this.#decide(bandit, 1, options);
    return decision as Decision;
  }

  /** Make up to 1,000 decisions at once. */
  async decideMany(bandit: string, n: number, options: DecideManyOptions = {}): Promise<Decision[]> {
    return this.#decide(bandit, whole("n", n, 1, BATCH_MOST), options);
  }

  /** Send a piece of a decision's reward. If the service cannot store it, a `ServiceError` is thrown. */
  async observe(bandit: string, piece: Piece): Promise<PieceResult> {
    return this.#send("POST", at(bandit, "pieces"), checked(piece));
  }

  /** Send up to 1,000 pieces in one request. Each has its own result, in the order of the pieces. */
  async observeMany(bandit: string, pieces: readonly Piece[]): Promise<PieceResult[]> {
    if (!Array.isArray(pieces) || pieces.length > BATCH_MOST) {
      throw new InputError(`pieces must be a list of up to ${BATCH_MOST} pieces`);
    }
    return pieces.length === 0 ? [] : this.#send("POST", at(bandit, "pieces"), pieces.map(checked));
  }

  /** Close a decision: pieces that still come are late. */
  async closeDecision(bandit: string, decision: number): Promise<void> {
    await this.#send("POST", at(bandit, `decisions/${whole("decision", decision, 0)}/close`), undefined);
  }

  /** Return what is known about every arm, and the verdict. */
  async state(bandit: string): Promise<BanditState> {
    return this.#send("GET", at(bandit, "state"), undefined);
  }

  async #decide(bandit: string, n: number, options: DecideOptions | DecideManyOptions): Promise<Decision[]> {
    const { key = newKey(), context } = options;
    const body = { n, key, context }; // JSON leaves out a context that is undefined
    const answer = await this.#send<Decisions>("POST", at(bandit, "decisions"), body);
    return [...answer.decisions];
  }

  async #send<T>(method: string, path: string, body: unknown): Promise<T> {
    const json = body === undefined ? undefined : JSON.stringify(body);
    for (let attempt = 1; ; attempt += 1) {
      let status: number, text: string, retryAfter: string | null;
      try {
        const answer = await fetch(this.#url + path, {
          method,
          headers: json === undefined ? this.#headers : { ...this.#headers, "Content-Type": "application/json" },
          ...(json === undefined ? {} : { body: json }),
          redirect: "manual", // a key must not reach another address
          signal: AbortSignal.timeout(this.#timeout),
        });
        status = answer.status;
        retryAfter = answer.headers.get("retry-after");
        text = await answer.text(); // the connection may break here too
      } catch (error) {
        if (attempt >= this.#attempts) {
          throw new ServiceError(0, "unreachable", `no answer: ${reason(error)}`, { cause: error });
        }
        await sleep(pause(attempt, null));
        continue;
      }
      if (status >= 200 && status < 300) {
        try {
          return JSON.parse(text) as T;
        } catch (error) {
          const detail = "the answer does not come from accrual's service; is the address right?";
          throw new ServiceError(status, "unreadable", detail, { cause: error });
        }
      }
      if (status < 400) { // in a page it is 0
        throw new ServiceError(status, "redirected", "the answer names another address, which is not followed");
      }
      if (!AGAIN.has(status) || attempt >= this.#attempts) {
        throw readProblem(status, text);
      }
      await sleep(pause(attempt, retryAfter));
    }
  }
}

/** Return the path of a bandit's route. */
function at(bandit: string, what: string): string {
  return `/v1/bandits/${encodeURIComponent(bandit)}/${what}`;
}

/**
 * Check a piece and copy it for JSON. A piece without key, age and time would count each time it is sent, so it gets
 * a key here.
 */
function checked(piece: Piece): Piece {
  const { age, at: time, key } = piece;
  const alone = age === undefined && time === undefined && key === undefined;
  return {
    ...piece, // JSON leaves out what is undefined
    decision: whole("decision", piece.decision, 0),
    value: finite("value", piece.value),
    ...(age === undefined ? {} : { age: typeof age === "string" ? age : finite("age", age) }),
    ...(time === undefined ? {} : { at: moment(time) }),
    ...(alone ? { key: newKey() } : {}),
  };
}

/** Check a time. JavaScript would write a date that is none as null. */
function moment(time: number | string | Date): number | string {
  if (time instanceof Date) {
    finite("at", time.getTime());
    return time.toISOString();
  }
  return typeof time === "string" ? time : finite("at", time);
}

/** Check that JSON can hold a number: JavaScript would write NaN and infinity as null. */
function finite(name: string, value: number): number {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new InputError(`${name} must be a finite number, not ${show(value)}`);
  }
  return value;
}

function whole(name: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    const limit = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InputError(`${name} must be a whole number ${limit}, not ${show(value)}`);
  }
  return value;
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** Draw a new key. It begins with the time, so that a database stores keys of one time together. */
function newKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(10));
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return Date.now().toString(16).padStart(12, "0") + hex;
}

/** Return the milliseconds to wait: what the service asked for, or a random time whose limit doubles each time. */
function pause(attempt: number, retryAfter: string | null): number {
  if (retryAfter !== null && /^\d+$/.test(retryAfter)) {
    return Math.min(Number(retryAfter) * 1000, PATIENCE);
  }
  return Math.random() * Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** attempt);
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Say what went wrong. `fetch` hides it in the cause of its error. */
function reason(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return inner instanceof Error ? inner.message || inner.name : String(inner);
}
