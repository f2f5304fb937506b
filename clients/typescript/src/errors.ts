/** The client's errors: what cannot be sent, and what the service refuses. */

/** The words of the service's table of problems: the end of a problem document's `type`. */
export const PROBLEM_KINDS = [
  "malformed", "no-key", "bad-key", "scope", "cross-site", "not-found", "unknown-bandit", "unknown-decision",
  "unknown-arm", "method", "slow", "conflict", "not-served", "archived", "no-arms", "too-large", "media-type",
  "host", "invalid", "future", "early", "rate", "head", "internal", "busy", "store", "stopping",
] as const;

/**
 * A word of the service's table of problems; `unreachable` if there was no answer; `unreadable` if the answer did not
 * come from accrual's service; `redirected` if it named another address, which is not followed.
 */
export type ErrorKind =
  | (typeof PROBLEM_KINDS)[number]
  | "unreachable"
  | "unreadable"
  | "redirected"
  | (string & {}); // a newer service may know more words

/** The service refused, or could not be reached. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";

  /**
   * @param status - The HTTP status; 0 if there was no answer.
   * @param kind - What was wrong, in a word of the service's table of problems.
   * @param detail - What was wrong, in a sentence.
   */
  constructor(
    readonly status: number,
    readonly kind: ErrorKind,
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(status === 0 ? detail : `${detail} (${kind}, ${status})`, options);
  }
}

/** The caller gave something that cannot be sent; nothing was sent. */
export class InputError extends Error {
  override readonly name = "InputError";
}

/** Return the error that a problem document describes. */
export function readProblem(status: number, body: string): ServiceError {
  try {
    const problem = JSON.parse(body) as { type?: unknown; detail?: unknown } | null;
    if (typeof problem?.type === "string" && typeof problem.detail === "string") {
      return new ServiceError(status, problem.type.slice(problem.type.lastIndexOf(":") + 1), problem.detail);
    }
  } catch {
    // It is not JSON: a proxy's page, for example.
  }
  return new ServiceError(status, "unreadable", "the answer is not a problem document");
}
