// What is around every view: access, navigation, the search field, dialogs, and the keys that work everywhere.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, onAccess, open, type Project } from "./api";
import { Help } from "./help";
import { moveRow, useKeys } from "./keys";
import { Empty, Key, Title } from "./parts";
import { Remember } from "./remember";
import { ProjectMenu } from "./projects";
import { ALL, back, go, href, isReturn, parse, type Route, scope, useRoute } from "./router";
import { Said } from "./said";
import { VIEWS, type View } from "./views";

export function App() {
  const [project, setProject] = useState<Project | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    open()
      .then(setProject, (failure: unknown) => setError(asApiError(failure)))
      .finally(() => setReady(true));
    return onAccess(setProject);
  }, []);
  if (!isReady) return null;
  return project ? <Shell project={project} /> : <Locked error={error} />;
}

function Locked({ error }: { error: ApiError | null }) {
  return (
    <main class="locked">
      <span class="brand">memkit</span>
      <h1>This page needs a new link</h1>
      <p>Run this in your project, and open the link that it prints:</p>
      <pre>memkit serve --open</pre>
      <p class="muted">A link works once, and ends with its server. When it is open in this browser, this page goes on, too.</p>
      {error && error.status !== 401 && <p class="muted">{error.message}</p>}
    </main>
  );
}

function Shell({ project }: { project: Project }) {
  const route = useRoute();
  const view = VIEWS.find((one) => one.name === route.view);
  const shown = scope();
  const View = shown === ALL && view?.showAll ? view.showAll : view?.show;
  const [dialog, setDialog] = useState<"" | "help" | "remember">("");
  const search = useRef<HTMLInputElement>(null);
  const focusSearch = () => {
    search.current?.focus();
    search.current?.select();
  };
  const goes = VIEWS.filter((one) => one.key).map((one) => [`g ${one.key}`, () => go(href(one.name))]);
  useKeys({
    ...Object.fromEntries(goes),
    "g s": () => {
      go(href("search"));
      focusSearch();
    },
    "/": focusSearch,
    n: () => !shown && setDialog("remember"),
    "?": () => setDialog("help"),
    Escape: (event) => {
      if (event.target === search.current) search.current?.blur();
      else back();
    },
  });
  useViewOpened(route, view, project);
  const close = useCallback(() => setDialog(""), []);
  return (
    <div class={shown ? "frame is-other" : "frame"}>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>("main h1")?.focus()}>
        Skip to content
      </button>
      <aside class="side">
        <div class="side-head">
          <a class="brand" href={href("")}>
            memkit
          </a>
          <ProjectMenu project={project} route={route} />
        </div>
        <nav aria-label="Views">
          {VIEWS.filter((one) => one.label).map((one) => (
            <a key={one.name} href={href(one.name)} aria-current={one === view ? "page" : undefined}>
              <span>{one.label}</span>
              <span class="hint" aria-hidden="true">
                g {one.key}
              </span>
            </a>
          ))}
        </nav>
        <button type="button" class="quiet side-help" onClick={() => setDialog("help")}>
          <span>Keyboard</span>
          <span class="hint" aria-hidden="true">
            ?
          </span>
        </button>
      </aside>
      <div class="body">
        <header class="top">
          <SearchField route={route} field={search} />
          {!shown && (
            <button type="button" onClick={() => setDialog("remember")}>
              Remember
            </button>
          )}
        </header>
        <main class={view?.isWide ? "wide" : "column"}>
          {View ? <View key={shown} route={route} /> : <Unknown />}
        </main>
      </div>
      <Said />
      {dialog === "help" && <Help close={close} />}
      {dialog === "remember" && <Remember close={close} />}
    </div>
  );
}

function Unknown() {
  return (
    <>
      <Title>Not a page</Title>
      <Empty title="There is nothing at this address.">
        <a href={href("")}>Go to the timeline</a>
      </Empty>
    </>
  );
}

/** Name the page after the view, and move the focus to its heading, or to the row from which one has come back. */
function useViewOpened(route: Route, view: View | undefined, project: Project): void {
  const before = useRef("");
  useEffect(() => {
    document.title = `${view?.label || "Memory"} · ${scope() === ALL ? "All projects" : scope() || project.name} · memkit`;
    const from = before.current;
    before.current = location.hash;
    if (!from || document.activeElement?.id === "search") return;
    const focusRow = () => {
      const row = document.querySelector<HTMLElement>(`main a[data-row][href="${CSS.escape(from)}"]`);
      row?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: "center" });
      return row !== null;
    };
    if (isReturn() && focusRow()) return;
    scrollTo(0, 0);
    const heading = document.querySelector<HTMLElement>("main h1");
    heading?.focus({ preventScroll: true });
    if (!isReturn()) return;
    // The rows may still be loading. Somebody who goes on meanwhile is left alone.
    const watcher = new MutationObserver(() => (document.activeElement !== heading || focusRow()) && watcher.disconnect());
    watcher.observe(document.querySelector("main") as Node, { childList: true, subtree: true });
    return () => watcher.disconnect();
  }, [route.view, route.id, scope()]);
}

function SearchField({ route, field }: { route: Route; field: { current: HTMLInputElement | null } }) {
  const isSearch = route.view === "search";
  const asked = isSearch ? (route.query.get("q") ?? "") : "";
  const type = (text: string) => {
    const { view, query } = parse(location.hash); // the route is rendered later, and somebody may type fast
    const isThere = view === "search";
    go(href("search", "", { ...(isThere ? Object.fromEntries(query) : {}), q: text }), isThere);
  };
  return (
    <form
      role="search"
      class="search-field"
      onSubmit={(event) => {
        event.preventDefault();
        moveRow(1);
      }}
    >
      <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" />
        <path d="m10.5 10.5 3.5 3.5" />
      </svg>
      <input
        id="search"
        ref={field}
        type="search"
        placeholder="Search decisions, errors, files…"
        aria-label="Search the memory"
        autocomplete="off"
        spellcheck={false}
        maxLength={1000}
        value={asked}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" && moveRow(1)) event.preventDefault();
        }}
      />
      <Key>/</Key>
    </form>
  );
}
