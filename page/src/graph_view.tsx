// The graph: around a topic, file, or entry, or the whole map; with the chosen node, and the same nodes as a list.
import "./graph.css";
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAnswer } from "./api";
import { fullDay, plural } from "./format";
import { type GraphData, type GraphNode, withTopics } from "./graph_layout";
import { GraphList } from "./graph_list";
import { GraphMap } from "./graph_map";
import { NodePanel, openingOf } from "./graph_panel";
import { useKeys } from "./keys";
import { useChanges } from "./live";
import { Empty, Failure, Loading, Title } from "./parts";
import { go, href, type Route } from "./router";
import { colorsOf, type Topic, useTopics } from "./topic_data";

const AROUND = 200;
const WHOLE = 2000;

export function Graph({ route }: { route: Route }) {
  const isWhole = route.query.get("all") === "1";
  const isList = route.query.get("as") === "list";
  const topics = useTopics();
  const first = topics.data?.topics[0];
  const around = isWhole ? "" : route.query.get("around") || (first ? `topic:${first.id}` : "");
  const isKnown = isWhole || around !== "" || topics.isNone;
  const asked = around ? { around, limit: AROUND } : { limit: WHOLE };
  const { data: answered, error, reload } = useAnswer<GraphData>(isKnown ? "graph" : null, asked, true);
  const data = useMemo(() => answered && withTopics(answered), [answered]);
  useChanges(useCallback(() => (reload(), topics.reload()), [JSON.stringify(asked)]));
  const colors = useMemo(() => {
    const ids = [...(topics.data?.topics ?? []), ...(data?.nodes ?? []).filter((one) => one.kind === "topic").map((one) => ({ id: one.topic }))];
    return colorsOf([...new Set(ids.map((one) => one.id))].map((id) => ({ id })));
  }, [topics.data, data]);
  const [chosen, setChosen] = useState<string | null>(null);
  const set = (values: Record<string, string>) =>
    go(href("graph", "", { ...Object.fromEntries(route.query), ...values }));
  useKeys({
    a: () => set({ all: isWhole ? "" : "1" }),
    l: () => set({ as: isList ? "" : "list" }),
  });
  const node = data?.nodes.find((one) => one.id === chosen);
  const failure = error ?? (topics.isNone ? null : topics.error);
  return (
    <div class="graph-view">
      <Title aside={data && <Shown data={data} isWhole={!around} />}>Graph</Title>
      <div class="graph-bar">
        <Center topics={topics.data?.topics ?? []} around={around} label={data?.nodes.find((one) => one.id === around)?.label ?? ""} />
        <div class="choice" role="group" aria-label="Extent">
          <button type="button" aria-pressed={!isWhole} onClick={() => set({ all: "" })}>
            Around one
          </button>
          <button type="button" aria-pressed={isWhole} onClick={() => set({ all: "1" })}>
            Whole map
          </button>
        </div>
        <div class="choice" role="group" aria-label="Show as">
          <button type="button" aria-pressed={!isList} onClick={() => set({ as: "" })}>
            Map
          </button>
          <button type="button" aria-pressed={isList} onClick={() => set({ as: "list" })}>
            List
          </button>
        </div>
      </div>
      {failure && <Failure error={failure} retry={error ? reload : topics.reload} />}
      {!data && !failure && <Loading rows={8} what="Loading the graph" />}
      {data?.nodes.length === 0 && (
        <Empty title="There is nothing to connect yet.">
          The map grows with the sessions of this project. <a href={href("")}>Go to the timeline</a>
        </Empty>
      )}
      {data && data.nodes.length > 0 && isList && <GraphList data={data} colors={colors} />}
      {data && data.nodes.length > 0 && !isList && (
        <div class="graph">
          <Canvas data={data} around={around} colors={colors} chosen={chosen} choose={setChosen} />
          <NodePanel key={node?.id} data={data} node={node} colors={colors} choose={setChosen} />
        </div>
      )}
    </div>
  );
}

function Shown({ data, isWhole }: { data: GraphData; isWhole: boolean }) {
  const count = plural(data.nodes.length, "node");
  if (!isWhole || data.all <= data.nodes.length) return <>{count}</>;
  return <>{`${count} of ${data.all.toLocaleString()}: the largest topics, the newest entries`}</>;
}

/** Choose the topic that the map is around. */
function Center({ topics, around, label }: { topics: Topic[]; around: string; label: string }) {
  const isTopic = topics.some((one) => `topic:${one.id}` === around);
  return (
    <label class="graph-center">
      <span>Around</span>
      <select value={around} onChange={(event) => go(href("graph", "", { around: event.currentTarget.value }))}>
        {!isTopic && <option value={around}>{around ? label || around.replace(/^\w+:/, "") : "Everything"}</option>}
        {topics.map((one) => (
          <option key={one.id} value={`topic:${one.id}`}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  );
}

interface CanvasProps {
  data: GraphData;
  around: string;
  colors: Map<string, number>;
  chosen: string | null;
  choose: (id: string | null) => void;
}

function Canvas({ data, around, colors, chosen, choose }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<GraphMap | null>(null);
  const shown = useRef<string | null>(null);
  const present = useRef(data);
  present.current = data;
  const [isMoving, setMoving] = useState(true);
  // Before the next key: an effect after the paint would take back what that key chose.
  useLayoutEffect(() => {
    const made = new GraphMap(canvas.current as HTMLCanvasElement, {
      onChoose: choose,
      onOpen: (id) => {
        const node = present.current.nodes.find((one) => one.id === id);
        if (node) go(openingOf(node));
      },
      onMoving: setMoving,
    });
    map.current = made;
    return () => made.end();
  }, []);
  useLayoutEffect(() => {
    map.current?.show(data, around, shown.current === around);
    shown.current = around;
  }, [data]);
  useLayoutEffect(() => map.current?.paint(colors), [colors]);
  useLayoutEffect(() => map.current?.choose(chosen, true), [chosen]);
  const node = data.nodes.find((one) => one.id === chosen);
  return (
    <figure class="graph-map" aria-busy={isMoving}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="map"
        aria-label={`Map of ${plural(data.nodes.length, "node")} and ${plural(data.edges.length, "connection")}. The list has the same.`}
        aria-describedby="graph-keys"
      />
      <p class="sr" aria-live="polite">
        {node && spoken(node)}
      </p>
      <div class="graph-zoom">
        <button type="button" aria-label="Zoom in" onClick={() => map.current?.zoomBy(1.4)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => map.current?.zoomBy(1 / 1.4)}>
          −
        </button>
        <button type="button" aria-label="Show everything" onClick={() => map.current?.fit()}>
          <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
            <path d="M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10" />
          </svg>
        </button>
      </div>
      <figcaption class="graph-legend">
        <span>
          <i class="shape shape-topic" /> Topic
        </span>
        <span>
          <i class="shape shape-entry" /> Entry
        </span>
        <span>
          <i class="shape shape-file" /> File
        </span>
        <span class="graph-keys" id="graph-keys">
          Arrow keys choose, Enter opens, + and − zoom, 0 shows everything
        </span>
      </figcaption>
    </figure>
  );
}

function spoken(node: GraphNode): string {
  return `${node.kind} ${node.label}${node.day ? `, ${fullDay(node.day)}` : ""}`;
}
