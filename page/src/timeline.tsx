// The timeline: a calendar of the last weeks; below it sessions with what came of them, and notes, newest first.
import "./timeline.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, keep, recall, send, useAnswer } from "./api";
import { Calendar, useWeeks } from "./calendar";
import { dayAfter, fullDay, nearDay, minute, plural, shortDay, today } from "./format";
import { useKeys } from "./keys";
import { useChanges } from "./live";
import { InlineMarkdown, RowText } from "./markdown";
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

interface NoteRow {
  id: string;
  time: string;
  text: string;
}

interface SessionPage {
  sessions: SessionRow[];
  notes: NoteRow[];
  next: string | null;
}

const PAGE = 40;

/** Return an ISO day, or "" if an address names none. */
function dayOf(text: string): string {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : "";
}

export function Timeline({ route }: { route: Route }) {
  const day = dayOf(route.query.get("day") ?? "");
  const file = route.query.get("file") ?? "";
  const weeks = useWeeks(day);
  useChanges(weeks.loaded.reload);
  useKeys(
    day
      ? { ArrowLeft: () => go(href("", "", { day: dayAfter(day, -1) })), ArrowRight: () => go(href("", "", { day: dayAfter(day, 1) })) }
      : {},
  );
  return (
    <>
      <Title aside={file && <a href={href("")}>All sessions</a>}>{file ? `Sessions that used ${file}` : "Timeline"}</Title>
      {!file && <Calendar day={day} weeks={weeks} />}
      {day ? <Day day={day} /> : <Sessions key={file} file={file} />}
    </>
  );
}

/** All sessions and notes by day. More are loaded when the end comes near. */
function Sessions({ file }: { file: string }) {
  const name = `sessions ${file}`;
  const before = recall<SessionPage>(name);
  const [rows, setRows] = useState<Omit<SessionPage, "next">>(before ?? { sessions: [], notes: [] });
  const [next, setNext] = useState<string | null>(before ? before.next : "");
  const [error, setError] = useState<ApiError | null>(null);
  const isAsking = useRef(false);
  const load = async (after: string | null) => {
    if (isAsking.current || after === null) return;
    isAsking.current = true;
    setError(null);
    try {
      const page = await send<SessionPage>("sessions", { parameters: { limit: PAGE, after, file } });
      setRows((old) => ({
        sessions: joined(old.sessions, page.sessions, (row) => row.session),
        notes: joined(old.notes, page.notes, (row) => row.id),
      }));
      if (after || next === "") setNext(page.next);
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      isAsking.current = false;
    }
  };
  const isEmpty = !rows.sessions.length && !rows.notes.length;
  useEffect(() => {
    if (next === "") void load("");
  }, []);
  useEffect(() => {
    if (!isEmpty) keep(name, { ...rows, next });
  }, [rows, next]);
  useChanges(() => void load(""));
  if (error && isEmpty) return <Failure error={error} retry={() => void load(next)} />;
  if (isEmpty && next !== null) return <Loading rows={8} what="Loading sessions" />;
  if (isEmpty) return <Nothing />;
  return (
    <>
      {[...byDay(rows)].map(([day, lines]) => (
        <section key={day} class="day">
          <h2 class="day-name">
            <a href={href("", "", { day })}>{nearDay(day)}</a>
          </h2>
          <Lines lines={lines} />
        </section>
      ))}
      {error && <Failure error={error} retry={() => void load(next)} />}
      {next !== null && !error && <More load={() => void load(next)} />}
    </>
  );
}

/** Return the rows of a page added to those before; a row that has changed takes the place of the old one. */
function joined<Row>(old: Row[], page: Row[], nameOf: (row: Row) => string): Row[] {
  return [...new Map([...old, ...page].map((row) => [nameOf(row), row])).values()];
}

type Line = SessionRow | NoteRow;

/** When a line has its place in the list: when a session was last active. */
function timeOf(line: Line): string {
  return "time" in line ? line.time : line.ends;
}

/** Return the lines of each day, newest first. */
function byDay({ sessions, notes }: Omit<SessionPage, "next">): Map<string, Line[]> {
  const days = new Map<string, Line[]>();
  for (const line of [...sessions, ...notes].sort((a, b) => timeOf(b).localeCompare(timeOf(a)))) {
    const day = timeOf(line).slice(0, 10);
    days.set(day, [...(days.get(day) ?? []), line]);
  }
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

/** The sessions and the notes of one day. */
function Day({ day }: { day: string }) {
  const { data, error, reload } = useAnswer<SessionPage>("sessions", { day, limit: 100 });
  useChanges(reload);
  const [lines] = data ? byDay(data).values() : [];
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
      {error ? (
        <Failure error={error} retry={reload} />
      ) : !data ? (
        <Loading rows={4} what="Loading the day" />
      ) : lines ? (
        <Lines lines={lines} />
      ) : (
        <Empty title="Nothing is remembered of this day.">Days with sessions are colored in the calendar.</Empty>
      )}
    </section>
  );
}

function Lines({ lines }: { lines: Line[] }) {
  return <ul class="rows">{lines.map((line) => ("time" in line ? <NoteLine key={line.id} note={line} /> : <SessionLine key={line.session} row={line} />))}</ul>;
}

function NoteLine({ note }: { note: NoteRow }) {
  return (
    <li>
      <a class="row" data-row href={href("entry", note.id)}>
        <span class="row-time num">{minute(note.time)}</span>
        <span class="row-text row-title">
          <InlineMarkdown text={note.text} />
        </span>
        <span class="row-aside">Note</span>
      </a>
    </li>
  );
}

/** A session. Among those of all projects, `project` names its own, and `other` is that for the address. */
export function SessionLine({ row, project, other }: { row: SessionRow; project?: string; other?: string }) {
  const isOneDay = row.begins.slice(0, 10) === row.ends.slice(0, 10);
  return (
    <li>
      <a class="row" data-row href={href("session", row.session, other === undefined ? {} : { in: other })}>
        <span class="row-time num" title={row.begins === row.ends ? undefined : `${row.begins} – ${row.ends}`}>
          {isOneDay ? minute(row.begins) : shortDay(row.begins).replace(/^\w+, /, "")}
          {row.begins !== row.ends && <span class="row-end"> – {minute(row.ends)}</span>}
        </span>
        <RowText {...row} />
        <span class="row-aside">
          {project && <span class="cut">{project}</span>}
          {!project && row.branch && (
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
