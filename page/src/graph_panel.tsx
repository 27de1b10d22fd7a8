// The chosen node of the graph: what it is, what it says, and what it is connected with.
import { at, useAnswer } from "./api";
import { shortDay } from "./format";
import type { GraphData, GraphNode, Kind } from "./graph_layout";
import { Markdown } from "./markdown";
import { href } from "./router";
import { dotClass } from "./topic_data";

const NAMES: Record<Kind, string> = { topic: "Topic", file: "File", entry: "Entry" };
const GROUPS: Array<[Kind, string]> = [
  ["topic", "Topics"],
  ["entry", "Entries"],
  ["file", "Files"],
];
const MOST_ROWS = 30;
const MOST_CHARACTERS = 600;

/** Return the ID of a node without its kind. */
export function nameOf(node: GraphNode): string {
  return node.id.slice(node.id.indexOf(":") + 1);
}

/** Return the address of the view that shows a node. */
export function openingOf(node: GraphNode): string {
  if (node.kind === "topic") return href("topics", nameOf(node));
  if (node.kind === "file") return href("", "", { file: nameOf(node) });
  return href("turn", nameOf(node));
}

interface PanelProps {
  data: GraphData;
  node: GraphNode | undefined;
  colors: Map<string, number>;
  choose: (id: string) => void;
}

export function NodePanel({ data, node, colors, choose }: PanelProps) {
  if (!node) {
    return (
      <aside class="graph-panel" aria-label="Chosen node">
        <p class="muted">Choose a node to see what it says, and what it is connected with.</p>
        <Topics data={data} colors={colors} choose={choose} />
      </aside>
    );
  }
  const topic = data.nodes.find((one) => one.kind === "topic" && nameOf(one) === node.topic);
  return (
    <aside class="graph-panel" aria-label="Chosen node">
      <p class="graph-kind">
        <i class={dotClass(colors.get(node.topic))} aria-hidden="true" />
        {NAMES[node.kind]}
        {node.day && <span class="num">{shortDay(node.day)}</span>}
      </p>
      <h2 class={node.kind === "file" ? "mono" : ""}>{node.label}</h2>
      {topic && topic !== node && <p class="muted">In “{topic.label}”</p>}
      <p class="graph-actions">
        <a class="button" href={openingOf(node)}>
          Open
        </a>
        <a class="button" href={href("graph", "", { around: node.id })}>
          Show what is around
        </a>
      </p>
      {node.kind === "entry" && <Said id={nameOf(node)} />}
      <Connections data={data} node={node} colors={colors} choose={choose} />
    </aside>
  );
}

/** The text of an entry, as far as it fits. */
function Said({ id }: { id: string }) {
  const { data } = useAnswer<{ content: string }>(at("memory", id));
  if (!data) return null;
  const text = data.content.replace(/^#{1,6} .*\n/, "").trim();
  return (
    <div class="graph-said">
      <Markdown text={text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS).trimEnd()}…` : text} />
    </div>
  );
}

function Connections({ data, node, colors, choose }: Required<PanelProps> & { node: GraphNode }) {
  const ids = new Set(data.edges.flatMap(({ from, to }) => (from === node.id ? [to] : to === node.id ? [from] : [])));
  const found = data.nodes.filter((one) => ids.has(one.id));
  return (
    <>
      {GROUPS.map(([kind, title]) => {
        const own = found.filter((one) => one.kind === kind);
        if (kind === "entry") own.sort((a, b) => b.day.localeCompare(a.day));
        return <Rows key={kind} title={title} nodes={own} colors={colors} choose={choose} />;
      })}
    </>
  );
}

function Topics({ data, colors, choose }: { data: GraphData; colors: Map<string, number>; choose: (id: string) => void }) {
  const topics = data.nodes.filter((one) => one.kind === "topic").sort((a, b) => b.size - a.size);
  return <Rows title="Topics" isFirst nodes={topics} colors={colors} choose={choose} />;
}

interface RowsProps {
  title: string;
  /** There is no other heading above it. */
  isFirst?: boolean;
  nodes: GraphNode[];
  colors: Map<string, number>;
  choose: (id: string) => void;
}

function Rows({ title, isFirst, nodes, colors, choose }: RowsProps) {
  if (!nodes.length) return null;
  const Heading = isFirst ? "h2" : "h3";
  return (
    <section>
      <Heading class="graph-group">
        {title} <span class="muted num">{nodes.length}</span>
      </Heading>
      <ul>
        {nodes.slice(0, MOST_ROWS).map((one) => (
          <li key={one.id}>
            <button type="button" class="graph-row" data-row onClick={() => choose(one.id)} title={one.label}>
              <i class={dotClass(colors.get(one.topic))} aria-hidden="true" />
              <span class="cut">{one.label}</span>
            </button>
          </li>
        ))}
      </ul>
      {nodes.length > MOST_ROWS && <p class="muted">and {nodes.length - MOST_ROWS} more, in the list</p>}
    </section>
  );
}
