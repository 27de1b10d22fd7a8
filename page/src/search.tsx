import { Title } from "./parts";
import type { Route } from "./router";

export function Search(_: { route: Route }) {
  return <Title>Search</Title>;
}
