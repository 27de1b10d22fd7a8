// The projects of this machine: the menu at the name, and the sessions and topics of all of them.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { type Project, useAnswer } from "./api";
import { longDay, plural, shortDay } from "./format";
import { Failure, Loading, Title } from "./parts";
import { ALL, go, href, type Route, scope } from "./router";
import { SessionLine, type SessionRow } from "./timeline";

export interface ListedProject extends Project {
  last: string;
  served: boolean;
}

export function useProjects(): ListedProject[] {
  return useAnswer<{ projects: ListedProject[] }>("projects").data?.projects ?? [];
}

/** Return the value of `in` for a project, which answers name by its root or its name. */
export function scopeOf(projects: ListedProject[], project: string): string {
  const found = projects.find((one) => one.root === project || one.name === project);
  return found && !found.served ? found.name : "";
}

/** The views that show the same of another project. The others name something of one. */
const STAYS = ["", "search", "topics", "files", "health"];

export function ProjectMenu({ project, route }: { project: Project; route: Route }) {
  const projects = useProjects();
  if (projects.length < 2) {
    return (
      <span class="project" title={project.root}>
        {project.name}
      </span>
    );
  }
  const choose = (chosen: string) => {
    const isSame = STAYS.includes(route.view) && !route.id;
    go(isSame ? href(route.view, "", { q: route.query.get("q") ?? "", in: chosen }) : href("", "", { in: chosen }));
  };
  return (
    <select class="project" aria-label="Project" value={scope()} onChange={(event) => choose(event.currentTarget.value)}>
      {projects.map((one) => (
        <option key={one.root} value={one.served ? "" : one.name}>
          {one.name}
        </option>
      ))}
      <option value={ALL}>All projects</option>
    </select>
  );
}

export function AllSessions() {
  const projects = useProjects();
  return (
    <>
      <Title>Timeline</Title>
      <SessionsAfter projects={projects} after="" day="" />
    </>
  );
}

/** A page of sessions, and those that follow once somebody asks for them. `day` is the last one above. */
function SessionsAfter({ projects, after, day }: { projects: ListedProject[]; after: string; day: string }) {
  const { data, error, reload } = useAnswer<{ sessions: Array<SessionRow & { project: string }>; next: string | null }>("sessions", { all_projects: true, limit: 40, after });
  const [isMore, setMore] = useState(false);
  if (error) return <Failure error={error} retry={reload} />;
  if (!data) return <Loading rows={8} what="Loading sessions" />;
  const dayOf = (row: SessionRow | undefined) => row?.ends.slice(0, 10) ?? day;
  return (
    <>
      <ul class="rows day">
        {data.sessions.map((row, i) => {
          const other = scopeOf(projects, row.project);
          const own = dayOf(row);
          return (
            <Fragment key={row.session}>
              {own !== (i ? dayOf(data.sessions[i - 1]) : day) && <li class="all-day"><h2 class="day-head">{longDay(own)}</h2></li>}
              <SessionLine row={row} project={other || projects.find((one) => one.served)?.name || row.project} other={other} />
            </Fragment>
          );
        })}
      </ul>
      {data.next !== null &&
        (isMore ? (
          <SessionsAfter projects={projects} after={data.next} day={dayOf(data.sessions.at(-1))} />
        ) : (
          <button type="button" class="more" onClick={() => setMore(true)}>
            Earlier sessions
          </button>
        ))}
    </>
  );
}

/** The projects, in the place of a view that shows one at a time. */
export function OneOf({ view, what }: { view: string; what: string }) {
  return (
    <section class="day">
      <p class="muted">{what} of one project at a time:</p>
      <ul class="rows">
        {useProjects().map((one) => (
          <li key={one.root}>
            <a class="row all-row" data-row href={href(view, "", { in: one.served ? "" : one.name })}>
              <span class="row-title">{one.name}</span>
              <span class="num muted">{one.last && shortDay(one.last)}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

export const AllFiles = () => [<Title>Files</Title>, <OneOf view="files" what="Files are shown" />];

const MOST_PROJECTS = 20;

export function AllTopics() {
  const projects = useProjects();
  return (
    <>
      <Title>Topics</Title>
      {projects.slice(0, MOST_PROJECTS).map((one) => (
        <ProjectTopics key={one.root} project={one} />
      ))}
    </>
  );
}

function ProjectTopics({ project }: { project: ListedProject }) {
  const own = project.served ? "" : project.name;
  const { data, error, isLoading, reload } = useAnswer<{ topics: Array<{ id: string; label: string; entries: number }> }>("topics", { limit: 8, project: own });
  return (
    <section class="day">
      <h2 class="day-head">
        <a href={href("topics", "", { in: own })}>{project.name}</a>
        <span class="muted num">{project.last && shortDay(project.last)}</span>
      </h2>
      {isLoading && !data && <Loading rows={2} />}
      {error && (error.status === 404 ? <p class="muted">No topics so far.</p> : <Failure error={error} retry={reload} />)}
      <ul class="rows">
        {data?.topics.map((topic) => (
          <li key={topic.id}>
            <a class="row all-row" data-row href={href("topics", topic.id, { in: own })}>
              <span class="row-title">{topic.label}</span>
              <span class="num muted">{plural(topic.entries, "entry", "entries")}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
