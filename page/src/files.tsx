// Files: which were edited most, on what, and when; and the history of one of them.
import "./topics.css";
import { useCallback, useEffect } from "preact/hooks";
import { useAnswer } from "./api";
import { LANGUAGE, minute, plural, shortDay } from "./format";
import { useChanges } from "./live";
import { InlineMarkdown, RowText } from "./markdown";
import { Empty, Missing, Title } from "./parts";
import { go, href, type Route } from "./router";
import { colorsOf, dotClass, useTopics } from "./topic_data";
import { mondayOf, weekOf } from "./weeks";

interface FileMap {
  weeks: string[];
  groups: Array<{ topic: string; label: string; files: Array<{ path: string; edits: number; weeks: Record<string, number> }> }>;
  largest: Array<{ path: string; week: string; edits: number; title: string; outcome: string }>;
  all: number;
}

/** The weeks that a phone shows. */
const FEW_WEEKS = 9;
/** Fewer edits than this are no large mark, even if no other file has more. */
const LEAST_MOST = 6;
const MONTH = new Intl.DateTimeFormat(LANGUAGE, { month: "short", timeZone: "UTC" });
const DAY = new Intl.DateTimeFormat(LANGUAGE, { month: "short", day: "numeric", timeZone: "UTC" });

export function Files() {
  const { data, error, reload } = useAnswer<FileMap>("files", {}, true);
  const colors = colorsOf(useTopics().data?.topics ?? []);
  useChanges(useCallback(() => reload(), []));
  if (!data) return <Missing title="Files" error={error} retry={reload} rows={8} what="Loading the files" />;
  if (!data.all) {
    return (
      <>
        <Title>Files</Title>
        <Empty title="No file was edited yet.">
          Sessions that edit files appear here. <a href={href("")}>Go to the timeline</a>
        </Empty>
      </>
    );
  }
  const shown = data.groups.reduce((count, group) => count + group.files.length, 0);
  return (
    <>
      <Title aside={`${shown < data.all ? `${shown} of ` : ""}${plural(data.all, "file")}, ${plural(data.weeks.length, "week")}`}>Files</Title>
      <div class="files">
        <Table data={data} colors={colors} />
        <section>
          <h2 class="day-head">The most work</h2>
          <ol class="rows">
            {data.largest.map((one, number) => (
              <li key={`${one.path} ${one.week}`}>
                <a class="row files-large" data-row href={href("file", one.path, { week: one.week })}>
                  <b class="num">{number + 1}</b>
                  <span class="row-text">
                    <span class="mono cut">{nameOf(one.path)}</span>
                    <span class="row-title">
                      <InlineMarkdown text={one.outcome || one.title} />
                    </span>
                    <span class="row-outcome">
                      {plural(one.edits, "edit")}, week of {DAY.format(mondayOf(one.week))}
                    </span>
                  </span>
                </a>
              </li>
            ))}
          </ol>
        </section>
      </div>
    </>
  );
}

function Table({ data: { weeks, groups, largest }, colors }: { data: FileMap; colors: Map<string, number> }) {
  const most = Math.max(LEAST_MOST, ...largest.map((one) => one.edits));
  const ranks = new Map(largest.map((one, number) => [`${one.path} ${one.week}`, number + 1]));
  const classOf = (number: number) => (number < weeks.length - FEW_WEEKS ? "files-old" : "");
  const months = weeks.map((week) => MONTH.format(mondayOf(week)));
  return (
    <table class="files-table">
      <caption class="sr">Edits of each file in each week, by topic</caption>
      <thead>
        <tr>
          <th scope="col">File</th>
          {weeks.map((week, number) => (
            <th key={week} scope="col" class={classOf(number)}>
              <span class="sr">Week of {DAY.format(mondayOf(week))}</span>
              <span aria-hidden="true">{months[number] === months[number - 1] || (!number && months[0] !== months[1] && months[1]) ? "" : months[number]}</span>
            </th>
          ))}
        </tr>
      </thead>
      {groups.map((group) => (
        <tbody key={group.topic}>
          <tr>
            <th class="files-topic" colSpan={weeks.length + 1} scope="rowgroup">
              <i class={dotClass(colors.get(group.topic))} aria-hidden="true" />
              {group.topic ? <a href={href("topics", group.topic)}>{group.label}</a> : "In no topic"}
            </th>
          </tr>
          {group.files.map(({ path, edits, weeks: counts }) => (
            <tr key={path} class="files-row" onClick={(event) => event.target instanceof Element && !event.target.closest("a") && go(href("file", path))}>
              <th scope="row">
                <a data-row href={href("file", path)} title={`${path}: ${plural(edits, "edit")}`}>
                  {nameOf(path)}
                  <span class="muted">{path.slice(0, -nameOf(path).length - 1)}</span>
                </a>
              </th>
              {weeks.map((week, number) => {
                const count = counts[week];
                const size = `${5 + 14 * Math.sqrt((count ?? 0) / most)}px`;
                return (
                  <td key={week} class={classOf(number)}>
                    {count && (
                      <a tabIndex={-1} href={href("file", path, { week })} title={`${plural(count, "edit")} in the week of ${DAY.format(mondayOf(week))}`}>
                        <i class={dotClass(colors.get(group.topic))} style={{ width: size, height: size }} aria-hidden="true" />
                        <span class="sr">{count}</span>
                        <b aria-hidden="true">{ranks.get(`${path} ${week}`)}</b>
                      </a>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

function nameOf(path: string): string {
  return path.split("/").at(-1) ?? path;
}

interface History {
  names: string[];
  events: Array<{ kind: string; time: string; title: string; outcome: string; id: string; commits: string[] }>;
  all: number;
}

const KINDS: Record<string, string> = { edit: "Edit", read: "Read", bullet: "Summary", fact: "Fact", commit: "Commit" };

/** What happened to a file, the newest first. */
export function FileHistory({ route }: { route: Route }) {
  const { data, error, reload } = useAnswer<History>("files/history", { file: route.id });
  useChanges(useCallback(() => reload(), [route.id]));
  const week = route.query.get("week");
  useEffect(() => document.querySelector(".is-in")?.scrollIntoView({ block: "center" }), [data, week]);
  if (!data) return <Missing title={route.id} error={error} retry={reload} rows={6} />;
  const touched = data.events.some((one) => one.kind === "edit" || one.kind === "read");
  return (
    <>
      <Title aside={touched && <a class="button" href={href("graph", "", { around: `file:${route.id}` })}>Show what is around</a>}>
        {route.id}
      </Title>
      {data.names.length > 1 && <p class="muted">Before: {data.names.slice(1).join(", ")}</p>}
      {!data.events.length && <Empty title="Nothing is known of this file.">No turn read or edited it, and git has no commit of it.</Empty>}
      <ul class="rows">
        {[...data.events].reverse().map((one) => {
          const row = (
            <>
              <span class="row-time num">
                {shortDay(one.time)} {minute(one.time)}
              </span>
              <span class="muted">{KINDS[one.kind] ?? one.kind}</span>
              <RowText {...one} />
              <span class="row-aside mono">{one.kind === "commit" ? one.id : one.commits.join(" ")}</span>
            </>
          );
          const name = `row files-event ${week && weekOf(one.time) === week ? "is-in" : ""}`;
          return (
            <li key={`${one.kind} ${one.id}`}>
              {one.kind === "commit" ? <div class={name}>{row}</div> : <a class={name} data-row href={href(one.kind === "edit" || one.kind === "read" ? "turn" : "entry", one.id)}>{row}</a>}
            </li>
          );
        })}
      </ul>
      {data.all > data.events.length && <p class="muted">{plural(data.all - data.events.length, "more event")}: older reads.</p>}
    </>
  );
}
