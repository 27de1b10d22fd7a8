import { Dialog } from "./dialog";

export function Remember({ close }: { close: () => void }) {
  return (
    <Dialog title="Remember" close={close}>
      <p>…</p>
    </Dialog>
  );
}
