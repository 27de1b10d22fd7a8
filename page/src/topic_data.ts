// Topics and nodes of the graph as the server lists them, and the colors that topics have in every view.
import { type Loaded, useAnswer } from "./api";
import { href } from "./router";

export interface Topic {
  id: string;
  label: string;
  words: string[];
  entries: number;
  first: string;
  last: string;
  importance: number;
  /** Entries in each week, such as "2026-W47". */
  weeks: Record<string, number>;
}

export interface TopicsAnswer {
  topics: Topic[];
  all: number;
}

export interface GraphNode {
  id: string;
  kind: "topic" | "file" | "entry";
  label: string;
  topic: string;
  day: string;
}

export interface GraphData {
  nodes: GraphNode[];
  edges: Array<{ from: string; to: string }>;
}

export const MOST_TOPICS = 100;
const TOPIC_COLORS = 9;

/** Load the topics, the most important first. */
export function useTopics(): Loaded<TopicsAnswer> & { isNone: boolean } {
  const found = useAnswer<TopicsAnswer>("topics", { limit: MOST_TOPICS });
  const isNone = found.error?.status === 404 || found.data?.topics.length === 0;
  return { ...found, isNone };
}

/** Return the number of each topic's color, the most important one first. After the last color, they come again. */
export function colorsOf(topics: ReadonlyArray<{ id: string }>): Map<string, number> {
  return new Map(topics.map((topic, number) => [topic.id, number % TOPIC_COLORS]));
}

/** A spot in the color of a topic. Its name is always next to it. */
export function dotClass(color: number | undefined): string {
  return `dot ${color === undefined ? "" : `topic-${color}`}`;
}

/** Return the ID of a node without its kind. */
export function nameOf(node: GraphNode): string {
  return node.id.slice(node.id.indexOf(":") + 1);
}

/** Return the address of the view that shows a node. */
export function openingOf(node: GraphNode): string {
  return href({ topic: "topics", file: "file", entry: "turn" }[node.kind], nameOf(node));
}
