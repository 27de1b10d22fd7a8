// The named characters that Markdown is written with, in the place of a package of all 2,231, a tenth of the page.
const NAMES = new Map(
  Object.entries({
    amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", deg: "°", times: "×", middot: "·", bull: "•",
    ndash: "–", mdash: "—", hellip: "…", laquo: "«", raquo: "»", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", larr: "←", rarr: "→",
    uarr: "↑", darr: "↓", le: "≤", ge: "≥", ne: "≠", micro: "µ", euro: "€", sect: "§", check: "✓",
  }),
);

/** Return the character of a reference such as "&lt;", or the text itself. markdown-it calls it by this name. */
export function decodeHTMLStrict(text: string): string {
  return NAMES.get(text.slice(1, -1)) ?? text;
}
