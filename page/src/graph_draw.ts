// A map on a canvas: faint edges, nodes by color, and labels that do not cover each other.
import type { Layout, Spot } from "./graph_layout";

export interface Theme {
  background: string;
  text: string;
  muted: string;
  edge: string;
  accent: string;
  /** The colors of topics. */
  topics: string[];
  font: string;
}

/** The part of the map that is shown: a point of the map is drawn at `x * k + this.x`. */
export interface Place {
  x: number;
  y: number;
  k: number;
}

export interface Scene {
  layout: Layout;
  place: Place;
  width: number;
  height: number;
  /** The node under the pointer, or else the chosen one: its neighbors are shown, and the rest is dimmed. */
  focus: Spot | null;
  chosen: Spot | null;
  /** The node around which the map is, if any. */
  center: Spot | null;
  colorOf: (spot: Spot) => number;
  theme: Theme;
  now: number;
  /** Fewer labels while something moves. */
  isMoving: boolean;
}

const MOST_LABELS = 70;
const MOST_LABELS_MOVING = 30;
const MOST_CHARACTERS = 34;
const MOST_CHARACTERS_FAR = 22;
export const NEW_MS = 4000;
const LEAST_PIXELS = 1.7;
/** The height of the legend below the map, in pixels. */
const LEGEND = 26;
const TURN = 2 * Math.PI;

export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, theme, place } = scene;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  const near = scene.focus && new Set([scene.focus, ...scene.focus.near]);
  const isSeen = (spot: Spot) => {
    const [x, y, r] = [spot.x * place.k + place.x, spot.y * place.k + place.y, spot.radius * place.k + 2];
    return x > -r && y > -r && x < width + r && y < height + r;
  };
  context.save();
  context.translate(place.x, place.y);
  context.scale(place.k, place.k);
  drawEdges(context, scene);
  const seen = scene.layout.spots.filter(isSeen);
  if (near) {
    drawNodes(context, scene, seen.filter((spot) => !near.has(spot)), 0.18);
    drawNodes(context, scene, seen.filter((spot) => near.has(spot)), 1);
  } else drawNodes(context, scene, seen, 1);
  drawRings(context, scene, seen);
  context.restore();
  drawLabels(context, scene, seen, near);
}

function drawEdges(context: CanvasRenderingContext2D, { layout, focus, place, theme, colorOf, width, height }: Scene): void {
  const [left, top] = [-place.x / place.k, -place.y / place.k];
  const [right, bottom] = [left + width / place.k, top + height / place.k];
  const trace = (wanted: (kind: string, isNear: boolean) => boolean) => {
    context.beginPath();
    for (const { source, target, kind } of layout.lines) {
      if (!wanted(kind, source === focus || target === focus)) continue;
      if ((source.x < left && target.x < left) || (source.x > right && target.x > right)) continue;
      if ((source.y < top && target.y < top) || (source.y > bottom && target.y > bottom)) continue;
      context.moveTo(source.x, source.y);
      context.lineTo(target.x, target.y);
    }
    context.stroke();
  };
  context.strokeStyle = theme.edge;
  context.lineWidth = 1 / place.k;
  const strength = Math.min(0.8, Math.max(0.28, 600 / layout.lines.length)); // many edges are many faint ones
  context.globalAlpha = focus ? 0.4 * strength : strength;
  trace((kind, isNear) => kind !== "related" && !isNear);
  context.lineWidth = 1.5 / place.k;
  context.setLineDash([4 / place.k, 4 / place.k]);
  trace((kind, isNear) => kind === "related" && !isNear);
  context.setLineDash([]);
  if (focus) {
    context.globalAlpha = 0.9;
    context.strokeStyle = theme.topics[colorOf(focus)] ?? theme.muted;
    trace((_, isNear) => isNear);
  }
  context.globalAlpha = 1;
}

/** Draw nodes, those of one color at once. Files are squares, topics have a rim. */
function drawNodes(context: CanvasRenderingContext2D, { colorOf, theme, place }: Scene, spots: Spot[], alpha: number): void {
  const groups = new Map<number, Spot[]>();
  for (const spot of spots) {
    const color = colorOf(spot);
    const group = groups.get(color);
    if (group) group.push(spot);
    else groups.set(color, [spot]);
  }
  context.globalAlpha = alpha;
  for (const [color, group] of groups) {
    context.fillStyle = theme.topics[color] ?? theme.muted;
    context.beginPath();
    for (const { node, x, y, radius: own } of group) {
      const radius = Math.max(own, LEAST_PIXELS / place.k);
      // So small, a square looks like a circle, and takes a third of the time.
      if (node.kind === "file" || radius * place.k <= LEAST_PIXELS) context.rect(x - radius * 0.86, y - radius * 0.86, radius * 1.72, radius * 1.72);
      else {
        context.moveTo(x + radius, y);
        context.arc(x, y, radius, 0, TURN);
      }
    }
    context.fill();
    context.strokeStyle = theme.background;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const { node, x, y, radius } of group) {
      if (node.kind !== "topic") continue;
      context.moveTo(x + radius - 3, y);
      context.arc(x, y, radius - 3, 0, TURN);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Draw rings around the chosen node, the center, and what is new. */
function drawRings(context: CanvasRenderingContext2D, { chosen, center, theme, now, place }: Scene, seen: Spot[]): void {
  const ring = (spot: Spot, gap: number, width: number) => {
    context.lineWidth = width / place.k;
    context.beginPath();
    context.arc(spot.x, spot.y, spot.radius + gap / place.k, 0, TURN);
    context.stroke();
  };
  context.strokeStyle = theme.text;
  if (center) ring(center, 3, 1.5);
  context.strokeStyle = theme.accent;
  if (chosen) ring(chosen, 5, 2.5);
  for (const spot of seen) {
    const age = spot.since ? (now - spot.since) / NEW_MS : 1;
    if (age >= 1) continue;
    context.globalAlpha = 1 - age;
    ring(spot, 3 + 14 * ((age * 3) % 1), 2);
  }
  context.globalAlpha = 1;
}

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** The node that is there; none if it is a label. */
  spot?: Spot;
}

function drawLabels(context: CanvasRenderingContext2D, scene: Scene, seen: Spot[], near: Set<Spot> | null): void {
  const { place, theme, focus, chosen, center } = scene;
  const rank = (spot: Spot) => {
    if (spot === focus || spot === chosen) return 4e6;
    if (near && !near.has(spot)) return -1;
    const isImportant = spot.node.kind === "topic" || spot === center;
    const isShown = isImportant || near?.has(spot) || spot.radius * place.k > 6.5;
    return isShown ? (isImportant ? 1e6 : 0) + spot.radius * 100 + Math.min(99, spot.near.length) : -1;
  };
  const ranked = seen.map((spot) => ({ spot, rank: rank(spot) })).filter((one) => one.rank >= 0);
  ranked.sort((one, other) => other.rank - one.rank);
  const taken = boxesOf(ranked.slice(0, MOST_LABELS).map((one) => one.spot), place);
  context.lineJoin = "round";
  context.textBaseline = "middle";
  let left = scene.isMoving ? MOST_LABELS_MOVING : MOST_LABELS;
  for (const { spot } of ranked) {
    const isTopic = spot.node.kind === "topic";
    const size = isTopic && place.k > 0.7 ? 13 : 11.5;
    context.font = `${isTopic || spot === focus ? 600 : 400} ${size}px ${theme.font}`;
    const text = spot === focus ? cut(spot.node.label, 60) : cut(spot.node.label, place.k > 0.7 ? MOST_CHARACTERS : MOST_CHARACTERS_FAR);
    const width = widthOf(context, text);
    const box = boxesFor(spot, scene, width, size).find((one) => isFree(one, spot, taken));
    if (!box) continue;
    taken.push(box);
    context.strokeStyle = theme.background;
    context.lineWidth = 3.5;
    const middle = (box.top + box.bottom) / 2;
    context.strokeText(text, box.left + 2, middle);
    context.fillStyle = isTopic || spot === focus || spot === chosen ? theme.text : theme.muted;
    context.fillText(text, box.left + 2, middle);
    if (--left <= 0) break;
  }
}

/** Return the boxes of nodes, which no label may cover but their own. */
function boxesOf(spots: Spot[], { x, y, k }: Place): Box[] {
  return spots.map((spot) => {
    const [left, top, radius] = [spot.x * k + x, spot.y * k + y, spot.radius * k];
    return { left: left - radius, top: top - radius, right: left + radius, bottom: top + radius, spot };
  });
}

function isFree(box: Box, spot: Spot, taken: Box[]): boolean {
  return !taken.some((one) => one.spot !== spot && box.left < one.right && box.right > one.left && box.top < one.bottom && box.bottom > one.top);
}

/** Return where a label may go, the best place first: below or above a topic, beside anything else. */
function boxesFor(spot: Spot, { place, width: whole, height }: Scene, width: number, size: number): Box[] {
  const [x, y, radius] = [spot.x * place.k + place.x, spot.y * place.k + place.y, spot.radius * place.k];
  const [below, above, middle] = [y + radius + 4, y - radius - size - 8, y - size / 2 - 2];
  const [right, left] = [x + radius + 4, x - radius - width - 8];
  const center = Math.max(0, Math.min(x - width / 2 - 2, whole - width - 4));
  const sides: Array<[number, number]> = [[right, middle], [left, middle]];
  const ends: Array<[number, number]> = [[center, below], [center, above]];
  return (spot.node.kind === "topic" ? [...ends, ...sides] : [...sides, ...ends])
    .map(([from, top]) => ({ left: from, top, right: from + width + 4, bottom: top + size + 4 }))
    .filter((one) => one.left >= 0 && one.top >= 0 && one.right <= whole && one.bottom <= height - LEGEND);
}

const widths = new Map<string, number>();

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font} ${text}`;
  let found = widths.get(key);
  if (found === undefined) {
    if (widths.size > 5000) widths.clear();
    widths.set(key, (found = context.measureText(text).width));
  }
  return found;
}

function cut(text: string, most: number): string {
  const characters = Array.from(text.slice(0, 4 * most));
  return characters.length > most ? `${characters.slice(0, most - 1).join("").trimEnd()}…` : text;
}
