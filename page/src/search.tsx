// Search as you type: the field is in the frame, here are the filters and the results.
import "./search.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useAnswer } from "./api";
import { longDay, minute, plural, shortDay } from "./format";
import { useKeys } from "./keys";
import { InlineMarkdown, RowText } from "./markdown";
import { lastWord, patternOf } from "./marked";
import { Empty, Failure, type Later, Loading, Mark, Outdated, Title } from "./parts";
import { type ListedProject, scopeOf, useProjects } from "./projects";
import { ALL, go, href, type Route, scope } from "./router";

export interface Result {
  id: string;
  relevance: number;
  score: number;
  source: string;
  heading: string;
  kind: string;
  date: string;
  session: string;
  /** Its name, and where it is. */
  project: string;
  root?: string;
  turns: string[];
  branch: string;
  content: string;
  superseded?: Later;
  changed_by?: Later;
  git?: { line?: string };
  excerpt?: { time: string; title: string; match: string; outcome: string; words: string[]; session: string };
  explanation?: Explanation;
}

/** How a score came about. Which parts there are depends on the mode of search. */
interface Explanation {
  lexical?: { rank: number; score: number } | null;
  dense?: { rank: number; score: number } | null;
  neighbors?: number;
  session?: number;
  boost?: number;
  place?: number;
}

/** What was done, left open, or worked on: the answer to a question about work in general. */
interface Overview {
  kind: string;
  sessions?: Array<{ session: string; project: string; begins: string; title: string; outcome: string }>;
  lines?: Array<{ id: string; project: string; time: string; text: string; session: string }>;
  topics?: Array<{ id: string; project: string; label: string; last: string }>;
}

interface Answer {
  period?: { since: string; until: string } | null;
  overview?: Overview;
  mode: string;
  degraded_reason?: string;
  took_ms: number;
  chunks: number;
  best_relevance: number;
  results: Result[];
  nearest?: Array<{ text: string; id?: string }>;
}

const PAUSE_MS = 30;
const FILTERS = ["since", "until", "kind", "branch", "session", "path"] as const;
const KINDS: Array<[string, string]> = [
  ["", "Everything"],
  ["turn", "Turns"],
  ["summary", "Summaries"],
  ["note", "Notes"],
  ["facts", "Facts"],
];
const LIMIT = 12; // an excerpt takes as long as ranking 10,000 entries
const MOST = 30;
const NEAR = 0.8; // of the best relevance

export function Search({ route }: { route: Route }) {
  const query = (route.query.get("q") ?? "").trim();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, route.query.get(name) ?? ""]));
  const asked = usePaused(query);
  const [widened, setWidened] = useState(""); // the query of which more is shown
  const limit = asked === widened ? MOST : LIMIT;
  const { data, error, isLoading, reload } = useAnswer<Answer>(asked ? "memory/search" : null, { query: asked, limit, details: true, ...filters, ...(scope() === ALL ? { all_projects: true } : {}) }, true);
  const projects = useProjects();
  const isFiltered = Object.values(filters).some(Boolean);
  return (
    <>
      <Title aside={data && asked && !error && !generalOf(data) ? <Summary answer={data} /> : undefined}>Search</Title>
      <Filters route={route} values={filters} />
      {data?.degraded_reason && (
        <div class="notice notice-warn" role="status">
          <p>{data.degraded_reason}</p>
        </div>
      )}
      <div aria-live="polite" aria-busy={isLoading} class={isLoading && data ? "results stale" : "results"}>
        {error ? (
          <Failure error={error} retry={reload} />
        ) : !asked ? (
          <Start />
        ) : !data ? (
          <Loading rows={8} what="Searching" />
        ) : generalOf(data) ? (
          <General answer={data} projects={projects} />
        ) : data.results.length === 0 ? (
          <NothingFound query={asked} answer={data} isFiltered={isFiltered} hasOthers={projects.length > 1 && scope() !== ALL} />
        ) : (
          <ol class="rows">
            {folded(data.results).map(([lead, ...others]) => (
              <Found key={lead.id} result={lead} query={asked} others={others} projects={projects} />
            ))}
          </ol>
        )}
        {data && !error && asked && limit === LIMIT && data.results.length === LIMIT && (
          <button type="button" class="more" onClick={() => setWidened(asked)}>
            More results
          </button>
        )}
      </div>
    </>
  );
}

/** Return the overview that an answer is instead of results, if it says anything. */
function generalOf({ results, overview }: Answer): Overview | undefined {
  return overview && !results.length && [overview.sessions, overview.lines, overview.topics].some((one) => one?.length) ? overview : undefined;
}

const ABOUT: Record<string, string> = { open: "Left open, the newest first", recent: "The last sessions", topics: "What the work was about" };

function General({ answer, projects }: { answer: Answer; projects: ListedProject[] }) {
  const { kind, sessions = [], lines = [], topics = [] } = generalOf(answer) as Overview;
  const { since = "", until = "" } = answer.period ?? {};
  const isOne = since === until;
  const heading = kind === "open" && !lines.length ? "No session ended with an open question. The last sessions:" : ABOUT[kind];
  const inOf = (project: string) => (scope() === ALL ? { in: scopeOf(projects, project) } : {});
  const rows = [
    ...topics.map((one) => ({ time: one.last, title: one.label, outcome: "", address: href("topics", one.id, inOf(one.project)) })),
    ...lines.map((one) => ({ time: one.time, title: one.text, outcome: "", address: one.session ? href("session", one.session, inOf(one.project)) : href("entry", one.id, inOf(one.project)) })),
    ...sessions.map((one) => ({ ...one, time: one.begins, address: href("session", one.session, inOf(one.project)) })),
  ];
  return (
    <section class="day">
      <h2 class="day-head">{heading ?? [since, isOne ? "" : until].filter(Boolean).map(isOne ? longDay : shortDay).join(" – ")}</h2>
      <ul class="rows">
        {rows.map((row) => (
          <li key={row.address + row.title}>
            <a class="row general" data-row href={row.address}>
              <span class="row-time num">
                {!(kind === "period" && isOne) && shortDay(row.time)} {minute(row.time)}
              </span>
              <RowText {...row} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Return the query once nobody has typed for a moment. The first one counts at once. */
function usePaused(query: string): string {
  const [asked, setAsked] = useState(query);
  useEffect(() => {
    if (query === asked) return;
    const timer = setTimeout(() => setAsked(query), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [query]);
  return query ? asked : "";
}

function Summary({ answer }: { answer: Answer }) {
  return (
    <span class="num">
      {plural(answer.results.length, "result")} of {plural(answer.chunks, "entry", "entries")} in {Math.max(1, Math.round(answer.took_ms))} ms
    </span>
  );
}

function Filters({ route, values }: { route: Route; values: Record<string, string> }) {
  const set = (name: string, value: string) => go(href("search", "", { ...Object.fromEntries(route.query), [name]: value }), true);
  const text = (name: string, label: string, placeholder: string) => (
    <label class="filter">
      <span>{label}</span>
      <input type="text" value={values[name]} placeholder={placeholder} spellcheck={false} maxLength={300} onChange={(event) => set(name, event.currentTarget.value.trim())} />
    </label>
  );
  const isAny = Object.values(values).some(Boolean);
  const [isOpen, setOpen] = useState(isAny);
  return (
    <>
      <button type="button" class="filters-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters
      </button>
      <form class={isOpen ? "filters open" : "filters"} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <label class="filter">
          <span>Kind</span>
          <select value={values.kind} onChange={(event) => set("kind", event.currentTarget.value)}>
            {KINDS.map(([kind, label]) => (
              <option key={kind} value={kind}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label class="filter">
          <span>From</span>
          <input type="date" value={values.since} onChange={(event) => set("since", event.currentTarget.value)} />
        </label>
        <label class="filter">
          <span>To</span>
          <input type="date" value={values.until} onChange={(event) => set("until", event.currentTarget.value)} />
        </label>
        {text("branch", "Branch", "Any")}
        {text("path", "Markdown file", "docs/*.md")}
        {values.session && (
          <span class="filter-chip">
            <Mark>In one session</Mark>
          </span>
        )}
        {isAny && (
          <button type="button" class="quiet" onClick={() => go(href("search", "", { q: route.query.get("q") ?? "" }), true)}>
            Clear filters
          </button>
        )}
      </form>
    </>
  );
}

function Start() {
  return (
    <Empty title="What was decided, found, or changed?">
      Type a question or a few words. <kbd>j</kbd> and <kbd>k</kbd> move through the results.
    </Empty>
  );
}

function NothingFound({ query, answer, isFiltered, hasOthers }: { query: string; answer: Answer; isFiltered: boolean; hasOthers: boolean }) {
  return (
    <Empty title={`Nothing found for “${query}”.`}>
      {isFiltered ? "The filters leave out much. Clear them, or use fewer words." : "Fewer words, or other ones?"}{" "}
      {hasOthers && <a href={href("search", "", { q: query, in: ALL })}>Search all projects</a>}
      {answer.nearest?.length ? (
        <ul class="nearest">
          {answer.nearest.map((one, i) => (
            <li key={i}>{one.id ? <a href={href("entry", one.id)}>{one.text}</a> : one.text}</li>
          ))}
        </ul>
      ) : null}
    </Empty>
  );
}

function addressOf(result: Result, projects: ListedProject[]): string {
  const project = scope() === ALL ? { in: scopeOf(projects, result.root ?? result.project) } : {};
  if (result.session) return href("session", result.session, { turn: result.turns[0], ...project });
  return href("entry", result.id, { kind: result.kind, ...project });
}

const timeOf = (result: Result) => `${result.date} ${result.excerpt?.time ?? ""}`;

/** Return the results in groups of one title, each at the place of its best. The newest of about the best leads, then the others by time. */
function folded(results: Result[]): Array<[Result, ...Result[]]> {
  const groups = new Map<string, Result[]>();
  for (const one of results) {
    const name = one.kind === "turn" ? `${one.project} ${one.excerpt?.title ?? one.heading}`.toLowerCase() : one.id;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  return [...groups.values()].map((same) => {
    same.sort((a, b) => timeOf(b).localeCompare(timeOf(a)));
    const best = Math.max(...same.map((one) => one.relevance));
    const lead = same.find((one) => one.relevance >= NEAR * best) as Result;
    return [lead, ...same.filter((one) => one !== lead)];
  });
}

/** Return what decides, then what answers; a part that says the same again is left out. */
function textOf({ match = "", outcome = "" }: Partial<NonNullable<Result["excerpt"]>>): string {
  const parts = /^Decided\b/.test(outcome) ? [outcome, match] : [match, outcome];
  return parts.filter((one, i) => one && !parts[1 - i]?.includes(one)).join(" ");
}

const NAMES: Record<string, string> = { turn: "Turn", summary: "Summary", note: "Note", facts: "Fact", fact: "Fact", text: "Text" };

/** A result, and `others` of the same title. */
function Found({ result, query, others, projects }: { result: Result; query: string; others: Result[]; projects: ListedProject[] }) {
  const [isOpen, setOpen] = useState(false);
  const [isUnfolded, setUnfolded] = useState(false);
  const { title = result.heading, session = "", time = "", words = [] } = result.excerpt ?? {};
  const matches = [...words, ...lastWord(query)];
  const text = textOf(result.excerpt ?? {});
  const item = useRef<HTMLLIElement>(null);
  useKeys({ w: () => item.current?.contains(document.activeElement) === true && setOpen(!isOpen) });
  return (
    <li class="found" ref={item}>
      <a class="row found-row" data-row href={addressOf(result, projects)}>
        <span class="row-text">
          <span class="row-title">
            <InlineMarkdown text={title} matches={matches} />
          </span>
          {text && (
            <span class="found-excerpt">
              <InlineMarkdown text={text} matches={matches} />
            </span>
          )}
        </span>
        <span class="row-aside num" title={longDay(result.date)}>
          {result.date && shortDay(result.date)} {minute(time)}
        </span>
      </a>
      <div class="found-foot">
        {scope() === ALL && <span class="found-project">{result.project}</span>}
        <span>{NAMES[result.kind] ?? result.kind}</span>
        {session && session !== title && <span class="cut found-session">{session}</span>}
        {result.branch && <span class="branch cut">{result.branch}</span>}
        <Marks result={result} />
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Why this result
        </button>
        {others.length > 0 && (
          <button type="button" class="link" aria-expanded={isUnfolded} onClick={() => setUnfolded(!isUnfolded)}>
            {others.length} {others.every((one) => timeOf(one) <= timeOf(result)) ? "earlier" : "more"}
          </button>
        )}
      </div>
      {isOpen && <WhyThis result={result} matches={matches} />}
      {isUnfolded && (
        <ol class="rows folded">
          {others.map((one) => (
            <Found key={one.id} result={one} query={query} others={[]} projects={projects} />
          ))}
        </ol>
      )}
    </li>
  );
}

function Marks({ result }: { result: Result }) {
  const { superseded, changed_by: later, git } = result;
  return (
    <>
      {superseded && <Outdated word="Superseded" later={superseded} />}
      {later && <Outdated word="Changed" later={later} />}
      {git?.line && <Mark kind="warn">{git.line}</Mark>}
    </>
  );
}

function WhyThis({ result, matches }: { result: Result; matches: readonly string[] }) {
  const found = patternOf(matches);
  const words = found ? [...new Set([...result.content.matchAll(found)].map((one) => one[0].toLowerCase()))] : [];
  const { lexical, dense, neighbors, session, boost, place } = result.explanation ?? {};
  const ranked = (one: { rank: number; score: number } | null | undefined, score: (value: number) => string) => one && `#${one.rank} (${score(one.score)})`;
  const rows: Array<[string, string | null | undefined | false]> = [
    ["Relevance", `${Math.round(100 * result.relevance)} %`],
    ["Has the words", words.length ? words.slice(0, 8).join(", ") : "none; found by its meaning"],
    ["By words (BM25)", ranked(lexical, (value) => value.toFixed(2)) ?? "not found"],
    ["By meaning (cosine)", ranked(dense, (value) => value.toFixed(2)) ?? "not found"],
    ["From its surroundings", neighbors !== undefined && `+${neighbors.toFixed(2)}`],
    ["From its session", session !== undefined && `+${session.toFixed(2)}`],
    ["Boost", boost !== undefined && boost !== 1 && `× ${boost.toFixed(2)}`],
    ["For its place and age", place !== undefined && place.toFixed(2)],
    ["Score", result.score.toFixed(2)],
    ["In the file", `${result.source.split("/").at(-1)}`],
  ];
  return (
    <dl class="why">
      {rows.filter(([, value]) => value).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="num">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
