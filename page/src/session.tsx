import { Title } from "./parts";
import type { Route } from "./router";

export function Session(_: { route: Route }) {
  return <Title>Session</Title>;
}
