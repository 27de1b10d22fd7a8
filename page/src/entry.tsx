// A note, a fact, or a passage of any other Markdown file.
import { useState } from "preact/hooks";
import { at, readOnly, useAnswer } from "./api";
import { fullDay } from "./format";
import { useKeys } from "./keys";
import { Markdown } from "./markdown";
import { Forget } from "./forget";
import { Mark, Missing, Title } from "./parts";
import { back, href, type Route } from "./router";
import { say } from "./said";

interface EntryData {
  kind: string;
  id: string;
  path: string;
  line: number;
  session: string | null;
  turns: string[];
  content: string;
  tags?: string[];
}

const NAMES: Record<string, string> = { note: "Note", fact: "Fact", citation: "Bullet", day: "Day" };

export function Entry({ route }: { route: Route }) {
  const { data, error, reload } = useAnswer<EntryData>(at("memory", route.id));
  const [isForgetting, setForgetting] = useState(false);
  useKeys({ x: () => (readOnly() ? say(readOnly()) : data && setForgetting(true)) });
  if (error || !data) return <Missing title="Entry" error={error} retry={reload} rows={4} />;
  // A result of a search is only known as such; the link from there says what it is.
  const kind = data.kind === "result" ? (route.query.get("kind") ?? "") : data.kind;
  const day = /(\d{4}-\d\d-\d\d)/.exec(data.path.split(/[\\/]/).at(-1) ?? "")?.[1];
  return (
    <div class="session">
      <Title>{NAMES[kind] ?? "Passage"}</Title>
      <p class="facts">
        {day && <a href={href("", "", { day })}>{fullDay(day)}</a>}
        {data.session && <a href={href("session", data.session)}>Its session</a>}
        {tagsOf(kind, data).map((tag) => (
          <Mark key={tag}>{tag}</Mark>
        ))}
        <span class="mono cut" title={data.path}>
          {data.path.split(/[\\/]/).at(-1)}:{data.line}
        </span>
        <button type="button" class="link danger-link" onClick={() => setForgetting(true)}>
          Forget
        </button>
      </p>
      <Markdown text={bodyOf(kind, data.content)} />
      {isForgetting && <Forget id={data.id} title={bodyOf(kind, data.content)} close={() => setForgetting(false)} done={back} />}
    </div>
  );
}

const HEADING = /^#{1,6}\s+(\d\d:\d\d\s+)?(Note: )?/;

function tagsOf(kind: string, { tags, content }: EntryData): string[] {
  if (tags || kind !== "note") return tags ?? [];
  return /^Tags: (.*)$/m.exec(content)?.[1]?.split(/,\s*/) ?? [];
}

/** Return the text of an entry without the lines that the page shows elsewhere. */
function bodyOf(kind: string, content: string): string {
  if (kind !== "note") return content;
  return content.replace(HEADING, "").replace(/^(Tags|Metadata): .*$/gm, "").trim();
}
