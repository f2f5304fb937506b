// Asking the service. The key goes into a header and nowhere else; this tab alone remembers it.

const PLACE = "accrual.key";
const PATIENCE = 10_000; // milliseconds

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the service answered ${status}`);
    this.status = status;
    this.kind = String(problem.type || "").split(":").pop();
  }
}

export const key = {
  get: () => sessionStorage.getItem(PLACE),
  set: (text) => sessionStorage.setItem(PLACE, text),
  forget: () => sessionStorage.removeItem(PLACE),
};

export async function ask(path) {
  const headers = { Accept: "application/json" };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  if (answer.ok) return answer.json();
  throw new Refused(answer.status, await answer.json().catch(() => ({})));
}

const of = (bandit, what) => `/v1/bandits/${encodeURIComponent(bandit)}/${what}`;

export const about = () => ask("/dashboard/about.json");
export const bandits = () => ask("/v1/bandits");
export const state = (bandit) => ask(of(bandit, "state"));
export const history = (bandit) => ask(of(bandit, "history"));
export const recent = async (bandit, limit) => (await ask(of(bandit, `decisions?limit=${limit}`))).decisions;
export const contextWorth = (bandit) => ask(of(bandit, "contexts"));
export const explain = (bandit, id) => ask(of(bandit, `decisions/${id}/explain`));
export const events = (bandit, after, limit) => ask(of(bandit, `export?after=${after}&limit=${limit}`));
export const truth = () => ask("/v1/demo");
