// The original messages of a turn, with what tools were asked and answered folded away.
import { at, useAnswer } from "./api";
import { Markdown } from "./markdown";
import { Empty, Failure, Loading } from "./parts";

interface Message {
  role: string;
  time: string;
  text: string;
  tools?: Array<{ name: string; input: unknown }>;
}

interface ExchangeData {
  archived: boolean;
  messages: Message[];
}

const SPEAKERS: Record<string, string> = { user: "You", assistant: "Claude", tool: "Tool" };

export function Exchange({ turn }: { turn: string }) {
  const { data, error, reload } = useAnswer<ExchangeData>(`${at("turns", turn)}/transcript`);
  if (error) {
    if (error.status === 404) return <Empty title="The original is gone.">Only the digest is left of this turn.</Empty>;
    return <Failure error={error} retry={reload} />;
  }
  if (!data) return <Loading rows={4} what="Loading the original exchange" />;
  return (
    <ol class="exchange">
      {data.messages.map((message, i) => (
        <li key={i} class={`message message-${message.role}`}>
          <span class="speaker">{SPEAKERS[message.role] ?? message.role}</span>
          {message.role === "tool" ? (
            <details>
              <summary class="cut mono">{message.text.split("\n", 1)[0]}</summary>
              <pre tabIndex={0}>{message.text}</pre>
            </details>
          ) : (
            <Markdown text={message.text} />
          )}
        </li>
      ))}
    </ol>
  );
}
