// A year as a grid of days, colored by how much was done. One cell takes the Tab key, arrows move between cells.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Loaded } from "./api";
import { dateOf, dayAfter, fullDay, isoDay, LANGUAGE, plural, today } from "./format";
import { Failure } from "./parts";
import { go, href } from "./router";

/** What the server says of a year: for each day with memory, its sessions and turns. */
export interface Year {
  year: number;
  /** The years with memory. */
  years: number[];
  days: Array<{ day: string; sessions: number; turns: number; notes: number }>;
}

const MONTHS = Array.from({ length: 12 }, (_, i) => new Intl.DateTimeFormat(LANGUAGE, { month: "short" }).format(new Date(2026, i, 1)));
const WEEKDAYS = Array.from({ length: 7 }, (_, i) => new Intl.DateTimeFormat(LANGUAGE, { weekday: "short" }).format(new Date(2026, 0, 5 + i)));
const STEPS: Record<string, number> = { ArrowLeft: -7, ArrowRight: 7, ArrowUp: -1, ArrowDown: 1 };

type Counts = Year["days"][number];

export function Calendar({ day, year, setYear, loaded }: { day: string; year: number; setYear: (year: number) => void; loaded: Loaded<Year> }) {
  const [at, setAt] = useState(day);
  const scroller = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLDivElement>(null);
  const { data, error, reload } = loaded;
  useEffect(() => setAt(day), [day]);
  useEffect(() => {
    const box = scroller.current;
    if (box) box.scrollLeft = year === Number(today().slice(0, 4)) ? columnOf(today()) * 16 - box.clientWidth + 48 : 0;
  }, [year, data === null]);
  if (error) return <Failure error={error} retry={reload} />;
  const known = new Map((data?.days ?? []).map((one) => [one.day, one]));
  const full = fullAmount([...known.values()].map(amount));
  const days = daysOf(year);
  const focused = at.startsWith(`${year}-`) ? at : ([...known.keys()].filter((one) => one.startsWith(`${year}-`)).at(-1) ?? `${year}-01-01`);
  const total = [...known.values()].reduce((sum, one) => sum + one.sessions, 0);
  const active = [...known.values()].filter((one) => one.sessions > 0).length;
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    const target = dayAfter(focused, step);
    if (!target.startsWith(`${year}-`)) return;
    event.preventDefault();
    setAt(target);
    cells.current?.querySelector<HTMLElement>(`[data-day="${target}"]`)?.focus();
  };
  return (
    <section class="calendar" aria-label="Calendar">
      <header class="calendar-head">
        <div class="calendar-years">
          <button type="button" class="quiet" aria-label="The year before" disabled={!data || year <= (data.years[0] ?? year)} onClick={() => setYear(year - 1)}>
            ‹
          </button>
          <span class="num calendar-year">{year}</span>
          <button type="button" class="quiet" aria-label="The year after" disabled={year >= Number(today().slice(0, 4))} onClick={() => setYear(year + 1)}>
            ›
          </button>
        </div>
        <span class="muted num">{data ? `${plural(total, "session")} on ${plural(active, "day")}` : ""}</span>
        <span class="legend muted" aria-hidden="true">
          Less
          {[0, 1, 2, 3, 4].map((level) => (
            <i key={level} class={`heat heat-${level}`} />
          ))}
          More
        </span>
      </header>
      <div class="calendar-scroll" ref={scroller}>
        <div
          class="calendar-grid"
          style={{ gridTemplateColumns: `28px repeat(${columnOf(`${year}-12-31`) + 1}, minmax(13px, 1fr))` }}
          ref={cells}
          onKeyDown={move}
          role="group"
          aria-label={`Days of ${year}`}
        >
          {[0, 2, 4].map((number) => (
            <span key={number} class="weekday" style={{ gridColumn: 1, gridRow: 2 + number }} aria-hidden="true">
              {WEEKDAYS[number]}
            </span>
          ))}
          {MONTHS.map((name, i) => (
            <span key={name} class="month" style={{ gridColumn: columnOf(isoDay(new Date(year, i, 1, 12))) + 2, gridRow: 1 }} aria-hidden="true">
              {name}
            </span>
          ))}
          {days.map((one) => (
            <Cell key={one} day={one} counts={known.get(one)} full={full} isFocused={one === focused} isChosen={one === day} />
          ))}
        </div>
      </div>
    </section>
  );
}

function Cell({ day, counts, full, isFocused, isChosen }: { day: string; counts: Counts | undefined; full: number; isFocused: boolean; isChosen: boolean }) {
  const level = counts ? Math.min(4, Math.max(1, Math.ceil((4 * amount(counts)) / full))) : 0;
  const said = counts ? [counts.sessions && plural(counts.sessions, "session"), counts.turns && plural(counts.turns, "turn"), counts.notes && plural(counts.notes, "note")].filter(Boolean).join(", ") : "nothing";
  const label = `${fullDay(day)}: ${said}`;
  const isFuture = day > today();
  return (
    <button
      type="button"
      data-day={day}
      class={`heat heat-${level}`}
      style={{ gridColumn: columnOf(day) + 2, gridRow: 2 + weekday(dateOf(day)) }}
      tabIndex={isFocused ? 0 : -1}
      aria-label={label}
      aria-pressed={isChosen}
      title={label}
      disabled={isFuture}
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

function daysOf(year: number): string[] {
  const found: string[] = [];
  for (const date = new Date(year, 0, 1, 12); date.getFullYear() === year; date.setDate(date.getDate() + 1)) found.push(isoDay(date));
  return found;
}

/** Return the column of a day in its year: weeks begin on Monday. */
function columnOf(day: string): number {
  const date = dateOf(day);
  const first = new Date(date.getFullYear(), 0, 1, 12);
  const number = Math.round((date.getTime() - first.getTime()) / 86_400_000);
  return Math.floor((number + weekday(first)) / 7);
}

/** Return 0 for Monday to 6 for Sunday. */
function weekday(date: Date): number {
  return (date.getDay() + 6) % 7;
}
