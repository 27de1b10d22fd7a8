// What is around an entry, a topic, or a file: a ring of what it is connected with, and the same as a list.
import "./topics.css";
import { useCallback } from "preact/hooks";
import { useAnswer } from "./api";
import { shortDay } from "./format";
import { useChanges } from "./live";
import { Missing, Title } from "./parts";
import { href, type Route } from "./router";
import { colorsOf, dotClass, type GraphData, type GraphNode, openingOf, useTopics } from "./topic_data";

const GROUPS: Array<[GraphNode["kind"], string]> = [["topic", "Topics"], ["file", "Files"], ["entry", "Entries"]];
const MOST_DIRECT = 7;
const MOST_PLACES = 12;
const MOST_ROWS = 30;

export function Around({ route }: { route: Route }) {
  const around = route.query.get("around") ?? "";
  const { data, error, reload } = useAnswer<GraphData>("graph", { around, limit: 80 });
  const colors = colorsOf(useTopics().data?.topics ?? []);
  useChanges(useCallback(() => reload(), [around]));
  const center = data?.nodes.find((one) => one.id === around);
  if (!data || !center) return <Missing title="Around" error={error} retry={reload} rows={6} />;
  return (
    <>
      <Title aside={<a class="button" href={openingOf(center)}>Open</a>}>Around “{center.label}”</Title>
      <Ring data={data} center={center} colors={colors} />
      <div class="around-lists">
        {GROUPS.map(([kind, title]) => {
          const own = data.nodes.filter((one) => one.kind === kind && one !== center).slice(0, MOST_ROWS);
          return own.length > 0 && (
            <section key={kind}>
              <h2 class="day-head">{title}</h2>
              <ul class="rows">
                {own.map((one) => (
                  <li key={one.id}>
                    <a class="row" data-row href={openingOf(one)}>
                      <i class={dotClass(colors.get(one.topic))} aria-hidden="true" />
                      <span class={`row-title ${kind === "file" ? "mono" : ""}`}>{one.label}</span>
                      <span class="row-aside num">{one.day && shortDay(one.day)}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          );
        })}
      </div>
    </>
  );
}

function Ring({ data, center, colors }: { data: GraphData; center: GraphNode; colors: Map<string, number> }) {
  const near = nearest(data, center);
  const places = new Map<string, [number, number]>([[center.id, [50, 50]]]);
  const right = Math.ceil(near.length / 2);
  near.forEach((one, number) => {
    // From the top down on the right, and up on the left, at equal heights, so that no two overlap.
    const [place, side, count] = number < right ? [number, 1, right] : [near.length - 1 - number, -1, near.length - right];
    const height = (place + 0.5) / count;
    places.set(one.id, [50 + side * (19 + 18 * Math.sin(height * Math.PI)), 100 * height]);
  });
  return (
    <nav class="ring" aria-label="What it is connected with">
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
        {data.edges.map(({ from, to }) => {
          const [a, b] = [places.get(from), places.get(to)];
          return a && b && <line key={`${from} ${to}`} x1={a[0]} y1={a[1]} x2={b[0]} y2={b[1]} />;
        })}
      </svg>
      {[center, ...near].map((one) => {
        const [left, top] = places.get(one.id) ?? [0, 0];
        const shown = one.kind === "file" ? one.label.split("/").at(-1) : one.label;
        return (
          <a key={one.id} class={`ring-node ring-${one.kind}`} style={{ left: `${left}%`, top: `${top}%` }} title={one.label}
            {...(one === center ? { "aria-current": "true" as const, href: openingOf(one) } : { href: href("graph", "", { around: one.id }) })}>
            <i class={dotClass(colors.get(one.topic))} aria-hidden="true" />
            <span>{shown}</span>
          </a>
        );
      })}
    </nav>
  );
}

/** Return the nodes for the ring: those connected with the center, then those that share most of them. */
function nearest({ nodes, edges }: GraphData, center: GraphNode): GraphNode[] {
  const beside = (ids: Set<string>) => edges.flatMap(({ from, to }) => (ids.has(from) ? [to] : ids.has(to) ? [from] : []));
  const direct = new Set(beside(new Set([center.id])));
  const counts = new Map<string, number>();
  for (const id of beside(direct)) counts.set(id, (counts.get(id) ?? 0) + 1);
  const first = nodes.filter((one) => direct.has(one.id));
  const second = nodes.filter((one) => counts.has(one.id) && !direct.has(one.id) && one !== center);
  second.sort((a, b) => (counts.get(b.id) ?? 0) - (counts.get(a.id) ?? 0));
  const shown = new Set([...first.slice(0, second.length ? MOST_DIRECT : MOST_PLACES), ...second].slice(0, MOST_PLACES));
  return GROUPS.flatMap(([kind]) => nodes.filter((one) => one.kind === kind && shown.has(one)));
}
