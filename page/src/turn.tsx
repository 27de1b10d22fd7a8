// A turn as a page: what the person said, what was done and how that ended, and the answer.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { at, useAnswer } from "./api";
import { Exchange, type Transcript } from "./exchange";
import { fullDay, minute, plural } from "./format";
import { useKeys } from "./keys";
import { InlineMarkdown, Markdown, Said } from "./markdown";
import { Failure, type Later, Mark, Outdated } from "./parts";
import { href } from "./router";

export interface Turn {
  id: string;
  day: string;
  time: string;
  title: string;
  branch: string;
  prompt: string;
  tools: string[];
  outcome: string;
  answer: string;
  files: Array<{ file: string; edited: boolean }>;
  bullets: string[];
  superseded: Later | null;
  git: { line?: string } | null;
}

/** Return the id of the turn that has the focus, or of the only one. */
export function focusedTurn(): string {
  const turns = document.querySelectorAll<HTMLElement>("article[data-turn]");
  const focused = document.activeElement?.closest<HTMLElement>("article[data-turn]");
  return (focused ?? (turns.length === 1 ? turns[0] : undefined))?.dataset.turn ?? "";
}

interface TurnProperties {
  turn: Turn;
  isNewDay: boolean;
  forget: () => void;
}

export function TurnView({ turn, isNewDay, forget }: TurnProperties) {
  const [isOriginal, setOriginal] = useState(false);
  useKeys({
    o: () => focusedTurn() === turn.id && setOriginal(!isOriginal),
  });
  return (
    <article class="turn" data-turn={turn.id} aria-label={turn.title || "Turn"}>
      {isNewDay && <p class="new-day">{fullDay(turn.day)}</p>}
      <header class="turn-head">
        <h2>
          <a class="turn-time num" href={href("turn", turn.id)} data-row aria-label={`Turn of ${minute(turn.time)}`}>
            {minute(turn.time) || "–"}
          </a>
        </h2>
        <div class="turn-actions">
          <button type="button" class="link" aria-pressed={isOriginal} onClick={() => setOriginal(!isOriginal)}>
            {isOriginal ? "Show digest" : "Original exchange"}
          </button>
          <button type="button" class="link danger-link" onClick={forget}>
            Forget
          </button>
        </div>
      </header>
      {(turn.superseded || turn.git?.line) && (
        <p class="turn-marks">
          {turn.superseded && <Outdated word="Superseded" later={turn.superseded} />}
          {turn.git?.line && <Mark kind="warn">{turn.git.line}</Mark>}
        </p>
      )}
      {isOriginal ? (
        <Exchange turn={turn.id} />
      ) : (
        <>
          <Asked turn={turn} />
          {turn.tools.length > 0 && <Tools lines={turn.tools} />}
          {turn.outcome === "interrupted" && <Mark>Interrupted</Mark>}
          {turn.answer && (
            <div class="answer">
              <Whole turn={turn.id} text={turn.answer} />
            </div>
          )}
          {turn.files.length > 0 && (
            <footer class="turn-foot">
              {turn.files.map(({ file, edited }) => (
                <a key={file} class="file" href={href("file", file)} title={`History of ${file}`}>
                  {file}
                  {edited && <span class="muted"> edited</span>}
                </a>
              ))}
            </footer>
          )}
        </>
      )}
    </article>
  );
}

/** What the person said: four lines, and the rest on demand. */
function Asked({ turn }: { turn: Turn }) {
  const [isOpen, setOpen] = useState(false);
  const [isLong, setLong] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current) setLong(box.current.scrollHeight > box.current.clientHeight + 4);
  }, [turn.prompt]);
  return (
    <div class="asked">
      <span class="speaker">You</span>
      <div ref={box} class={isOpen ? "" : `asked-start${isLong ? " asked-cut" : ""}`}>
        <Whole turn={turn.id} text={turn.prompt || turn.title || "Turn without text"} isPrompt />
      </div>
      {isLong && (
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "less" : "more"}
        </button>
      )}
    </div>
  );
}

/** How a digest says that it leaves out a part of a long text. */
const LEFT_OUT = /^\\?\[… ([\d,]+) characters left out[^\n]*\]$/m;

/** A prompt or an answer. What the digest leaves out is a button that shows the original. */
function Whole({ turn, text, isPrompt = false }: { turn: string; text: string; isPrompt?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const { data, error, reload } = useAnswer<Transcript>(isWhole ? `${at("turns", turn)}/transcript` : null);
  const Text = isPrompt ? Said : Markdown;
  if (data) return <Text text={originalOf(data, isPrompt)} />;
  return (
    <>
      {text.split(LEFT_OUT).map((part, i) =>
        i % 2 ? (
          <button key={i} type="button" class="link left-out" disabled={isWhole && !error} onClick={() => setWhole(true)}>
            Show {part} more characters
          </button>
        ) : (
          part.trim() && <Text key={i} text={part} />
        ),
      )}
      {error && <Failure error={error} retry={reload} />}
    </>
  );
}

/** Return the prompt of an exchange, or its answer: what was said after the last tool call. */
function originalOf({ messages }: Transcript, isPrompt: boolean): string {
  let said: string[] = [];
  for (const { role, text, tools } of messages) {
    if (isPrompt ? role === "user" : role !== "user") said.push(text);
    if (!isPrompt && tools.length) said = [];
  }
  return said.filter(Boolean).join("\n\n");
}

function failure(line: string): string {
  return line.includes(" → failed") ? "failed" : "";
}

/** The tool calls, folded: how many, and how the last one that says so ended. */
function Tools({ lines }: { lines: string[] }) {
  const last = lines.findLast((line) => line.includes(" → ")) ?? lines.at(-1) ?? "";
  const count = lines.reduce((sum, line) => sum + Number(/^… and (\d+) more| ×(\d+)(?: → |$)/.exec(line)?.slice(1).find(Boolean) ?? 1), 0);
  if (lines.length === 1)
    return (
      <p class="tools">
        <InlineMarkdown text={last} />
      </p>
    );
  return (
    <details class="tools">
      <summary>
        <span class="num">{plural(count, "tool call")}</span>
        <span class={`cut ${failure(last)}`}>
          <InlineMarkdown text={last} />
        </span>
      </summary>
      <ul>
        {lines.map((line, i) => (
          <li key={i} class={failure(line)}>
            <InlineMarkdown text={line} />
          </li>
        ))}
      </ul>
    </details>
  );
}
