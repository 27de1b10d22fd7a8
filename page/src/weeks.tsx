// Small columns: how many entries each week has.

const WIDTH = 132;
const HEIGHT = 24;

/** `weeks` are the names of those to show, such as "2026-W47"; only the last ones that fit are. */
export function Weeks({ counts, weeks }: { counts: Record<string, number>; weeks: readonly string[] }) {
  const shown = filled(weeks).slice(-33);
  const most = Math.max(1, ...shown.map((week) => counts[week] ?? 0));
  const step = WIDTH / Math.max(12, shown.length);
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <rect class="spark-base" x="0" y={HEIGHT - 1} width={WIDTH} height="1" />
      {shown.map((week, number) => {
        const height = ((counts[week] ?? 0) / most) * (HEIGHT - 2);
        return height ? <rect key={week} x={WIDTH - (shown.length - number) * step} y={HEIGHT - height} width={Math.max(1.5, step - 1.5)} height={height} rx="1" /> : null;
      })}
    </svg>
  );
}

/** Return all weeks from the first to the last one. */
function filled(weeks: readonly string[]): string[] {
  const found: string[] = [];
  const [first, last] = [weeks[0], weeks.at(-1)];
  if (!first || !last) return found;
  for (let day = mondayOf(first); ; day = new Date(day.getTime() + 7 * 86_400_000)) {
    const name = nameOf(day);
    found.push(name);
    if (name >= last || found.length > 2000) return found;
  }
}

/** Return the Monday of an ISO week, in UTC. The 4th of January is in the first week. */
export function mondayOf(week: string): Date {
  const [year = 1970, number = 1] = week.split("-W").map(Number);
  const fourth = new Date(Date.UTC(year, 0, 4));
  return new Date(fourth.getTime() + ((number - 1) * 7 - ((fourth.getUTCDay() + 6) % 7)) * 86_400_000);
}

/** Return the name of the ISO week of a day or time. */
export function weekOf(time: string): string {
  const day = new Date(`${time.slice(0, 10)}T00:00Z`);
  return nameOf(new Date(day.getTime() - ((day.getUTCDay() + 6) % 7) * 86_400_000));
}

/** Return the name of the ISO week that begins on a Monday. Its Thursday has its year. */
function nameOf(monday: Date): string {
  const thursday = new Date(monday.getTime() + 3 * 86_400_000);
  const year = thursday.getUTCFullYear();
  const number = 1 + Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * 86_400_000));
  return `${year}-W${String(number).padStart(2, "0")}`;
}
