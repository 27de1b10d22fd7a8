import type { Route } from "./router";

export function Topics(_: { route: Route }) {
  return <h1 tabIndex={-1}>Topics</h1>;
}
