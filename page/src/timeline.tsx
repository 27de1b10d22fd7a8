import { Title } from "./parts";
import type { Route } from "./router";

export function Timeline(_: { route: Route }) {
  return <Title>Timeline</Title>;
}
