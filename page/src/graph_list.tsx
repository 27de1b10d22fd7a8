// The nodes of a graph as a list, by topic: the same for whoever does not see the map.
import { useState } from "preact/hooks";
import { plural, shortDay } from "./format";
import type { GraphData, GraphNode } from "./graph_layout";
import { nameOf, openingOf } from "./graph_panel";
import { href } from "./router";
import { dotClass } from "./topic_data";

const STEP = 100;

export function GraphList({ data, colors }: { data: GraphData; colors: Map<string, number> }) {
  const counts = new Map<string, number>();
  for (const { from, to } of data.edges) for (const id of [from, to]) counts.set(id, (counts.get(id) ?? 0) + 1);
  const topics = data.nodes.filter((one) => one.kind === "topic").sort((a, b) => b.size - a.size);
  const known = new Set(topics.map(nameOf));
  const others = data.nodes.filter((one) => one.kind !== "topic" && !known.has(one.topic));
  return (
    <div class="graph-list">
      {topics.map((topic) => {
        const own = data.nodes.filter((one) => one.kind !== "topic" && one.topic === nameOf(topic));
        return <Part key={topic.id} title={topic.label} topic={topic} nodes={own} counts={counts} color={colors.get(topic.topic)} />;
      })}
      {others.length > 0 && <Part title="In no topic" nodes={others} counts={counts} />}
    </div>
  );
}

interface PartProps {
  title: string;
  topic?: GraphNode;
  nodes: GraphNode[];
  counts: Map<string, number>;
  color?: number | undefined;
}

function Part({ title, topic, nodes, counts, color }: PartProps) {
  const [most, setMost] = useState(STEP);
  return (
    <section>
      <h2 class="day-head">
        <span>
          <i class={dotClass(color)} aria-hidden="true" /> {topic ? <a href={openingOf(topic)}>{title}</a> : title}
        </span>
        <span class="muted num">{plural(nodes.length, "node")}</span>
      </h2>
      <ul class="rows">
        {nodes.slice(0, most).map((one) => (
          <li key={one.id}>
            <a class="row graph-list-row" data-row href={openingOf(one)}>
              <span class="row-time">{one.kind === "file" ? "File" : "Entry"}</span>
              <span class={`row-title ${one.kind === "file" ? "mono" : ""}`}>{one.label}</span>
              <span class="row-aside num">
                {plural(counts.get(one.id) ?? 0, "connection")}
                {one.day && <span>{shortDay(one.day)}</span>}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {nodes.length > most && (
        <button type="button" class="more" onClick={() => setMost(most + STEP)}>
          Show more
        </button>
      )}
      {topic && (
        <p>
          <a href={href("graph", "", { around: topic.id })}>Show the map around it</a>
        </p>
      )}
    </section>
  );
}
