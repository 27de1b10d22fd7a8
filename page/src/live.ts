// Changes of the memory, as the server reports them while the page is open.
import { useEffect, useRef } from "preact/hooks";
import { dropKept, request } from "./api";

export interface Change {
  days: string[];
  entries: string[];
}

type Listener = (change: Change) => void;

const listeners = new Set<Listener>();
const RETRY_MS = 5000;
let control: AbortController | null = null;

/** Call a function with each change of the memory as long as the component is shown. */
export function useChanges(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const own: Listener = (change) => latest.current(change);
    listeners.add(own);
    if (control === null) void listen();
    return () => {
      listeners.delete(own);
      if (listeners.size === 0) {
        control?.abort();
        control = null;
      }
    };
  }, []);
}

async function listen(): Promise<void> {
  const own = new AbortController();
  control = own;
  while (!own.signal.aborted) {
    try {
      await readEvents(await request("live", { signal: own.signal }));
    } catch {
      // The server has ended, or is busy. The views say so when they ask it for something.
    }
    if (own.signal.aborted) return;
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

/** Read server-sent events until they end: an EventSource could not send the key. */
async function readEvents(response: Response): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) report(block);
  }
}

function report(block: string): void {
  const fields = block.split("\n").map((line) => /^(event|data): ?(.*)$/.exec(line));
  const valueOf = (name: string) => fields.filter((one) => one?.[1] === name).map((one) => one?.[2] ?? "").join("\n");
  if (valueOf("event") !== "changed") return;
  let change: Change;
  try {
    change = JSON.parse(valueOf("data")) as Change;
  } catch {
    return; // cut off by the end of the server
  }
  dropKept();
  for (const listener of [...listeners]) listener(change);
}
