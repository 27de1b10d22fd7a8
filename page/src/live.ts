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
const SOON_MS = 1000;
let control: AbortController | null = null;
let since = 0;

// A browser opens six connections to a server: one tab listens, and tells the others.
const SHARED = "memkit.live";
const tabs = new BroadcastChannel(SHARED);
tabs.onmessage = (event: MessageEvent<Change>) => tell(event.data);

/** Call a function with each change of the memory as long as the component is shown. */
export function useChanges(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const own: Listener = (change) => latest.current(change);
    listeners.add(own);
    if (control === null) listen();
    return () => {
      listeners.delete(own);
      if (listeners.size === 0) {
        control?.abort();
        control = null;
      }
    };
  }, []);
}

function listen(): void {
  const { signal } = (control = new AbortController());
  since = performance.now();
  navigator.locks.request(SHARED, { signal }, () => readAll(signal)).catch(() => undefined); // aborted
}

async function readAll(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await readEvents(await request("live", { signal }));
    } catch {
      // The server has ended, or is busy. The views say so when they ask it for something.
    }
    if (signal.aborted) return;
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
  if (block === ": listening" && performance.now() - since > SOON_MS) share({ days: [], entries: [] }); // nobody has listened for a while
  const fields = block.split("\n").map((line) => /^(event|data): ?(.*)$/.exec(line));
  const valueOf = (name: string) => fields.filter((one) => one?.[1] === name).map((one) => one?.[2] ?? "").join("\n");
  if (valueOf("event") !== "changed") return;
  let change: Change;
  try {
    change = JSON.parse(valueOf("data")) as Change;
  } catch {
    return; // cut off by the end of the server
  }
  share(change);
}

function share(change: Change): void {
  tabs.postMessage(change);
  tell(change);
}

function tell(change: Change): void {
  dropKept();
  for (const listener of [...listeners]) listener(change);
}
