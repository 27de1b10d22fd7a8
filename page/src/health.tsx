import type { Route } from "./router";

export function Health(_: { route: Route }) {
  return <h1 tabIndex={-1}>Health</h1>;
}
