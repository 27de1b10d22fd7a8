import type { Route } from "./router";

export function Graph(_: { route: Route }) {
  return <h1 tabIndex={-1}>Graph</h1>;
}
