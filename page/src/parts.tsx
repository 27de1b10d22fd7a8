// Small parts that all views use.
import type { ComponentChildren } from "preact";
import type { ApiError } from "./api";
import { shortDay } from "./format";
import { href } from "./router";

/** The heading of a view. It gets the focus when the view opens. */
export function Title({ children, aside }: { children: ComponentChildren; aside?: ComponentChildren }) {
  return (
    <header class="title">
      <h1 tabIndex={-1}>{children}</h1>
      {aside && <div class="title-aside">{aside}</div>}
    </header>
  );
}

/** Lines in the place of text that is being loaded. They appear only if that takes a moment. */
export function Loading({ rows = 6, what = "Loading" }: { rows?: number; what?: string }) {
  return (
    <div class="loading" role="status">
      <span class="sr">{what}…</span>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} class="bone" aria-hidden="true" />
      ))}
    </div>
  );
}

/** Why something failed, and a way to try it again. */
export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="notice notice-bad" role="alert">
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What to say where there is nothing, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

interface MissingProps {
  title: string;
  error: ApiError | null;
  retry: () => void;
  rows: number;
  what?: string;
}

/** The view of an entry that is not there: it is loading, it is not in the memory, or it cannot be loaded. */
export function Missing({ title, error, retry, ...loading }: MissingProps) {
  return (
    <>
      <Title>{title}</Title>
      {!error && <Loading {...loading} />}
      {error?.status === 404 && (
        <Empty title="This is not in the memory.">
          It may have been forgotten. <a href={href("")}>Go to the timeline</a>
        </Empty>
      )}
      {error && error.status !== 404 && <Failure error={error} retry={retry} />}
    </>
  );
}

/** A small word that says what something is, or what is wrong with it. */
export function Mark({ kind = "plain", title, children }: { kind?: "plain" | "warn" | "bad" | "good"; title?: string; children: ComponentChildren }) {
  return (
    <span class={`mark mark-${kind}`} {...(title ? { title } : {})}>
      {children}
    </span>
  );
}

/** Why something no longer holds: a later entry, by its id, date, and text. Any of them may be missing. */
export interface Later {
  id?: string;
  date?: string;
  text?: string;
}

/** A mark that leads to what is newer, and says it. */
export function Outdated({ word, later }: { word: string; later: Later }) {
  const said = `${word}${later.date ? ` ${shortDay(later.date)}` : ""}${later.text ? `: ${later.text}` : ""}`;
  if (!later.id) return <Mark kind="warn">{said}</Mark>;
  return (
    <a class="mark mark-warn cut" href={href("entry", later.id, { kind: "fact" })} title={said}>
      {said}
    </a>
  );
}

export function Key({ children }: { children: string }) {
  return <kbd>{children}</kbd>;
}
