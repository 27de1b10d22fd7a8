// The original messages of a turn. Each tool call is folded, with its result.
import { at, useAnswer } from "./api";
import { Markdown, Said } from "./markdown";
import { Empty, Failure, Loading, Mark } from "./parts";

interface Tool {
  name: string;
  input?: Record<string, unknown> | null;
  result?: string | null;
  is_error?: boolean;
}

interface Message {
  role: string;
  time: string | null;
  text: string;
  tools: Tool[];
}

export interface Transcript {
  archived: boolean;
  damaged_bytes: number;
  messages: Message[];
}

interface Call {
  name: string;
  input: Record<string, unknown>;
  result: string | null;
  isError: boolean;
}

/** What somebody said, with the calls that came with it. */
interface Part {
  role: string;
  text: string;
  calls: Call[];
}

export function Exchange({ turn }: { turn: string }) {
  const { data, error, reload } = useAnswer<Transcript>(`${at("turns", turn)}/transcript`);
  if (error) {
    if (error.status === 404) return <Empty title="The original is gone.">Only the digest is left of this turn.</Empty>;
    return <Failure error={error} retry={reload} />;
  }
  if (!data) return <Loading rows={4} what="Loading the original exchange" />;
  return (
    <>
      <p class="muted exchange-source">{data.archived ? "From memkit's archive" : "From Claude Code's transcript"}</p>
      {data.damaged_bytes > 0 && <p class="notice">A part of the archive is damaged, so messages may be missing.</p>}
      <ol class="exchange">
        {partsOf(data.messages).map((part, i) => (
          <li key={i} class={`message message-${part.role}`}>
            <span class="speaker">{part.role === "user" ? "You" : "Claude"}</span>
            <div class="said-text">
              {part.text && (part.role === "user" ? <Said text={part.text} /> : <Markdown text={part.text} />)}
              {part.calls.map((call, j) => (
                <CallView key={j} call={call} />
              ))}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

/** Return the messages of each speaker together, and each result with its call. */
function partsOf(messages: Message[]): Part[] {
  const parts: Part[] = [];
  const waiting: Call[] = [];
  for (const { role, text, tools } of messages) {
    for (const tool of tools.filter((one) => typeof one.result === "string")) {
      const at = waiting.findIndex((call) => call.name === tool.name);
      const call = at < 0 ? undefined : waiting.splice(at, 1)[0];
      if (call) Object.assign(call, { result: tool.result, isError: tool.is_error === true });
    }
    const calls = tools
      .filter((one) => typeof one.result !== "string")
      .map((one): Call => ({ name: one.name, input: one.input ?? {}, result: null, isError: false }));
    waiting.push(...calls);
    if (!text && !calls.length) continue;
    const last = parts.at(-1);
    if (last && last.role === role && !text) last.calls.push(...calls);
    else parts.push({ role, text, calls });
  }
  return parts;
}

function CallView({ call }: { call: Call }) {
  const shown = Object.values(call.input).find((one): one is string => typeof one === "string") ?? "";
  const input = Object.entries(call.input).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 2)}`);
  return (
    <details class="call">
      <summary>
        <span class="call-name">{call.name}</span>
        <code class="cut">{shown.split("\n", 1)[0]}</code>
        {call.isError && <Mark kind="bad">Failed</Mark>}
      </summary>
      <pre tabIndex={0}>{input.join("\n")}</pre>
      {call.result !== null && <pre tabIndex={0}>{call.result}</pre>}
    </details>
  );
}
