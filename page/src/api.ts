// Requests to the server, with the key that the one-time token in the address was exchanged for.
import { useEffect, useRef, useState } from "preact/hooks";
import { ALL, scope, setServed } from "./router";

export interface Project {
  name: string;
  root: string;
}

interface Access {
  key: string;
  project: Project;
}

export type Parameters = Record<string, string | number | boolean | undefined>;

/** A request that failed. `status` is 0 if the server did not answer. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

// In the storage of this origin, which has the port in it: all tabs share the key, no other server is sent it as
// it would be sent a cookie, and it opens nothing once its server has ended.
const STORED = "memkit.access";
const WANTED = "memkit.wanted";
const WANTED_MS = 600_000;

let access: Access | null = null;
const accessListeners = new Set<(project: Project | null) => void>();

/** Call a function when the server no longer accepts the key, or there is a new one. Return one that ends that. */
export function onAccess(listener: (project: Project | null) => void): () => void {
  accessListeners.add(listener);
  return () => accessListeners.delete(listener);
}

/** Exchange the token in the address for a key, or take the one of this browser. Return null if there is none. */
export async function open(): Promise<Project | null> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    // First of all, so that it is in no history, bookmark, or picture of the screen.
    history.replaceState(null, "", `${location.pathname}#/`);
    const wanted = stored<{ address: string; time: number }>(WANTED);
    await navigator.locks.request(STORED, () => redeem(token)); // two tabs may open the link at once
    store(WANTED, null);
    if (wanted?.address.startsWith("#/") && Date.now() - wanted.time < WANTED_MS) history.replaceState(null, "", wanted.address);
  } else {
    access = stored<Access>(STORED);
    if (!access) lock();
  }
  return present();
}

/** Take the key of this browser if the server knows it: a token that comes twice would end it. Else redeem the token. */
async function redeem(token: string): Promise<void> {
  access = stored<Access>(STORED);
  if (access && (await send("projects").then(() => true, () => false))) return;
  access = await send<Access>("page/key", { method: "POST", body: { token } });
  store(STORED, access);
}

function present(): Project | null {
  if (access?.project) setServed(access.project.name);
  return access && access.project;
}

/** Do without a key, and note where to go on when there is one. */
function lock(): void {
  access = null;
  if (location.hash.startsWith("#/")) store(WANTED, { address: location.hash, time: Date.now() });
}

function tell(): void {
  for (const listener of accessListeners) listener(present());
}

addEventListener("storage", (event) => {
  if (event.key !== STORED || !event.newValue) return;
  dropKept();
  access = stored<Access>(STORED);
  tell();
});

function stored<T>(name: string): T | null {
  try {
    return JSON.parse(localStorage.getItem(name) ?? "null") as T | null;
  } catch {
    return null;
  }
}

function store(name: string, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // The browser keeps nothing for this page: it works in this tab alone.
  }
}

export interface Options {
  method?: "GET" | "POST" | "DELETE";
  parameters?: Parameters;
  body?: unknown;
  signal?: AbortSignal;
}

/** Return the JSON of an answer. Raise `ApiError`. The path is relative to the page, without a leading slash. */
export async function send<T>(path: string, options: Options = {}): Promise<T> {
  const response = await request(path, options);
  return (await response.json()) as T;
}

/** What is not about one project. */
const OF_SERVER = /^(page\/key|live|projects|fix|summaries)$/;

/** Return why nothing can be changed in the project that is shown, or "". */
export function readOnly(): string {
  return scope() && scope() !== ALL ? `This page only reads other projects. To change it, run “memkit serve --open” in ${scope()}.` : "";
}

/** Return the response to a request. Raise `ApiError` unless it is a success. */
export async function request(path: string, { method = "GET", parameters = {}, body, signal }: Options): Promise<Response> {
  const query = new URLSearchParams();
  const project = OF_SERVER.test(path) || scope() === ALL ? "" : scope();
  if (project && method !== "GET") throw new ApiError(readOnly(), 403);
  for (const [name, value] of Object.entries({ project, ...parameters })) if (value !== undefined && value !== "") query.set(name, String(value));
  const headers: Record<string, string> = {};
  if (access) headers.Authorization = `Bearer ${access.key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(query.size ? `${path}?${query}` : path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
      credentials: "omit",
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server does not answer. Is `memkit serve` still running?", 0);
  }
  if (response.ok) {
    if (method !== "GET" && !parameters.dry_run) dropKept();
    return response;
  }
  if (response.status === 401) {
    const newer = stored<Access>(STORED);
    if (newer && newer.key !== access?.key) {
      access = newer;
    } else {
      store(STORED, null);
      lock();
    }
    tell();
  }
  throw new ApiError(await reason(response), response.status);
}

async function reason(response: Response): Promise<string> {
  if (response.status === 429) {
    const seconds = response.headers.get("Retry-After");
    return `Too many requests at once. Try again${seconds ? ` in ${seconds} s` : " in a moment"}.`;
  }
  try {
    const problem = (await response.json()) as { detail?: string };
    if (problem.detail) return problem.detail;
  } catch {
    // Not JSON: the status says what there is to say.
  }
  return `The server answered ${response.status} ${response.statusText}.`;
}

/** Return the path of an entry: its id is data, so it is encoded. */
export function at(path: string, id: string): string {
  return `${path}/${encodeURIComponent(id)}`;
}

const MOST_KEPT = 40;
const kept = new Map<string, unknown>();

/** Keep what a view has loaded, so that a way back shows it at once. A change of the memory drops all. */
export function keep(name: string, value: unknown): void {
  kept.delete(scope() + name);
  kept.set(scope() + name, value);
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
}

/** Return what was kept under a name, or null. */
export function recall<T>(name: string): T | null {
  return (kept.get(scope() + name) ?? null) as T | null;
}

export function dropKept(): void {
  kept.clear();
}

export interface Loaded<T> {
  /** What the last request answered. While another one runs, what the one before it answered. */
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  reload: () => void;
}

/** Load JSON, and again when the path or the parameters change. A request that is no longer needed is aborted.
 *
 * A null path loads nothing. With `holds`, the former answer stays until the next one is there. `method` must change nothing.
 */
export function useAnswer<T>(path: string | null, parameters: Parameters = {}, holds = false, method: Options["method"] = "GET"): Loaded<T> {
  const asked = JSON.stringify([method, path, parameters, scope()]);
  const [state, setState] = useState<{ data: T | null; error: ApiError | null; isLoading: boolean }>({
    data: recall<T>(asked),
    error: null,
    isLoading: path !== null,
  });
  const [round, setRound] = useState(0);
  const last = useRef("");
  useEffect(() => {
    if (path === null) {
      last.current = asked;
      setState({ data: null, error: null, isLoading: false });
      return;
    }
    const control = new AbortController();
    const isSame = last.current === asked;
    last.current = asked;
    setState((old) => ({ data: recall<T>(asked) ?? (holds || isSame ? old.data : null), error: null, isLoading: true }));
    send<T>(path, { method, parameters, signal: control.signal }).then(
      (data) => {
        if (control.signal.aborted) return;
        if (method === "GET") keep(asked, data);
        setState({ data, error: null, isLoading: false });
      },
      (error: unknown) => {
        if (!control.signal.aborted) setState((old) => ({ data: old.data, error: asApiError(error), isLoading: false }));
      },
    );
    return () => control.abort();
  }, [asked, round]);
  return { ...state, reload: () => setRound((old) => old + 1) };
}

/** Return any failure as one to show. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), 0);
}
