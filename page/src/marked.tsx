// Text with the words that were searched for highlighted.

const SHORTEST = 3;

/** Return the word that is being typed, if it says something yet: the server knows whole words only. */
export function lastWord(question: string): string[] {
  const word = /[\p{L}\p{N}_]+$/u.exec(question.toLowerCase())?.[0] ?? "";
  return word.length >= SHORTEST ? [word] : [];
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
