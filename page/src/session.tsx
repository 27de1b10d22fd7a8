// A session: its summary with citations that jump, and its turns.
import "./session.css";
import { useEffect, useState } from "preact/hooks";
import { at, readOnly, useAnswer } from "./api";
import { fullDay, minute, plural, shortDay } from "./format";
import { useKeys } from "./keys";
import { useChanges } from "./live";
import { InlineMarkdown } from "./markdown";
import { Forget } from "./forget";
import { Failure, type Later, Loading, Mark, Missing, Outdated, Title } from "./parts";
import { back, go, href, type Route } from "./router";
import { say } from "./said";
import { focusedTurn, type Turn, TurnView } from "./turn";

interface Bullet {
  id: string;
  text: string;
  turns: string[];
  verified: boolean;
  superseded: Later | null;
}

interface SessionData {
  session: string;
  title: string;
  begins: string;
  ends: string;
  branch: string;
  /** Its branch if that no longer exists. */
  gone_branch: string;
  turns: string[];
  turn: string | null;
  summaries: Array<{ day: string; time: string; title: string; bullets: Bullet[] }>;
  offset: number;
  entries: Turn[];
}

const PAGE = 50;

export function Session({ route }: { route: Route }) {
  const [offset, setOffset] = useState<number | undefined>(undefined);
  const wanted = route.query.get("turn") ?? "";
  const name = route.view === "session" && wanted && offset === undefined ? wanted : route.id;
  const { data, error, reload } = useAnswer<SessionData>(at("sessions", name), { limit: PAGE, offset }, true);
  const [forgetting, setForgetting] = useState("");
  // What is being forgotten is the change itself; `done` below asks for what is left.
  useChanges(() => void (forgetting || reload()));
  const turn = wanted || (route.view === "turn" ? route.id : "");
  useEffect(() => setOffset(undefined), [route.id, wanted]);
  const isThere = data !== null;
  useEffect(() => {
    if (turn && data) jump(data.entries.find((one) => one.id.startsWith(turn))?.id ?? "");
  }, [turn, isThere]);
  useKeys({ x: () => (readOnly() ? say(readOnly()) : setForgetting(focusedTurn())) });
  if (!data) return <Missing title="Session" error={error} retry={reload} rows={10} what="Loading the session" />;
  const hasSummary = data.summaries.some((one) => one.bullets.length);
  const isOneDay = data.begins.slice(0, 10) === data.ends.slice(0, 10);
  return (
    <div class="session">
      <Title>{data.title || "Session without a title"}</Title>
      <p class="facts num">
        <a href={href("", "", { day: data.begins.slice(0, 10) })}>{fullDay(data.begins)}</a>
        <span>
          {minute(data.begins)}
          {data.ends !== data.begins && ` – ${isOneDay ? "" : `${shortDay(data.ends)} `}${minute(data.ends)}`}
        </span>
        <span>{plural(data.turns.length, "turn")}</span>
        {data.branch && (
          <span>
            <span class="branch">{data.branch}</span>
            {data.gone_branch && " is gone"}
          </span>
        )}
        <a href={href("search", "", { session: data.session })}>Search in this session</a>
        <button type="button" class="link" onClick={() => void copy(`memkit resume ${data.session} --go --all-projects`)}>
          Copy the command to resume
        </button>
      </p>
      {hasSummary && (
        <section class="summary" aria-label="Summary">
          <h2>Summary</h2>
          {data.summaries.map((summary, i) => (
            <ul key={i}>
              {summary.bullets.map((bullet) => (
                <BulletLine key={bullet.id} bullet={bullet} time={data.entries.find((one) => one.id === bullet.turns[0])?.time ?? ""} />
              ))}
            </ul>
          ))}
        </section>
      )}
      <Pages data={data} show={setOffset} />
      {data.entries.map((one, i) => (
        <TurnView
          key={one.id}
          turn={one}
          isNewDay={i > 0 && one.day !== data.entries[i - 1]?.day}
          forget={() => setForgetting(one.id)}
        />
      ))}
      <Pages data={data} show={setOffset} />
      {forgetting && (
        <Forget
          id={forgetting}
          title={data.entries.find((one) => one.id === forgetting)?.title ?? ""}
          close={() => setForgetting("")}
          done={() => {
            setForgetting("");
            if (data.turns.length > 1) {
              if (turn) go(href("session", data.session), true);
              reload();
            } else back();
          }}
        />
      )}
    </div>
  );
}

/** Put a command into the clipboard, and say it: a browser may refuse. */
async function copy(command: string): Promise<void> {
  const shown = <code>{command}</code>;
  try {
    await navigator.clipboard.writeText(command);
    say(<>Copied: {shown}</>);
  } catch {
    say(shown);
  }
}

/** Show a turn, and give it the focus. */
function jump(id: string): void {
  const turn = document.querySelector<HTMLElement>(`article[data-turn="${CSS.escape(id)}"]`);
  if (!turn) return;
  turn.scrollIntoView({ block: "start" });
  turn.querySelector<HTMLElement>("[data-row]")?.focus({ preventScroll: true });
}

function Pages({ data, show }: { data: SessionData; show: (offset: number) => void }) {
  const end = data.offset + data.entries.length;
  if (data.entries.length >= data.turns.length) return null;
  return (
    <nav class="pages" aria-label="Turns">
      <button type="button" disabled={data.offset === 0} onClick={() => show(Math.max(0, data.offset - PAGE))}>
        Earlier
      </button>
      <span class="muted num">
        Turns {data.offset + 1}–{end} of {data.turns.length}
      </span>
      <button type="button" disabled={end >= data.turns.length} onClick={() => show(end)}>
        Later
      </button>
    </nav>
  );
}

interface Proof {
  excerpt: string;
  source: string;
}

function BulletLine({ bullet, time }: { bullet: Bullet; time: string }) {
  const [isOpen, setOpen] = useState(false);
  const proof = useAnswer<Proof>(isOpen ? at("citations", bullet.id) : null);
  const turn = bullet.turns[0];
  return (
    <li class={bullet.superseded ? "bullet outdated" : "bullet"} id={`bullet-${bullet.id}`}>
      <p>
        <InlineMarkdown text={bullet.text.replace(/ \(unverified\)$/, "")} />{" "}
        <span class="bullet-foot">
          {turn && (
            <a
              class="cite num"
              title="Go to the turn that proves it"
              href={href("turn", turn)}
              onClick={(event) => {
                event.preventDefault();
                jump(turn);
              }}
            >
              {minute(time) || "Turn"}
            </a>
          )}
          <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Proof
          </button>
          {!bullet.verified && <Mark title="Its names and numbers are not all in the turns that it cites.">Unverified</Mark>}
          {bullet.superseded && <Outdated word="Superseded" later={bullet.superseded} />}
        </span>
      </p>
      {isOpen && (
        <div class="proof">
          {proof.error ? <Failure error={proof.error} retry={proof.reload} /> : proof.isLoading ? <Loading rows={1} /> : <blockquote>{proof.data?.excerpt || "Nothing is left of the exchange that it cites."}</blockquote>}
        </div>
      )}
    </li>
  );
}
