// Requests to the service. The key goes into a header and nowhere else, and only this tab remembers it.

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

export async function request(path) {
  const headers = { Accept: "application/json" };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  if (answer.ok) return answer.json();
  throw new Refused(answer.status, await answer.json().catch(() => ({})));
}

const of = (bandit, what) => `/v1/bandits/${encodeURIComponent(bandit)}/${what}`;

export const about = () => request("/dashboard/about.json");
export const bandits = () => request("/v1/bandits");
export const state = (bandit) => request(of(bandit, "state"));
export const history = (bandit) => request(of(bandit, "history"));
export const recent = async (bandit, limit) => (await request(of(bandit, `decisions?limit=${limit}`))).decisions;
export const contextWorth = (bandit) => request(of(bandit, "contexts"));
export const explain = (bandit, id) => request(of(bandit, `decisions/${id}/explain`));
export const events = (bandit, after, limit) => request(of(bandit, `export?after=${after}&limit=${limit}`));
export const truth = () => request("/v1/demo");
