// A map that a person moves through: it draws when something changed, and knows the pointer and the keys.
import { select } from "d3-selection";
import { zoom, type ZoomBehavior, zoomIdentity, type ZoomTransform } from "d3-zoom";
import { draw, NEW_MS, type Theme } from "./graph_draw";
import { type GraphData, Layout, type Spot } from "./graph_layout";

export interface MapOptions {
  /** Called when a person chooses a node, or none. */
  onChoose: (id: string | null) => void;
  /** Called when a person opens a node. */
  onOpen: (id: string) => void;
  /** Called when the nodes begin or cease to move. */
  onMoving: (isMoving: boolean) => void;
}

const LAYOUT_MS = 10;
const REACH = { mouse: 6, touch: 16 };
const ARROWS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class GraphMap {
  private readonly layout = new Layout();
  private readonly context: CanvasRenderingContext2D;
  private readonly zoom: ZoomBehavior<HTMLCanvasElement, unknown>;
  private readonly watch: ResizeObserver;
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly calm = matchMedia("(prefers-reduced-motion: reduce)");
  private readonly ending = new AbortController();
  private place: ZoomTransform = zoomIdentity;
  private theme: Theme;
  private colors = new Map<string, number>();
  private frame = 0;
  private hovered: Spot | null = null;
  private chosen: Spot | null = null;
  private center: Spot | null = null;
  private dragged: { spot: Spot; pointer: number; hasMoved: boolean } | null = null;
  /** Whether the map still fits itself into the window: until a person moves it. */
  private isFitting = true;
  private wasMoving = false;
  private size = { width: 0, height: 0 };

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly options: MapOptions,
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser draws on no canvas");
    this.context = context;
    this.theme = themeOf(canvas);
    this.zoom = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([0.08, 6])
      .filter((event: Event) => !this.dragged && !(event as MouseEvent).button && !(event.type !== "wheel" && this.spotOf(event)))
      .on("zoom", (event: { transform: ZoomTransform; sourceEvent: Event | null }) => {
        this.place = event.transform;
        if (event.sourceEvent) this.isFitting = false;
        this.redraw();
      });
    select(canvas).call(this.zoom).on("dblclick.zoom", null);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(canvas);
    const { signal } = this.ending;
    this.dark.addEventListener("change", () => { this.theme = themeOf(canvas); this.redraw(); }, { signal });
    canvas.addEventListener("pointermove", (event) => this.move(event), { signal });
    canvas.addEventListener("pointerleave", () => this.hover(null), { signal });
    // Before d3-zoom's own listeners, which would take the press for the beginning of a move of the whole map.
    canvas.addEventListener("pointerdown", (event) => this.press(event), { signal });
    for (const name of ["pointerup", "pointercancel"] as const) canvas.addEventListener(name, (event) => this.release(event), { signal });
    canvas.addEventListener("click", (event) => this.click(event), { signal });
    canvas.addEventListener("dblclick", (event) => this.open(this.spotOf(event)), { signal });
    canvas.addEventListener("keydown", (event) => this.key(event), { signal });
  }

  /** Show a map around a node, or a whole one. With `isLive`, it is the former one, with what is new. */
  show(data: GraphData, center: string, isLive: boolean): void {
    this.layout.set(data, isLive && !this.calm.matches ? performance.now() : 0);
    this.center = this.layout.find(center) ?? null;
    this.chosen = (this.chosen && this.layout.find(this.chosen.node.id)) ?? null;
    this.hovered = null;
    if (!isLive) this.isFitting = true;
    this.redraw();
  }

  /** Take the numbers of topics' colors, by the topics' IDs. */
  paint(colors: Map<string, number>): void {
    this.colors = colors;
    this.redraw();
  }

  /** Mark a node as the chosen one; bring it into view if `isCentered`. */
  choose(id: string | null, isCentered = false): void {
    this.chosen = (id && this.layout.find(id)) || null;
    if (this.chosen && isCentered) this.reveal(this.chosen);
    this.redraw();
  }

  /** Show the whole map. */
  fit(): void {
    this.isFitting = true;
    this.redraw();
  }

  zoomBy(factor: number): void {
    this.isFitting = false;
    select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  end(): void {
    cancelAnimationFrame(this.frame);
    this.frame = -1;
    this.watch.disconnect();
    this.ending.abort();
    select(this.canvas).on(".zoom", null);
  }

  private redraw(): void {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.step(now));
  }

  private step(now: number): void {
    this.frame = 0;
    if (!this.size.width) return;
    const isMoved = this.layout.advance(this.calm.matches ? 30 : LAYOUT_MS, this.calm.matches ? 60 : undefined);
    const { isMoving } = this.layout;
    if (isMoving !== this.wasMoving) this.options.onMoving((this.wasMoving = isMoving));
    // A person who wants less motion sees the map when it has come to rest.
    if (!(isMoving && this.calm.matches && !this.dragged)) {
      if (this.isFitting) this.fitNow(isMoved);
      const isNew = this.layout.spots.some((spot) => spot.since && now - spot.since < NEW_MS);
      draw(this.context, {
        layout: this.layout,
        place: this.place,
        ...this.size,
        focus: this.hovered ?? this.chosen,
        chosen: this.chosen,
        center: this.center,
        colorOf: (spot) => this.colors.get(spot.node.topic) ?? -1,
        theme: this.theme,
        now,
        isMoving: isMoving || this.dragged !== null,
      });
      if (isNew) this.redraw();
    }
    if (isMoving) this.redraw();
  }

  private fitNow(isSoft: boolean): void {
    const { width, height } = this.size;
    const [left, top, right, bottom] = this.layout.extent;
    const margin = Math.min(64, width / 10);
    const k = Math.min(2, (width - 2 * margin) / (right - left), (height - 2 * margin) / (bottom - top));
    const wanted = zoomIdentity.translate(width / 2 - (k * (left + right)) / 2, height / 2 - (k * (top + bottom)) / 2).scale(k);
    // While the nodes move, the window follows slowly, so that the map does not tremble.
    const share = isSoft && this.place !== zoomIdentity && !this.calm.matches ? 0.25 : 1;
    const between = (from: number, to: number) => from + share * (to - from);
    const next = zoomIdentity.translate(between(this.place.x, wanted.x), between(this.place.y, wanted.y)).scale(between(this.place.k, wanted.k));
    this.place = next;
    select(this.canvas).property("__zoom", next); // where the next move of a person begins
  }

  private reveal({ x, y }: Spot): void {
    const { width, height } = this.size;
    const [px, py] = this.place.apply([x, y]);
    if (px > 40 && py > 40 && px < width - 40 && py < height - 40) return;
    this.isFitting = false;
    select(this.canvas).call(this.zoom.translateTo, x, y);
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(2, devicePixelRatio);
    this.size = { width, height };
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.zoom.extent([[0, 0], [width, height]]);
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.step(performance.now()); // at once: the new canvas is empty
  }

  private pointOf(event: Event): [number, number] {
    const { clientX, clientY } = event instanceof MouseEvent ? event : ((event as TouchEvent).touches[0] ?? { clientX: -1e6, clientY: -1e6 });
    const { left, top } = this.canvas.getBoundingClientRect();
    return this.place.invert([clientX - left, clientY - top]);
  }

  private spotOf(event: Event): Spot | null {
    const isTouch = !(event instanceof MouseEvent) || (event instanceof PointerEvent && event.pointerType === "touch");
    return this.layout.at(...this.pointOf(event), REACH[isTouch ? "touch" : "mouse"] / this.place.k) ?? null;
  }

  private hover(spot: Spot | null): void {
    if (spot === this.hovered) return;
    this.hovered = spot;
    this.canvas.classList.toggle("is-over", spot !== null);
    this.redraw();
  }

  private move(event: PointerEvent): void {
    if (this.dragged?.pointer === event.pointerId) {
      const [x, y] = this.pointOf(event);
      const { spot } = this.dragged;
      if (!this.dragged.hasMoved && Math.hypot(x - spot.x, y - spot.y) * this.place.k < 4) return;
      this.dragged.hasMoved = true;
      this.isFitting = false;
      [spot.fx, spot.fy] = [x, y];
      if (this.calm.matches) [spot.x, spot.y] = [x, y];
      else this.layout.warm(0.18);
      this.layout.moved();
      this.redraw();
    } else if (event.pointerType !== "touch") this.hover(event.buttons ? null : this.spotOf(event));
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0 || this.dragged) return;
    const spot = this.spotOf(event);
    if (!spot) return;
    this.dragged = { spot, pointer: event.pointerId, hasMoved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  private release(event: PointerEvent): void {
    if (this.dragged?.pointer !== event.pointerId) return;
    const { spot, hasMoved } = this.dragged;
    [spot.fx, spot.fy] = [null, null];
    this.dragged = null;
    if (!hasMoved && event.type === "pointerup") this.pick(spot);
    this.redraw();
  }

  private click(event: MouseEvent): void {
    if (!this.spotOf(event) && !event.defaultPrevented) this.pick(null);
  }

  private pick(spot: Spot | null): void {
    this.chosen = spot;
    this.options.onChoose(spot?.node.id ?? null);
    this.redraw();
  }

  private open(spot: Spot | null): void {
    if (spot) this.options.onOpen(spot.node.id);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const from = this.chosen ?? this.center;
      const spot = from ? this.layout.toward(from, ...arrow) : this.layout.spots[0];
      if (spot) {
        this.pick(spot);
        this.reveal(spot);
      }
    } else if (event.key === "Enter") this.open(this.chosen);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.4);
    else if (event.key === "-") this.zoomBy(1 / 1.4);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape" && this.chosen) this.pick(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Return the colors of the page as they are now. */
function themeOf(element: Element): Theme {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    background: of("bg"),
    text: of("text"),
    muted: of("muted"),
    edge: of("edge"),
    accent: of("accent"),
    topics: Array.from({ length: TOPIC_COLORS }, (_, number) => of(`topic-${number}`)),
    font: of("sans"),
  };
}

export const TOPIC_COLORS = 9;
