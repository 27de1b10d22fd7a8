// The address: #/VIEW/ID?NAME=VALUE. A view is chosen by the first part; `in` names another project, or all.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  view: string;
  id: string;
  query: URLSearchParams;
}

export type Values = Record<string, string | number | undefined>;

/** The value of `in` for all projects. */
export const ALL = "*";

let served = "";

/** Tell the name of the server's project, which needs no `in`. */
export function setServed(name: string): void {
  served = name;
}

/** Return the project that is shown: its name, "" for the one of the server, or `ALL`. */
export function scope(): string {
  const name = parse(location.hash).query.get("in") ?? "";
  return name === served ? "" : name;
}

/** Return the address of a view, in the project that is shown unless `in` is given. Empty values are left out. */
export function href(view: string, id = "", values: Values = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ in: scope(), ...values })) if (value !== undefined && value !== "") query.set(name, String(value));
  const path = [view, ...(id ? [encodeURIComponent(id)] : [])].join("/");
  return `#/${path}${query.size ? `?${query}` : ""}`;
}

/** Return the route that an address names. */
export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", id = ""] = path.split("/");
  return { view, id: decoded(id), query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an address that a person has mistyped
  }
}

let depth = 0;
let isBackward = false;

/** Return whether the present place was reached by going back. */
export function isReturn(): boolean {
  return isBackward;
}

/** Go to an address of this page. With `replace`, the way back skips the present one. */
export function go(address: string, replace = false): void {
  if (address === location.hash) return;
  if (!replace) {
    location.hash = address;
    return;
  }
  history.replaceState(history.state, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Go to the view before this one, or to the timeline. */
export function back(): void {
  if (depth > 0) history.back();
  else go(href(""));
}

/** Return the present route, and render again when it changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => {
      // Each new place gets the next number, so that `back` knows whether it is the first.
      const known: unknown = history.state?.depth;
      isBackward = typeof known === "number" && known < depth;
      if (typeof known === "number") depth = known;
      else history.replaceState({ depth: ++depth }, "");
      setHash(location.hash);
    };
    history.replaceState({ depth }, "");
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
