// The last weeks as a grid of days, colored by how much was done. One cell takes the Tab key, arrows move between cells.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Loaded, useAnswer } from "./api";
import { dateOf, dayAfter, fullDay, LANGUAGE, plural, shortDay, today } from "./format";
import { Failure } from "./parts";
import { go, href } from "./router";

/** What the server says of a year: for each day with memory, its sessions and turns. */
interface Year {
  /** The years with memory. */
  years: number[];
  days: Counts[];
}

interface Counts {
  day: string;
  sessions: number;
  turns: number;
  notes: number;
}

/** The weeks to show: the last ones up to the newest entry, or those around the chosen day. */
export interface CalendarWeeks {
  first: string;
  last: string;
  counts: Map<string, Counts>;
  hasEarlier: boolean;
  hasLater: boolean;
  move: (weeks: number) => void;
  loaded: Loaded<Year>;
}

const WEEKS = 26;
const MONTH = new Intl.DateTimeFormat(LANGUAGE, { month: "short" });
const WEEKDAYS = Array.from({ length: 7 }, (_, i) => new Intl.DateTimeFormat(LANGUAGE, { weekday: "short" }).format(new Date(2026, 0, 5 + i)));
const STEPS: Record<string, number> = { ArrowLeft: -7, ArrowRight: 7, ArrowUp: -1, ArrowDown: 1 };

/** Load the weeks that have a day, or the last ones with memory if it is "". */
export function useWeeks(day: string): CalendarWeeks {
  const [end, setEnd] = useState("");
  const [year, setYear] = useState(today().slice(0, 4));
  const later = useAnswer<Year>(`calendar/${end.slice(0, 4) || year}`, {}, true);
  const newest = later.data?.days.at(-1)?.day;
  const last = sundayOf(end || newest || today());
  const first = dayAfter(last, 1 - 7 * WEEKS);
  const other = first.slice(0, 4) === (end || newest || year).slice(0, 4) ? null : `calendar/${first.slice(0, 4)}`;
  const earlier = useAnswer<Year>(other, {}, true);
  const years = later.data?.years ?? [];
  useEffect(() => {
    if (later.data && !newest && years.length) setYear(String(years.at(-1))); // there is nothing in this year
  }, [later.data]);
  useEffect(() => {
    if (day && (day < first || day > last)) setEnd(day);
  }, [day]);
  const days = [...(other ? (earlier.data?.days ?? []) : []), ...(later.data?.days ?? [])];
  const reload = () => {
    later.reload();
    if (other) earlier.reload();
  };
  return {
    first,
    last,
    counts: new Map(days.filter((one) => one.day >= first && one.day <= last).map((one) => [one.day, one])),
    hasEarlier: (years[0] ?? 9999) <= Number(first.slice(0, 4)),
    hasLater: end !== "",
    move: (weeks) => setEnd(dayAfter(last, 7 * weeks) < today() ? dayAfter(last, 7 * weeks) : ""),
    loaded: { ...later, error: later.error ?? earlier.error, reload },
  };
}

export function Calendar({ day, weeks }: { day: string; weeks: CalendarWeeks }) {
  const [at, setAt] = useState(day);
  const cells = useRef<HTMLDivElement>(null);
  const { first, last, counts, loaded } = weeks;
  useEffect(() => setAt(day), [day]);
  if (loaded.error) return <Failure error={loaded.error} retry={loaded.reload} />;
  const full = fullAmount([...counts.values()].map(amount));
  const days = Array.from({ length: 7 * WEEKS }, (_, i) => dayAfter(first, i));
  const focused = at >= first && at <= last ? at : ([...counts.keys()].at(-1) ?? first);
  const active = [...counts.values()].filter((one) => one.sessions > 0);
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    const target = step && dayAfter(focused, step);
    if (!target || target < first || target > last) return;
    event.preventDefault();
    setAt(target);
    cells.current?.querySelector<HTMLElement>(`[data-day="${target}"]`)?.focus();
  };
  return (
    <section class="calendar" aria-label="Calendar">
      <div class="calendar-grid" ref={cells} onKeyDown={move} role="group" aria-label={`Days from ${fullDay(first)} to ${fullDay(last)}`}>
        {[0, 2, 4].map((number) => (
          <span key={number} class="weekday" style={{ gridColumn: 1, gridRow: 2 + number }} aria-hidden="true">
            {WEEKDAYS[number]}
          </span>
        ))}
        {days.map((one, i) =>
          one.endsWith("-01") ? (
            <span key={`month ${one}`} class="month" style={{ gridColumn: 2 + Math.floor(i / 7), gridRow: 1 }} aria-hidden="true">
              {MONTH.format(dateOf(one))}
            </span>
          ) : null,
        )}
        {days.map((one, i) => (
          <Cell key={one} day={one} place={i} counts={counts.get(one)} full={full} isFocused={one === focused} isChosen={one === day} />
        ))}
      </div>
      <div class="calendar-side muted">
        <p class="num">{loaded.data ? `${plural(active.reduce((sum, one) => sum + one.turns, 0), "turn")} on ${plural(active.length, "day")}` : ""}</p>
        <p class="num">
          {shortDay(first)} – {shortDay(last < today() ? last : today())}
        </p>
        <p class="calendar-moves">
          <button type="button" class="quiet" aria-label="Earlier weeks" disabled={!weeks.hasEarlier} onClick={() => weeks.move(-WEEKS)}>
            ‹
          </button>
          <button type="button" class="quiet" aria-label="Later weeks" disabled={!weeks.hasLater} onClick={() => weeks.move(WEEKS)}>
            ›
          </button>
        </p>
      </div>
    </section>
  );
}

interface CellProperties {
  day: string;
  place: number;
  counts: Counts | undefined;
  full: number;
  isFocused: boolean;
  isChosen: boolean;
}

function Cell({ day, place, counts, full, isFocused, isChosen }: CellProperties) {
  const level = counts ? Math.min(4, Math.max(1, Math.ceil((4 * amount(counts)) / full))) : 0;
  const said = counts ? [counts.sessions && plural(counts.sessions, "session"), counts.turns && plural(counts.turns, "turn"), counts.notes && plural(counts.notes, "note")].filter(Boolean).join(", ") : "nothing";
  const label = `${fullDay(day)}: ${said}`;
  return (
    <button
      type="button"
      data-day={day}
      class={`heat heat-${level}`}
      style={{ gridColumn: 2 + Math.floor(place / 7), gridRow: 2 + (place % 7) }}
      tabIndex={isFocused ? 0 : -1}
      aria-label={label}
      aria-pressed={isChosen}
      title={label}
      disabled={day > today()}
      onClick={() => go(href("", "", { day: isChosen ? "" : day }))}
    />
  );
}

function amount(counts: Counts): number {
  return counts.turns + counts.notes;
}

/** Return the amount from which a day has the strongest color: few days have more, so they do not pale the others. */
function fullAmount(amounts: number[]): number {
  const sorted = amounts.sort((a, b) => a - b);
  return Math.max(1, sorted[Math.floor(0.9 * (sorted.length - 1))] ?? 1);
}

/** Return the last day of a day's week. */
function sundayOf(day: string): string {
  return dayAfter(day, (7 - dateOf(day).getDay()) % 7);
}
