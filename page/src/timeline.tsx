// The timeline: a calendar of the year, and the sessions, newest first or those of one day.
import "./timeline.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, at, keep, recall, send, useAnswer } from "./api";
import { Calendar, type Year } from "./calendar";
import { dayAfter, fullDay, longDay, minute, plural, today } from "./format";
import { useKeys } from "./keys";
import { useChanges } from "./live";
import { InlineMarkdown } from "./markdown";
import { Empty, Failure, Loading, Title } from "./parts";
import { go, href, type Route } from "./router";

export interface SessionRow {
  session: string;
  begins: string;
  ends: string;
  title: string;
  outcome: string;
  turns: string[];
  branch: string;
}

interface SessionPage {
  sessions: SessionRow[];
  next: string | null;
}

interface DayNode {
  children: Array<{ kind: string; id: string; first: string; title: string }>;
}

const PAGE = 40;

/** Return an ISO day, or "" if an address names none. */
function dayOf(text: string): string {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : "";
}

export function Timeline({ route }: { route: Route }) {
  const day = dayOf(route.query.get("day") ?? "");
  const file = route.query.get("file") ?? "";
  const [year, setYear] = useState(Number((day || today()).slice(0, 4)));
  const calendar = useAnswer<Year>(`calendar/${year}`, {}, true);
  useEffect(() => {
    if (day) setYear(Number(day.slice(0, 4)));
  }, [day]);
  useChanges(calendar.reload);
  useKeys(
    day
      ? { ArrowLeft: () => go(href("", "", { day: dayAfter(day, -1) })), ArrowRight: () => go(href("", "", { day: dayAfter(day, 1) })) }
      : {},
  );
  return (
    <>
      <Title aside={file && <a href={href("")}>All sessions</a>}>{file ? `Sessions that used ${file}` : "Timeline"}</Title>
      {!file && <Calendar day={day} year={year} setYear={setYear} loaded={calendar} />}
      {day ? <Day day={day} held={heldBy(calendar.data, day)} /> : <Sessions key={file} file={file} notes={file ? new Map() : notesOf(calendar.data)} />}
    </>
  );
}

/** Return how many notes each day has. */
function notesOf(year: Year | null): Map<string, number> {
  return new Map((year?.days ?? []).filter((one) => one.notes > 0).map((one) => [one.day, one.notes]));
}

/** All sessions by day, and how many notes there are. More are loaded when the end comes near. */
function Sessions({ file, notes }: { file: string; notes: Map<string, number> }) {
  const name = `sessions ${file}`;
  const before = recall<{ rows: SessionRow[]; next: string | null }>(name);
  const [rows, setRows] = useState<SessionRow[]>(before?.rows ?? []);
  const [next, setNext] = useState<string | null>(before ? before.next : "");
  const [error, setError] = useState<ApiError | null>(null);
  const isAsking = useRef(false);
  const load = async (after: string | null) => {
    if (isAsking.current || after === null) return;
    isAsking.current = true;
    setError(null);
    try {
      const page = await send<SessionPage>("sessions", { parameters: { limit: PAGE, after, file } });
      const found = new Set(page.sessions.map((row) => row.session));
      setRows((old) => [...old.filter((row) => !found.has(row.session)), ...page.sessions].sort((a, b) => (a.ends < b.ends ? 1 : -1)));
      if (after || next === "") setNext(page.next);
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      isAsking.current = false;
    }
  };
  useEffect(() => {
    if (next === "") void load("");
  }, []);
  useEffect(() => {
    if (rows.length) keep(name, { rows, next });
  }, [rows, next]);
  useChanges(() => void load(""));
  if (error && !rows.length) return <Failure error={error} retry={() => void load(next)} />;
  if (!rows.length && next !== null) return <Loading rows={8} what="Loading sessions" />;
  if (!rows.length && !notes.size) return <Nothing />;
  const days = byDay(rows, [...notes.keys()], next === null);
  return (
    <>
      {[...days].map(([day, sessions]) => (
        <section key={day} class="day">
          <h2 class="day-head">
            <a href={href("", "", { day })}>{longDay(day)}</a>
          </h2>
          <ul class="rows">
            {sessions.map((row) => (
              <SessionLine key={row.session} row={row} />
            ))}
            {notes.has(day) && (
              <li>
                <a class="row" data-row href={href("", "", { day })}>
                  <span class="row-time" />
                  <span class="row-text row-title">{plural(notes.get(day) ?? 0, "note")}</span>
                </a>
              </li>
            )}
          </ul>
        </section>
      ))}
      {error && <Failure error={error} retry={() => void load(next)} />}
      {next !== null && !error && <More load={() => void load(next)} />}
    </>
  );
}

/** Return the sessions of each day, newest first. Days with notes alone are there down to the last session. */
function byDay(rows: SessionRow[], others: string[], isAll: boolean): Map<string, SessionRow[]> {
  const end = isAll ? "" : (rows.at(-1)?.ends ?? "");
  const names = new Set([...rows.map((row) => row.ends.slice(0, 10)), ...others.filter((day) => day > end)]);
  const days = new Map([...names].sort().reverse().map((day): [string, SessionRow[]] => [day, []]));
  for (const row of rows) days.get(row.ends.slice(0, 10))?.push(row);
  return days;
}

/** A button that presses itself when it comes into view. */
function More({ load }: { load: () => void }) {
  const latest = useRef(load);
  latest.current = load;
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (seen) => {
        if (seen.some((one) => one.isIntersecting)) latest.current();
      },
      { rootMargin: "400px" },
    );
    if (button.current) watcher.observe(button.current);
    return () => watcher.disconnect();
  }, []);
  return (
    <button ref={button} type="button" class="more" onClick={load}>
      Earlier sessions
    </button>
  );
}

type Held = Pick<Year["days"][number], "sessions" | "notes">;

/** Return what a day holds, null until that is known. */
function heldBy(year: Year | null, day: string): Held | null {
  if (year?.year !== Number(day.slice(0, 4))) return null;
  return year.days.find((one) => one.day === day) ?? { sessions: 0, notes: 0 };
}

/** The sessions and the notes of one day. */
function Day({ day, held }: { day: string; held: Held | null }) {
  const sessions = useAnswer<SessionPage>(held?.sessions ? "sessions" : null, { day, limit: 100 });
  const node = useAnswer<DayNode>(held?.notes ? at("timeline", day) : null, { depth: 1 });
  useChanges(() => {
    sessions.reload();
    node.reload();
  });
  const notes = (node.data?.children ?? []).filter((one) => one.kind === "note");
  const rows = sessions.data?.sessions ?? [];
  return (
    <section class="day">
      <div class="day-head">
        <h2>{fullDay(day)}</h2>
        <div class="day-moves">
          <a class="move" href={href("", "", { day: dayAfter(day, -1) })} aria-label="The day before">
            ←
          </a>
          <a class="move" href={href("", "", { day: dayAfter(day, 1) })} aria-label="The day after" aria-disabled={day >= today() ? "true" : undefined}>
            →
          </a>
          <a href={href("")}>All days</a>
        </div>
      </div>
      {sessions.error || node.error ? (
        <Failure error={(sessions.error ?? node.error) as ApiError} retry={sessions.error ? sessions.reload : node.reload} />
      ) : !held || (held.sessions > 0 && !sessions.data) || (held.notes > 0 && !node.data) ? (
        <Loading rows={4} what="Loading the day" />
      ) : rows.length + notes.length === 0 ? (
        <Empty title="Nothing is remembered of this day.">Days with sessions are colored in the calendar.</Empty>
      ) : (
        <ul class="rows">
          {rows.map((row) => (
            <SessionLine key={row.session} row={row} />
          ))}
          {notes.map((note) => (
            <li key={note.id}>
              <a class="row" data-row href={href("entry", note.id)}>
                <span class="row-time num">{minute(note.first)}</span>
                <span class="row-text">
                  <span class="row-title">
                    <InlineMarkdown text={note.title} />
                  </span>
                </span>
                <span class="row-aside">Note</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function SessionLine({ row }: { row: SessionRow }) {
  return (
    <li>
      <a class="row" data-row href={href("session", row.session)}>
        <span class="row-time num">{minute(row.begins)}</span>
        <span class="row-text">
          <span class="row-title">{row.title || "Session without a title"}</span>
          {row.outcome && (
            <span class="row-outcome">
              <InlineMarkdown text={row.outcome} />
            </span>
          )}
        </span>
        <span class="row-aside">
          {row.branch && (
            <span class="branch cut" title={`Branch ${row.branch}`}>
              {row.branch}
            </span>
          )}
          <span class="num row-count">{plural(row.turns.length, "turn")}</span>
        </span>
      </a>
    </li>
  );
}

function Nothing() {
  return (
    <Empty title="The memory is empty so far.">
      Work with Claude Code in this project, or run <code>memkit import</code> to take over old sessions.
    </Empty>
  );
}
