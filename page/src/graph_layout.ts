// The places of a map's nodes: forces pull related nodes together and push the others apart.
//
// The page's CSP has no worker (a worker's address is a script that trusted types refuse), so the forces are
// computed between frames, as many steps as fit.
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type Simulation, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";
import { type Quadtree, quadtree } from "d3-quadtree";

export type Kind = "topic" | "file" | "entry";

/** What the server says about a node. `topic` is the ID of its topic, or "". */
export interface GraphNode {
  id: string;
  kind: Kind;
  label: string;
  topic: string;
  size: number;
  day: string;
}

export interface GraphEdge {
  from: string;
  to: string;
  kind: "in" | "related" | "touches";
  weight: number;
}

export interface GraphData {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** How many nodes the whole map would have. */
  all: number;
}

/** Return the graph with a topic for each file: that of most entries which touch it. */
export function withTopics(data: GraphData): GraphData {
  const topicOf = new Map(data.nodes.map((node) => [node.id, node.topic]));
  const counts = new Map<string, Map<string, number>>();
  for (const { from, to, kind } of data.edges) {
    const topic = topicOf.get(from);
    if (kind !== "touches" || !topic) continue;
    const own = counts.get(to) ?? new Map<string, number>();
    counts.set(to, own.set(topic, (own.get(topic) ?? 0) + 1));
  }
  const most = (own: Map<string, number>) => [...own].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
  return {
    ...data,
    nodes: data.nodes.map((node) => {
      const own = node.kind === "file" && !node.topic ? counts.get(node.id) : undefined;
      return own ? { ...node, topic: most(own) } : node;
    }),
  };
}

/** A node with its place. */
export interface Spot extends SimulationNodeDatum {
  node: GraphNode;
  x: number;
  y: number;
  radius: number;
  near: Spot[];
  /** When it came to the map that was shown already, in ms; 0 if it was there from the beginning. */
  since: number;
}

export interface Line extends SimulationLinkDatum<Spot> {
  source: Spot;
  target: Spot;
  kind: GraphEdge["kind"];
  weight: number;
}

const LENGTHS = { in: 16, related: 90, touches: 26 };
const STRENGTHS = { in: 0.5, related: 0.08, touches: 0.05 };
const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const MOST_STEPS = 4;
/** From so many nodes on, speed counts more than a tidy map. */
const LARGE = 600;

export class Layout {
  spots: Spot[] = [];
  lines: Line[] = [];
  private readonly byId = new Map<string, Spot>();
  private readonly forces: Simulation<Spot, Line>;
  private tree: Quadtree<Spot> | null = null;

  constructor() {
    this.forces = forceSimulation<Spot, Line>([]).stop().velocityDecay(0.35);
  }

  /** Show these nodes. Those that were there keep their places; `now` marks the others as new, unless it is 0. */
  set(data: GraphData, now = 0): void {
    const old = new Map(this.byId);
    this.byId.clear();
    this.spots = data.nodes.map((node) => {
      const spot = old.get(node.id) ?? { node, x: NaN, y: NaN, radius: 0, near: [], since: old.size ? now : 0 };
      spot.node = node;
      spot.near = [];
      spot.radius = radiusOf(node);
      this.byId.set(node.id, spot);
      return spot;
    });
    this.lines = [];
    for (const edge of data.edges) {
      const [source, target] = [this.byId.get(edge.from), this.byId.get(edge.to)];
      if (!source || !target || source === target) continue;
      this.lines.push({ source, target, kind: edge.kind, weight: edge.weight });
      source.near.push(target);
      target.near.push(source);
    }
    this.place();
    this.setForces();
    const added = this.spots.filter((spot) => !old.has(spot.node.id)).length;
    const share = added / Math.max(1, this.spots.length);
    if (added || old.size !== this.spots.length) this.warm(old.size ? Math.min(0.6, 0.12 + share) : 0.7);
  }

  find(id: string): Spot | undefined {
    return this.byId.get(id);
  }

  private get isLarge(): boolean {
    return this.spots.length > LARGE;
  }

  get isMoving(): boolean {
    return this.forces.alpha() > this.forces.alphaMin();
  }

  /** Let the nodes move on, with this much energy (0 to 1). */
  warm(energy: number): void {
    this.forces.alpha(Math.max(this.forces.alpha(), energy));
  }

  /** Move the nodes for at most so many ms, at least one step. Return whether that changed anything. */
  advance(budget: number, steps = this.isLarge ? 1 : MOST_STEPS): boolean {
    if (!this.isMoving) return false;
    const end = performance.now() + budget;
    do this.forces.tick();
    while (--steps > 0 && performance.now() < end && this.isMoving);
    this.tree = null;
    return true;
  }

  /** Return the node nearest to a point, at most so far from its rim. */
  at(x: number, y: number, reach: number): Spot | undefined {
    this.tree ??= quadtree(this.spots, (spot) => spot.x, (spot) => spot.y);
    let best: Spot | undefined;
    let least = Infinity;
    const most = reach + LARGEST;
    this.tree.visit((cell, x0, y0, x1, y1) => {
      if (x0 > x + most || x1 < x - most || y0 > y + most || y1 < y - most) return true;
      if (!cell.length) {
        for (let leaf: typeof cell | undefined = cell; leaf; leaf = leaf.next) {
          const spot = leaf.data;
          const distance = Math.hypot(spot.x - x, spot.y - y) - spot.radius;
          if (distance < reach && distance < least) [best, least] = [spot, distance];
        }
      }
      return false;
    });
    return best;
  }

  /** Return the nearest node in a direction (a unit vector) from a node, one far to the side least of all. */
  toward(from: Spot, dx: number, dy: number): Spot | undefined {
    let best: Spot | undefined;
    let least = Infinity;
    for (const spot of this.spots) {
      const [x, y] = [spot.x - from.x, spot.y - from.y];
      const ahead = x * dx + y * dy;
      if (spot === from || ahead <= 0) continue;
      const cost = ahead + 2.5 * Math.abs(x * dy - y * dx);
      if (cost < least) [best, least] = [spot, cost];
    }
    return best;
  }

  /** Note that a node was moved by hand. */
  moved(): void {
    this.tree = null;
  }

  /** Return the corners of all nodes: left, top, right, bottom. */
  get extent(): [number, number, number, number] {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y, radius } of this.spots) {
      [left, top] = [Math.min(left, x - radius), Math.min(top, y - radius)];
      [right, bottom] = [Math.max(right, x + radius), Math.max(bottom, y + radius)];
    }
    return left <= right ? [left, top, right, bottom] : [-1, -1, 1, 1];
  }

  /** Place new nodes where the forces have little left to do: topics in a spiral, entries around their topic. */
  private place(): void {
    const without = (spot: Spot) => Number.isNaN(spot.x);
    const topics = this.spots.filter((spot) => spot.node.kind === "topic");
    let reach = 0;
    topics.forEach((spot, number) => {
      const room = 40 + 9 * Math.sqrt(spot.near.length);
      if (without(spot)) [spot.x, spot.y] = [reach * Math.cos(number * GOLDEN), reach * Math.sin(number * GOLDEN)];
      reach = Math.sqrt(reach ** 2 + (1.3 * room) ** 2);
    });
    for (const kind of ["entry", "file"]) {
      this.spots.forEach((spot, number) => {
        if (spot.node.kind !== kind || !without(spot)) return;
        const known = spot.near.filter((one) => !without(one));
        const home = this.byId.get(`topic:${spot.node.topic}`) ?? known[0];
        const around = kind === "entry" && home ? [home] : known;
        const far = around.length ? 14 + 7 * Math.sqrt(number % 97) : reach * Math.sqrt((number % 97) / 97) + 30;
        const [x, y] = [mean(around, "x"), mean(around, "y")];
        [spot.x, spot.y] = [x + far * Math.cos(number * GOLDEN), y + far * Math.sin(number * GOLDEN)];
      });
    }
  }

  private setForces(): void {
    const { isLarge } = this;
    const room = Math.max(1, Math.min(4, 120 / this.spots.length)); // few nodes have room for their labels
    this.forces
      .nodes(this.spots)
      .alphaDecay(isLarge ? 0.03 : 0.02)
      .alphaMin(0.01)
      .force(
        "link",
        forceLink<Spot, Line>(this.lines)
          .distance((line) => line.source.radius + line.target.radius + room * LENGTHS[line.kind])
          .strength((line) => STRENGTHS[line.kind] * (line.kind === "related" ? 0.3 + Math.min(1, line.weight) : 1)),
      )
      .force(
        "charge",
        forceManyBody<Spot>()
          .strength((spot) => (spot.node.kind === "topic" ? -200 - 8 * Math.min(80, spot.near.length) : -24))
          .theta(isLarge ? 1.2 : 0.9)
          .distanceMax(isLarge ? 900 : 500),
      )
      .force("x", forceX<Spot>(0).strength(isLarge ? 0.05 : 0.045))
      .force("y", forceY<Spot>(0).strength(isLarge ? 0.07 : 0.06))
      .force("collide", isLarge ? null : forceCollide<Spot>((spot) => spot.radius + 4 + 4 * room).strength(0.7));
    this.tree = null;
  }
}

const LARGEST = 24;

function radiusOf({ kind, size }: GraphNode): number {
  if (kind === "topic") return Math.min(LARGEST, 8 + 1.5 * Math.sqrt(Math.max(0, size)));
  return Math.min(9, (kind === "file" ? 3.2 : 3.4) + 0.7 * Math.sqrt(Math.max(0, size - 1)));
}

function mean(spots: readonly Spot[], axis: "x" | "y"): number {
  return spots.length ? spots.reduce((sum, spot) => sum + spot[axis], 0) / spots.length : 0;
}
