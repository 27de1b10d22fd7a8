// A short message about what was done, at the bottom of the page, also for screen readers.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 6000;
let show: (message: ComponentChildren) => void = () => undefined;

/** Show a message for some seconds. */
export function say(message: ComponentChildren): void {
  show(message);
}

export function Said() {
  const [message, setMessage] = useState<ComponentChildren>(null);
  show = setMessage;
  useEffect(() => {
    if (message === null) return;
    const timer = setTimeout(() => setMessage(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [message]);
  return (
    <div class="said" role="status">
      {message !== null && <div class="said-box">{message}</div>}
    </div>
  );
}
