// Days, times, and numbers as a person reads them. The server's times have its zone: "2026-11-20T14:02:00+01:00", or are days.

/** The page is in English, so its dates are too. */
export const LANGUAGE = "en";

const LONG_DAY = new Intl.DateTimeFormat(LANGUAGE, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const SHORT_DAY = new Intl.DateTimeFormat(LANGUAGE, { day: "numeric", month: "short", year: "numeric" });
const THIS_YEAR = new Intl.DateTimeFormat(LANGUAGE, { weekday: "short", day: "numeric", month: "short" });
const NUMBER = new Intl.NumberFormat(LANGUAGE);

/** Return the noon of an ISO day: no change of clocks moves it to another day. */
export function dateOf(day: string): Date {
  return new Date(`${day.slice(0, 10)}T12:00:00`);
}

/** Return the ISO day of a date. */
export function isoDay(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function today(): string {
  return isoDay(new Date());
}

/** Return the day that is some days after another one. */
export function dayAfter(day: string, days: number): string {
  const date = dateOf(day);
  date.setDate(date.getDate() + days);
  return isoDay(date);
}

/** "Today", "Yesterday", or "Friday, November 20, 2026". */
export function longDay(day: string): string {
  if (day.slice(0, 10) === today()) return "Today";
  if (day.slice(0, 10) === dayAfter(today(), -1)) return "Yesterday";
  return formatted(LONG_DAY, day);
}

/** "Today", "Yesterday", or the day as `shortDay` has it. */
export function nearDay(day: string): string {
  const long = longDay(day);
  return long.includes(",") ? shortDay(day) : long;
}

/** "Fri, Nov 20" in this year, else "Nov 20, 2025". */
export function shortDay(day: string): string {
  return formatted(day.slice(0, 4) === today().slice(0, 4) ? THIS_YEAR : SHORT_DAY, day);
}

/** The day with its weekday and year, also if it is today. */
export function fullDay(day: string): string {
  return formatted(LONG_DAY, day);
}

function formatted(format: Intl.DateTimeFormat, day: string): string {
  const date = dateOf(day);
  return Number.isNaN(date.getTime()) ? day : format.format(date);
}

/** Return the minute of a time, such as "14:02", or "" if it is a day. */
export function minute(time: string): string {
  return /\d{4}-\d\d-\d\d[ T](\d\d:\d\d)/.exec(time)?.[1] ?? "";
}

/** "1 turn", "2 turns", "1,234 turns". */
export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${NUMBER.format(count)} ${count === 1 ? noun : nouns}`;
}
