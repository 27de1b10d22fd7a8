// The keyboard: `useKeys` for a view's own keys; rows (elements with data-row) are moved through with j and k.
import { useEffect, useRef } from "preact/hooks";

/** What a key does. A function that returns false leaves the key to the layer below. */
export type Keys = Record<string, (event: KeyboardEvent) => unknown>;

const PREFIX_MS = 1200;
const layers: Array<{ current: Keys }> = [];
let prefix = "";
let prefixTime = 0;

/** Call the function of a key, such as "n" or "g t", when it is pressed outside of a field. The last layer wins. */
export function useKeys(keys: Keys): void {
  const layer = useRef(keys);
  layer.current = keys;
  useEffect(() => {
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  }, []);
}

/** Return whether a key belongs to the field that has the focus. */
export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Focus the next or the previous row of the view. Return whether there is one. */
export function moveRow(step: number): boolean {
  const scope = document.querySelector("dialog[open]") ?? document;
  const rows = [...scope.querySelectorAll<HTMLElement>("[data-row]")].filter((row) => row.offsetParent !== null);
  const present = document.activeElement?.closest<HTMLElement>("[data-row]");
  const at = present ? rows.indexOf(present) : -1;
  const row = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1)];
  if (!row) return false;
  row.focus();
  row.scrollIntoView({ block: "nearest" });
  return true;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isField(event.target) && event.key !== "Escape") return;
  const isDialog = document.querySelector("dialog[open]") !== null;
  if (isDialog && event.key === "Escape") return; // the dialog closes by itself
  const named = prefix && event.timeStamp - prefixTime < PREFIX_MS ? `${prefix} ${event.key}` : event.key;
  prefix = "";
  if (!isDialog) {
    for (const layer of [...layers].reverse()) {
      const act = layer.current[named];
      if (act && act(event) !== false) {
        event.preventDefault();
        return;
      }
    }
    if (event.key === "g") {
      prefix = "g";
      prefixTime = event.timeStamp;
      return;
    }
  }
  if (event.key === "j" || event.key === "k") {
    if (moveRow(event.key === "j" ? 1 : -1)) event.preventDefault();
  }
});
