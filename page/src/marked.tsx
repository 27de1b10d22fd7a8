// Text with the words that were searched for highlighted.

/** Return the words of a question. */
export function wordsOf(question: string): string[] {
  const words = question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  return [...new Set(words)].filter((word) => word.length > 1 || /[^\x00-\x7f]/.test(word));
}

/** Return a pattern that finds words with one of these beginnings; null if there is none. */
export function patternOf(matches: readonly string[]): RegExp | null {
  const parts = [...new Set(matches)].filter(Boolean).sort((a, b) => b.length - a.length);
  if (!parts.length) return null;
  const escaped = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})`, "giu");
}

/** Show text as it is, with highlighted matches. */
export function Marked({ text, matches }: { text: string; matches: readonly string[] }) {
  const pattern = patternOf(matches);
  if (!pattern) return <>{text}</>;
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    parts.push(text.slice(end, found.index), <mark>{found[0]}</mark>);
    end = found.index + found[0].length;
  }
  return (
    <>
      {parts}
      {text.slice(end)}
    </>
  );
}
