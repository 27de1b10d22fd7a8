// Topics: what the memory is about, as a list, and one of them with its entries, files, and related topics.
import "./topics.css";
import { useCallback, useState } from "preact/hooks";
import { ApiError, asApiError, at, readOnly, send, useAnswer } from "./api";
import { plural, shortDay } from "./format";
import { useChanges } from "./live";
import { Empty, Failure, Loading, Title } from "./parts";
import { href, type Route } from "./router";
import { Weeks } from "./weeks";
import { colorsOf, dotClass, type GraphData, MOST_TOPICS, openingOf, type Topic, useTopics } from "./topic_data";

type Order = "importance" | "last" | "entries" | "label";

const ORDERS: Record<Order, string> = { importance: "Most important", last: "Newest", entries: "Largest", label: "By name" };
const COMPARED: Record<Order, (a: Topic, b: Topic) => number> = {
  importance: (a, b) => b.importance - a.importance,
  last: (a, b) => b.last.localeCompare(a.last),
  entries: (a, b) => b.entries - a.entries,
  label: (a, b) => a.label.localeCompare(b.label),
};

export function Topics({ route }: { route: Route }) {
  const topics = useTopics();
  useChanges(useCallback(() => topics.reload(), []));
  if (topics.isNone) return <None done={topics.reload} />;
  if (topics.error || !topics.data) {
    return (
      <>
        <Title>Topics</Title>
        {topics.error ? <Failure error={topics.error} retry={topics.reload} /> : <Loading what="Loading the topics" />}
      </>
    );
  }
  if (!route.id) return <TopicRows topics={topics.data.topics} all={topics.data.all} />;
  const topic = topics.data.topics.find((one) => one.id.startsWith(route.id));
  if (topic) return <OneTopic key={topic.id} topic={topic} topics={topics.data.topics} />;
  return (
    <>
      <Title>Topic</Title>
      <Empty title="There is no such topic.">
        It may have been joined with another one. <a href={href("topics")}>Show all topics</a>
      </Empty>
    </>
  );
}

function None({ done }: { done: () => void }) {
  const [state, setState] = useState<"computing" | ApiError | null>(null);
  const compute = () => {
    setState("computing");
    send("topics", { method: "POST" }).then(done, (failure: unknown) => setState(asApiError(failure)));
  };
  return (
    <>
      <Title>Topics</Title>
      {state instanceof ApiError && <Failure error={state} />}
      <Empty title="There are no topics yet.">
        <p>They group what the memory holds by subject, on this machine. {readOnly()}</p>
        {!readOnly() && (
          <button type="button" class="primary" aria-busy={state === "computing"} disabled={state === "computing"} onClick={compute}>
            {state === "computing" ? "Computing…" : "Compute topics"}
          </button>
        )}
      </Empty>
    </>
  );
}

function TopicRows({ topics, all }: { topics: Topic[]; all: number }) {
  const [order, setOrder] = useState<Order>("importance");
  const colors = colorsOf(topics);
  const weeks = weeksOf(topics);
  return (
    <>
      <Title
        aside={
          <label>
            <span class="sr">Order</span>
            <select value={order} onChange={(event) => setOrder(event.currentTarget.value as Order)}>
              {Object.entries(ORDERS).map(([name, text]) => (
                <option key={name} value={name}>
                  {text}
                </option>
              ))}
            </select>
          </label>
        }
      >
        Topics
      </Title>
      <ul class="rows">
        {[...topics].sort(COMPARED[order]).map((topic) => (
          <li key={topic.id}>
            <a class="row topic-row" data-row href={href("topics", topic.id)}>
              <i class={dotClass(colors.get(topic.id))} aria-hidden="true" />
              <span class="row-text">
                <span class="row-title">{topic.label}</span>
                <span class="row-outcome">{otherWords(topic)}</span>
              </span>
              <Weeks counts={topic.weeks} weeks={weeks} />
              <span class="num">{plural(topic.entries, "entry", "entries")}</span>
              <span class="num topic-last">{shortDay(topic.last)}</span>
            </a>
          </li>
        ))}
      </ul>
      {all > MOST_TOPICS && <p class="muted">{all - MOST_TOPICS} more, less important topics are not shown.</p>}
    </>
  );
}

/** Return the words of a topic that its label does not have. */
function otherWords(topic: Topic): string {
  const label = topic.label.toLowerCase();
  return topic.words.filter((word) => !label.includes(word.toLowerCase())).join(" · ");
}

/** Return the names of all weeks in which a topic has entries, and of those between, oldest first. */
function weeksOf(topics: readonly Topic[]): string[] {
  return [...new Set(topics.flatMap((topic) => Object.keys(topic.weeks)))].sort();
}

interface RelatedAnswer {
  related: Array<{ id: string; label: string; strength: number }>;
}

function OneTopic({ topic, topics }: { topic: Topic; topics: Topic[] }) {
  const colors = colorsOf(topics);
  const around = `topic:${topic.id}`;
  const graph = useAnswer<GraphData>("graph", { around, limit: 200 });
  const related = useAnswer<RelatedAnswer>(`${at("topics", topic.id)}/related`);
  useChanges(useCallback(() => graph.reload(), [around]));
  const own = graph.data?.nodes.filter((one) => one.topic === topic.id) ?? [];
  const entries = own.filter((one) => one.kind === "entry").sort((a, b) => b.day.localeCompare(a.day));
  const files = graph.data?.nodes.filter((one) => one.kind === "file") ?? [];
  return (
    <>
      <Title aside={<a class="button" href={href("graph", "", { around })}>Show what is around</a>}>{topic.label}</Title>
      <p class="topic-head">
        <i class={dotClass(colors.get(topic.id))} aria-hidden="true" />
        <span>{plural(topic.entries, "entry", "entries")}</span>
        <span>
          {shortDay(topic.first)} – {shortDay(topic.last)}
        </span>
        <Weeks counts={topic.weeks} weeks={weeksOf(topics)} />
        <span class="cut">{topic.words.join(" · ")}</span>
      </p>
      {graph.error && <Failure error={graph.error} retry={graph.reload} />}
      {!graph.data && !graph.error && <Loading />}
      <div class="topic-parts">
        <section>
          <h2 class="day-head">Entries</h2>
          <ul class="rows">
            {entries.map((one) => (
              <li key={one.id}>
                <a class="row" data-row href={openingOf(one)}>
                  <span class="row-time num">{shortDay(one.day)}</span>
                  <span class="row-title">{one.label}</span>
                </a>
              </li>
            ))}
          </ul>
          {entries.length > 0 && entries.length < topic.entries && (
            <p class="muted topic-more">{plural(topic.entries - entries.length, "more entry", "more entries")}: notes and older ones. Search finds them.</p>
          )}
        </section>
        <div class="topic-side">
          {related.data && related.data.related.length > 0 && (
            <section>
              <h2 class="day-head">Related topics</h2>
              <ul class="rows">
                {related.data.related.map((one) => (
                  <li key={one.id}>
                    <a class="row" data-row href={href("topics", one.id)}>
                      <i class={dotClass(colors.get(one.id))} aria-hidden="true" />
                      <span class="row-title">{one.label}</span>
                      <span class="row-aside num">{Math.round(100 * one.strength)}%</span>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          )}
          {files.length > 0 && (
            <section>
              <h2 class="day-head">Files</h2>
              <ul class="rows">
                {files.slice(0, 20).map((one) => (
                  <li key={one.id}>
                    <a class="row" data-row href={openingOf(one)}>
                      <i class="dot" aria-hidden="true" />
                      <span class="row-title mono">{one.label}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          )}
        </div>
      </div>
    </>
  );
}
