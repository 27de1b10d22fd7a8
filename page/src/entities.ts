// The named characters of HTML that text of a memory has. markdown-it takes them from here; it reads numbers itself.

const NAMED = new Map(Object.entries({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", ndash: "–", mdash: "—", hellip: "…", rarr: "→", copy: "©" }));

/** Return the character of `&NAME;`, or the text as it is. */
export function decodeHTMLStrict(text: string): string {
  return NAMED.get(text.slice(1, -1)) ?? text;
}
