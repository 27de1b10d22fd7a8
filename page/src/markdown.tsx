// Markdown as elements. Text of the memory is data: HTML in it stays text, pictures are not loaded, and a link leads
// out only to the web or to mail.
import MarkdownIt, { type Token } from "markdown-it";
import { type ComponentChildren, h, type VNode } from "preact";
import { useMemo } from "preact/hooks";
import { Marked } from "./marked";

const [parser, prompts] = [makeParser(), makeParser().disable(["heading", "lheading", "hr"])];

function makeParser() {
  const made = new MarkdownIt({ html: false, linkify: true, breaks: true });
  // A file such as `deploy.sh` or `main.rs` is no address.
  made.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  return made;
}

const TAGS = new Set(["p", "ul", "ol", "li", "blockquote", "strong", "em", "s", "table", "thead", "tbody", "tr", "th", "td", "hr", "br"]);
const ALIGNMENT = /^text-align:(left|center|right)$/;

/** Show Markdown. `matches` are words to highlight. */
export function Markdown({ text, matches = [] }: { text: string; matches?: readonly string[] }) {
  const content = useMemo(() => new Builder(matches).build(parser.parse(text, {})), [text, matches.join("\n")]);
  return <div class="prose">{content}</div>;
}

/** Show what a person typed or pasted: it has no headings, and a log in it is code. */
export function Said({ text }: { text: string }) {
  const content = useMemo(() => new Builder([]).build(prompts.parse(withLogsAsCode(text), {})), [text]);
  return <div class="prose">{content}</div>;
}

/** The start of a line of a log or a terminal. */
const LOG = /^\s*(?:Traceback\b|\d{4}-\d\d-\d\d[T ]|\[?\d\d?:\d\d|[$❯>] ?\S|at \S+\(|File "|npm (?:ERR|WARN|error)|make: |[\w.]*(?:Error|Exception|Warning): |(?:error|warning|fatal|info|debug)(?:\[\w+\])?: |\S+:\d+:\d+)/i;
const FENCE_OR_GAP = /(^ *(?:```|~~~)[^]*?\n *(?:```+|~~~+) *$|\n\s*\n)/m;

/** Return Markdown with each pasted log as code, from its first line to the end of its paragraph. */
function withLogsAsCode(text: string): string {
  return text
    .split(FENCE_OR_GAP)
    .map((part, i) => {
      const lines = part.split("\n");
      const logged = lines.flatMap((line, number) => (LOG.test(line) ? number : []));
      const first = logged[0];
      // A single line may be a sentence, such as "Warning: it is slow".
      if (i % 2 || first === undefined || (logged.length < 2 && !/^\d/.test(lines[first] ?? ""))) return part;
      return [...lines.slice(0, first), "````", ...lines.slice(first), "````"].join("\n");
    })
    .join("");
}

/** Show one line of Markdown, such as a title or a bullet. */
export function InlineMarkdown({ text, matches = [] }: { text: string; matches?: readonly string[] }) {
  const content = useMemo(() => new Builder(matches).build(parser.parseInline(text, {})), [text, matches.join("\n")]);
  return <>{content}</>;
}

interface Frame {
  tag: string;
  properties: Record<string, string>;
  children: ComponentChildren[];
}

class Builder {
  constructor(private readonly matches: readonly string[]) {}

  build(tokens: Token[]): ComponentChildren[] {
    const stack: Frame[] = [{ tag: "", properties: {}, children: [] }];
    const top = () => stack[stack.length - 1] as Frame;
    for (const token of tokens) {
      if (token.hidden) continue; // the paragraphs of a tight list
      if (token.nesting === 1) {
        stack.push({ ...this.element(token), children: [] });
      } else if (token.nesting === -1) {
        const { tag, properties, children } = stack.pop() as Frame;
        top().children.push(tag === "table" ? h("div", { class: "table" }, h(tag, properties, children)) : h(tag, properties, children));
      } else {
        top().children.push(this.leaf(token));
      }
    }
    return (stack[0] as Frame).children;
  }

  private element(token: Token): Omit<Frame, "children"> {
    if (token.tag === "a") return linked(String(token.attrGet("href") ?? ""));
    // The headings of a text are below those of the page.
    const level = /^h([1-6])$/.exec(token.tag)?.[1];
    if (level) return { tag: Number(level) <= 2 ? "h3" : "h4", properties: {} };
    const tag = TAGS.has(token.tag) ? token.tag : "span";
    const properties: Record<string, string> = {};
    const alignment = ALIGNMENT.exec(String(token.attrGet("style") ?? ""))?.[1];
    if (alignment) properties.class = `align-${alignment}`;
    const start = token.attrGet("start");
    if (tag === "ol" && start) properties.start = String(start);
    return { tag, properties };
  }

  private leaf(token: Token): ComponentChildren {
    switch (token.type) {
      case "inline":
        return this.build(token.children ?? []);
      case "text":
      case "text_special":
        return <Marked text={token.content} matches={this.matches} />;
      case "code_inline":
        return h("code", null, <Marked text={token.content} matches={this.matches} />);
      case "fence":
      case "code_block":
        return <Code text={token.content} language={token.info.trim().split(/\s/, 1)[0] ?? ""} matches={this.matches} />;
      case "softbreak":
      case "hardbreak":
        return h("br", null);
      case "hr":
        return h("hr", null);
      case "image":
        return h("span", { class: "picture" }, `Picture: ${token.content || token.attrGet("src") || ""}`);
      default:
        return token.content;
    }
  }
}

function linked(address: string): Omit<Frame, "children"> {
  if (!/^(https?|mailto):/i.test(address)) return { tag: "span", properties: { title: address } };
  return { tag: "a", properties: { href: address, target: "_blank", rel: "noopener noreferrer nofollow" } };
}

function Code({ text, language, matches }: { text: string; language: string; matches: readonly string[] }): VNode {
  return (
    <figure class="code">
      {language && <figcaption>{language}</figcaption>}
      <pre tabIndex={0}>
        <code>
          <Marked text={text.replace(/\n$/, "")} matches={matches} />
        </code>
      </pre>
    </figure>
  );
}

/** The text of a row: what it is, and below that what came of it. */
export function RowText({ title, outcome = "" }: { title: string; outcome?: string }) {
  return (
    <span class="row-text">
      <span class="row-title">
        <InlineMarkdown text={title || "Session without a title"} />
      </span>
      {outcome && (
        <span class="row-outcome">
          <InlineMarkdown text={outcome} />
        </span>
      )}
    </span>
  );
}
