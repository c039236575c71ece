// Uses the types that openapi-typescript generates: asks a server for a lease and releases it.
import type { components, paths } from "./types_generated.js";

declare const process: { argv: string[] };

type Lease = components["schemas"]["Lease"];
type Wanted = paths["/v1/leases"]["post"]["requestBody"]["content"]["application/json"];
type Problem = components["schemas"]["Problem"];

const [url, token] = process.argv.slice(2) as [string, string];

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = { "X-Auth-Token": token, "Content-Type": "application/json" };
  const answer = await fetch(url + path, { method, headers, body: body ? JSON.stringify(body) : null });
  return (await answer.json()) as T;
}

const pool: components["schemas"]["PoolWanted"] = { limit: 1, on_retry: "keep" };
await call("PUT", "/v1/pools/typed", pool);
const wanted: Wanted = { needs: [{ pool: "typed", units: 1 }], key: "typescript" };
const lease = await call<Lease>("POST", "/v1/leases?wait=5", wanted);
const state: components["schemas"]["LeaseState"] = lease.state;
if (state !== "granted" || lease.token === null) throw new Error(`not granted: ${state}`);
const ended = await call<Lease>("DELETE", `/v1/leases/${lease.id}?token=${lease.token}`);
if (ended.cause !== "released") throw new Error(`not released: ${ended.cause}`);
const refused = await call<Problem>("GET", "/v1/pools/nope");
console.log(`${lease.needs[0]?.pool} ${refused.code}`);
