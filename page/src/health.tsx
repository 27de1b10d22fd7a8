// Costs and health: what memkit found wrong, what its model calls cost and sent, and what the memory holds.
import "./health.css";
import type { ComponentChildren } from "preact";
import { useCallback, useState } from "preact/hooks";
import { asApiError, readOnly, send, useAnswer } from "./api";
import { dayAfter, longDay, minute, plural, shortDay, today } from "./format";
import { useChanges } from "./live";
import { InlineMarkdown } from "./markdown";
import { Failure, Loading, Mark, Title } from "./parts";
import { OneOf } from "./projects";
import { ALL, href, type Route, scope } from "./router";
import { say } from "./said";

interface Spent {
  calls: number;
  failed: number;
  tokens_in: number;
  tokens_out: number;
  usd: number;
  unpriced: number;
}

interface Finding {
  code: string;
  level: string;
  what: string;
  meaning: string;
  fix: string;
}

interface Overview {
  version: string;
  project: string;
  off: boolean;
  first: string | null;
  last: string | null;
  counts: { days: number; sessions: number; turns: number; notes: number; entries: number };
  bytes: { memory: number; archive: number; index: number };
  index: { in_step: boolean; missing: number; model: string };
  last_turn: { id: string; session: string; time: string; title: string } | null;
  captured: string | null;
  sends: string[];
  waiting: number;
  failed: number;
  cost: { total: Spent; today: Spent; month: Spent; daily_tokens: number; days: Array<Spent & { day: string }>; models: Array<Spent & { model: string }> };
  health: Finding[];
}

const KINDS: Record<string, "bad" | "warn" | "plain"> = { error: "bad", warning: "warn" };
const NUMBER = new Intl.NumberFormat();
const DOLLARS = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });

export function Health({ route: _ }: { route: Route }) {
  const { data, error, reload } = useAnswer<Overview>("overview");
  useChanges(useCallback(() => reload(), []));
  const isAll = scope() === ALL;
  return (
    <>
      <Title aside={data && `memkit ${data.version}`}>Costs and health</Title>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && (
        <div class="health">
          {!isAll && <Findings data={data} reload={reload} />}
          <Costs cost={data.cost} sends={data.sends} />
          {isAll ? <OneOf view="health" what="Health, and what the memory holds, are shown" /> : <Holds data={data} />}
        </div>
      )}
    </>
  );
}

/** What the doctor's text says of findings that it can fix by itself. */
const FIXABLE = "memkit doctor --fix";

/** A button that has the server do something, and says what came of it. */
function Act({ path, body, label, done }: { path: string; body: unknown; label: string; done: () => void }) {
  const [isBusy, setBusy] = useState(false);
  if (readOnly()) return null;
  const act = async () => {
    setBusy(true);
    try {
      const { message, failed } = await send<{ message: string; failed: boolean }>(path, { method: "POST", body });
      say(failed ? `Not done: ${message}` : `${message[0]?.toUpperCase()}${message.slice(1)}.`);
    } catch (failure) {
      say(asApiError(failure).message);
    }
    setBusy(false);
    done();
  };
  return (
    <button type="button" disabled={isBusy} onClick={() => void act()}>
      {isBusy ? "Working…" : label}
    </button>
  );
}

/** What waits for a summary, its price, and a button that has it made. Nothing, where no model may be asked. */
function Summarize({ reload }: { reload: () => void }) {
  const { data: waiting, reload: again } = useAnswer<{ segments: string[]; tokens: number; usd: number | null; model: string; left: number }>("summaries", {}, true);
  useChanges(useCallback(() => again(), []));
  if (!waiting?.segments.length) return null;
  const { segments, tokens, usd, left } = waiting;
  const price = usd === null ? "price unknown" : usd < 0.01 ? "less than $0.01" : `about ${DOLLARS.format(usd)}`;
  return (
    <p class="health-line health-waiting">
      <span>
        {plural(segments.length, "part")} of sessions without a summary: about {NUMBER.format(tokens)} tokens of {waiting.model}.
        {tokens > left && ` Today’s budget has ${NUMBER.format(left)} left; the rest follows by itself.`}
      </span>
      {left > 0 && <Act path="summaries" body={{ segments }} label={`Summarize now, ${price}`} done={() => [again, reload].forEach((one) => one())} />}
    </p>
  );
}

function Findings({ data, reload }: { data: Overview; reload: () => void }) {
  const counted = (level: string) => data.health.filter((one) => one.level === level).length;
  const [errors, warnings] = [counted("error"), counted("warning")];
  return (
    <section>
      <h2 class="day-head">
        <span>Health</span>
        {errors ? (
          <Mark kind="bad">{plural(errors, "error")}</Mark>
        ) : warnings ? (
          <Mark kind="warn">{plural(warnings, "warning")}</Mark>
        ) : (
          <Mark kind="good">Everything works</Mark>
        )}
      </h2>
      {data.off && <p class="health-line">memkit is off for this project: nothing new is remembered.</p>}
      <p class="health-line">{data.captured === null ? "No session of Claude Code has reported to memkit here so far." : `Last heard from a session: ${longDay(data.captured)} at ${minute(data.captured)}.`}</p>
      {data.last_turn && (
        <p class="health-line">
          Last turn remembered on {shortDay(data.last_turn.time)} at <span class="num">{minute(data.last_turn.time)}</span>:{" "}
          <a href={href("turn", data.last_turn.id)}>
            <InlineMarkdown text={data.last_turn.title} />
          </a>
        </p>
      )}
      {data.waiting + data.failed > 0 && (
        <p class="health-line health-waiting">
          <span>
            {plural(data.waiting, "event")} waiting to be remembered, {NUMBER.format(data.failed)} failed.
          </span>
          {data.waiting > 0 && <Act path="fix" body={{ code: "events-waiting" }} label="Remember now" done={reload} />}
        </p>
      )}
      {!readOnly() && <Summarize reload={reload} />}
      <ul class="findings">
        {data.health.map((one, number) => (
          <li key={`${one.code} ${number}`} class="finding">
            <Mark kind={KINDS[one.level] ?? "plain"}>{one.level}</Mark>
            <div>
              <p class="finding-what">
                <InlineMarkdown text={one.what} />
              </p>
              <p class="muted">
                <InlineMarkdown text={one.meaning} />
              </p>
              {!one.fix.includes(FIXABLE) && (
                <p>
                  <InlineMarkdown text={one.fix} />
                </p>
              )}
            </div>
            {one.fix.includes(FIXABLE) && <Act path="fix" body={{ code: one.code }} label="Fix it" done={reload} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

const NAMES: Record<string, string> = { anthropic: "Anthropic’s API", "claude-cli": "Your Claude Code login", openai: "OpenAI", google: "Google", ollama: "Ollama" };

function Holds({ data }: { data: Overview }) {
  const { counts, bytes, index } = data;
  return (
    <section>
      <h2 class="day-head">
        <span>What the memory holds</span>
        {data.first && data.last && (
          <span class="muted num">
            {shortDay(data.first)} – {shortDay(data.last)}
          </span>
        )}
      </h2>
      <dl class="figures">
        <Figure name="Days" value={NUMBER.format(counts.days)} />
        <Figure name="Sessions" value={NUMBER.format(counts.sessions)} />
        <Figure name="Turns" value={NUMBER.format(counts.turns)} />
        <Figure name="Notes" value={NUMBER.format(counts.notes)} />
        <Figure name="Memory files" value={size(bytes.memory)} />
        <Figure name="Originals" value={size(bytes.archive)} about="of all projects" />
        <Figure name="Search index" value={size(bytes.index)} about="of all projects" />
        <Figure
          name="Indexed"
          value={NUMBER.format(counts.entries)}
          about={index.missing ? `${NUMBER.format(index.missing)} not yet by meaning` : index.in_step ? "up to date" : "brought up to date by the next search"}
        />
      </dl>
    </section>
  );
}

function Figure({ name, value, about, children }: { name: string; value: string; about?: string; children?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <span class="num">{value}</span>
        {about && <span class="muted figure-about">{about}</span>}
        {children}
      </dd>
    </div>
  );
}

/** The model calls, and what left the machine, to whom. */
function Costs({ cost, sends }: Pick<Overview, "cost" | "sends">) {
  const heading = (
    <h2 class="day-head">
      <span>Costs</span>
      <span class="muted">of all projects</span>
    </h2>
  );
  const sent = sends.length > 0 && <p class="health-line">Redacted text for search goes to {sends.join(" and ")}, as your settings say.</p>;
  if (!cost.total.calls) {
    return (
      <section>
        {heading}
        <p class="health-line">No model was asked so far: nothing was spent{!sent && ", and nothing left this machine"}.</p>
        {sent}
      </section>
    );
  }
  const spent = cost.today.tokens_in + cost.today.tokens_out;
  return (
    <section>
      {heading}
      <dl class="figures">
        <Figure name="Today" value={DOLLARS.format(cost.today.usd)} about={`${NUMBER.format(spent)} of ${NUMBER.format(cost.daily_tokens)} tokens`}>
          <progress class="budget" max={Math.max(1, cost.daily_tokens)} value={Math.min(spent, cost.daily_tokens)} aria-label="Tokens of today’s budget" />
        </Figure>
        <Figure name="This month" value={DOLLARS.format(cost.month.usd)} about={plural(cost.month.calls, "call")} />
        <Figure name="In all" value={DOLLARS.format(cost.total.usd)} about={plural(cost.total.calls, "call")} />
        {cost.total.failed > 0 && <Figure name="Failed calls" value={NUMBER.format(cost.total.failed)} />}
      </dl>
      <Columns days={cost.days} budget={cost.daily_tokens} />
      {sent}
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Redacted turns went to</th>
              <th class="right">Calls</th>
              <th class="right">Tokens sent</th>
              <th class="right">Tokens back</th>
              <th class="right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {cost.models.map((one) => (
              <tr key={one.model}>
                <td>{one.model.replace(/^\S+/, (name) => `${NAMES[name] ?? name}:`)}</td>
                <td class="right num">{NUMBER.format(one.calls)}</td>
                <td class="right num">{NUMBER.format(one.tokens_in)}</td>
                <td class="right num">{NUMBER.format(one.tokens_out)}</td>
                <td class="right num">{one.unpriced === one.calls ? "no known price" : DOLLARS.format(one.usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const WIDTH = 720;
const HEIGHT = 72;
const DAYS = 30;

/** The tokens of each of the last days against the budget. */
function Columns({ days, budget }: { days: Overview["cost"]["days"]; budget: number }) {
  const known = new Map(days.map((one) => [one.day, one]));
  const names = Array.from({ length: DAYS }, (_, i) => dayAfter(today(), i + 1 - DAYS));
  const tokensOf = (day: string) => (known.get(day)?.tokens_in ?? 0) + (known.get(day)?.tokens_out ?? 0);
  const most = Math.max(1, ...names.map(tokensOf));
  const top = Math.max(most, budget);
  const step = WIDTH / DAYS;
  const heightOf = (tokens: number) => (tokens / top) * (HEIGHT - 2);
  return (
    <figure class="columns">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Tokens on each of the last ${DAYS} days: at most ${NUMBER.format(most)}; the budget is ${NUMBER.format(budget)} a day`}>
        <rect class="spark-base" x="0" y={HEIGHT - 1} width={WIDTH} height="1" />
        {names.map((day, number) => {
          const height = tokensOf(day) && Math.max(1, heightOf(tokensOf(day)));
          return (
            <rect key={day} x={number * step} y={HEIGHT - height} width={step - 3} height={height} rx="1">
              <title>{`${shortDay(day)}: ${NUMBER.format(tokensOf(day))} tokens, ${DOLLARS.format(known.get(day)?.usd ?? 0)}`}</title>
            </rect>
          );
        })}
        {budget > 0 && <line x1="0" x2={WIDTH} y1={HEIGHT - heightOf(budget)} y2={HEIGHT - heightOf(budget)} />}
      </svg>
      <figcaption class="muted">
        <span>{shortDay(names[0] ?? "")}</span>
        {budget > 0 && <span>Dashed: the daily budget</span>}
        <span>Today</span>
      </figcaption>
    </figure>
  );
}

/** Return bytes as a person reads them: "3.4 MB". */
function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
