// The timeline: a calendar of the year, and the sessions, newest first or those of one day.
import "./timeline.css";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, send, useAnswer } from "./api";
import { Calendar } from "./calendar";
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

export function Timeline({ route }: { route: Route }) {
  const day = route.query.get("day") ?? "";
  const [round, setRound] = useState(0);
  useChanges(() => setRound((old) => old + 1));
  useKeys(
    day
      ? { ArrowLeft: () => go(href("", "", { day: dayAfter(day, -1) })), ArrowRight: () => go(href("", "", { day: dayAfter(day, 1) })) }
      : {},
  );
  return (
    <>
      <Title>Timeline</Title>
      <Calendar key={`calendar ${round}`} day={day} />
      {day ? <Day key={`${day} ${round}`} day={day} /> : <Sessions key={round} />}
    </>
  );
}

/** All sessions by day. More are loaded when the end comes near. */
function Sessions() {
  const [rows, setRows] = useState<SessionRow[]>([]);
  const [next, setNext] = useState<string | null>("");
  const [error, setError] = useState<ApiError | null>(null);
  const isAsking = useRef(false);
  const load = useCallback(async () => {
    if (isAsking.current || next === null) return;
    isAsking.current = true;
    setError(null);
    try {
      const page = await send<SessionPage>("sessions", { parameters: { limit: PAGE, after: next } });
      setRows((old) => [...old, ...page.sessions]);
      setNext(page.next);
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      isAsking.current = false;
    }
  }, [next]);
  useEffect(() => {
    if (next === "") void load();
  }, []);
  if (error && !rows.length) return <Failure error={error} retry={() => void load()} />;
  if (!rows.length) return next === null ? <Nothing /> : <Loading rows={8} what="Loading sessions" />;
  return (
    <>
      {[...byDay(rows)].map(([day, sessions]) => (
        <section key={day} class="day">
          <h2 class="day-head">
            <a href={href("", "", { day })}>{longDay(day)}</a>
          </h2>
          <ul class="rows">
            {sessions.map((row) => (
              <SessionLine key={row.session} row={row} />
            ))}
          </ul>
        </section>
      ))}
      {error && <Failure error={error} retry={() => void load()} />}
      {next !== null && !error && <More load={load} />}
    </>
  );
}

function byDay(rows: SessionRow[]): Map<string, SessionRow[]> {
  const days = new Map<string, SessionRow[]>();
  for (const row of rows) {
    const day = row.ends.slice(0, 10);
    days.set(day, [...(days.get(day) ?? []), row]);
  }
  return days;
}

/** A button that presses itself when it comes into view. */
function More({ load }: { load: () => Promise<void> }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (seen) => {
        if (seen.some((one) => one.isIntersecting)) void load();
      },
      { rootMargin: "400px" },
    );
    if (button.current) watcher.observe(button.current);
    return () => watcher.disconnect();
  }, [load]);
  return (
    <button ref={button} type="button" class="more" onClick={() => void load()}>
      Earlier sessions
    </button>
  );
}

/** The sessions and the notes of one day. */
function Day({ day }: { day: string }) {
  const sessions = useAnswer<SessionPage>("sessions", { day, limit: 100 });
  const node = useAnswer<DayNode>(`timeline/${encodeURIComponent(day)}`, { depth: 1 });
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
      {sessions.error && sessions.error.status !== 404 ? (
        <Failure error={sessions.error} retry={sessions.reload} />
      ) : sessions.isLoading || node.isLoading ? (
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
                  <span class="row-title">{note.title}</span>
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
