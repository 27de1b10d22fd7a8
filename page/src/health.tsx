// Costs and health: what memkit found wrong, what the memory holds, and what its model calls cost.
import "./health.css";
import { useCallback } from "preact/hooks";
import { useAnswer } from "./api";
import { minute, plural, shortDay } from "./format";
import { useChanges } from "./live";
import { InlineMarkdown } from "./markdown";
import { Failure, Loading, Mark, Title } from "./parts";
import { href, type Route } from "./router";

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
  return (
    <>
      <Title aside={data && `memkit ${data.version}`}>Costs and health</Title>
      {error && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && (
        <div class="health">
          <Findings data={data} />
          <Holds data={data} />
          <Costs cost={data.cost} />
        </div>
      )}
    </>
  );
}

function Findings({ data }: { data: Overview }) {
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
      {data.off && <p class="health-line">memkit is off for this project: nothing new is remembered. `memkit on` turns it on.</p>}
      {data.last_turn && (
        <p class="health-line">
          Last turn remembered on {shortDay(data.last_turn.time)} at <span class="num">{minute(data.last_turn.time)}</span>:{" "}
          <a href={href("turn", data.last_turn.id)}>
            <InlineMarkdown text={data.last_turn.title} />
          </a>
        </p>
      )}
      {(data.waiting > 0 || data.failed > 0) && (
        <p class="health-line">
          {plural(data.waiting, "event")} waiting to be remembered{data.failed > 0 && `, ${NUMBER.format(data.failed)} failed`}.
        </p>
      )}
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
              <p>
                <InlineMarkdown text={one.fix} />
              </p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

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

function Figure({ name, value, about }: { name: string; value: string; about?: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <span class="num">{value}</span>
        {about && <span class="muted figure-about">{about}</span>}
      </dd>
    </div>
  );
}

function Costs({ cost }: { cost: Overview["cost"] }) {
  if (!cost.total.calls) {
    return (
      <section>
        <h2 class="day-head">Costs</h2>
        <p class="health-line">No model was asked so far, so nothing was spent. Search, the timeline, and topics work without one.</p>
      </section>
    );
  }
  const spent = cost.today.tokens_in + cost.today.tokens_out;
  return (
    <section>
      <h2 class="day-head">
        <span>Costs</span>
        <span class="muted">of all projects</span>
      </h2>
      <dl class="figures">
        <Figure name="Today" value={DOLLARS.format(cost.today.usd)} about={`${NUMBER.format(spent)} of ${NUMBER.format(cost.daily_tokens)} tokens`} />
        <Figure name="This month" value={DOLLARS.format(cost.month.usd)} about={plural(cost.month.calls, "call")} />
        <Figure name="In all" value={DOLLARS.format(cost.total.usd)} about={plural(cost.total.calls, "call")} />
        {cost.total.failed > 0 && <Figure name="Failed calls" value={NUMBER.format(cost.total.failed)} />}
      </dl>
      <Columns days={cost.days} />
      <div class="table">
        <table>
          <thead>
            <tr>
              <th>Model</th>
              <th class="right">Calls</th>
              <th class="right">Tokens in</th>
              <th class="right">Tokens out</th>
              <th class="right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {cost.models.map((one) => (
              <tr key={one.model}>
                <td>{one.model}</td>
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

/** The tokens of each day with calls. */
function Columns({ days }: { days: Overview["cost"]["days"] }) {
  const tokens = days.map((one) => one.tokens_in + one.tokens_out);
  const most = Math.max(1, ...tokens);
  const step = WIDTH / Math.max(30, days.length);
  const [first, last] = [days[0], days.at(-1)];
  if (!first || !last) return null;
  return (
    <figure class="columns">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Tokens on each day with calls, from ${first.day} to ${last.day}; at most ${NUMBER.format(most)}`}>
        <rect class="spark-base" x="0" y={HEIGHT - 1} width={WIDTH} height="1" />
        {tokens.map((one, number) => {
          const height = Math.max(1, (one / most) * (HEIGHT - 2));
          return (
            <rect key={number} x={number * step} y={HEIGHT - height} width={Math.max(1.5, step - 2)} height={height} rx="1">
              <title>{`${days[number]?.day}: ${NUMBER.format(one)} tokens`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption class="muted">
        <span>{shortDay(first.day)}</span>
        <span>{last !== first && shortDay(last.day)}</span>
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
