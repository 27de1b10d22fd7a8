import { Dialog } from "./dialog";
import { Key } from "./parts";
import { VIEWS } from "./views";

const MOVES: Array<[string, string]> = [
  ["/", "Search"],
  ["j", "Next row"],
  ["k", "Previous row"],
  ["Enter", "Open the row"],
  ["Esc", "Back"],
];

const ACTIONS: Array<[string, string]> = [
  ["n", "Remember a note"],
  ["o", "Original exchange"],
  ["x", "Forget an entry"],
  ["w", "Why this result"],
  ["?", "This list"],
];

/** The keys that the page knows. */
export function Help({ close }: { close: () => void }) {
  const places = VIEWS.filter((one) => one.key).map((one): [string, string] => [`g ${one.key}`, one.label]);
  return (
    <Dialog title="Keyboard" close={close}>
      <div class="help">
        {[MOVES, places, ACTIONS].map((rows) => (
          <dl key={rows[0]?.[0]}>
            {rows.map(([keys, text]) => (
              <div key={keys}>
                <dt>
                  {keys.split(" ").map((key) => (
                    <Key key={key}>{key}</Key>
                  ))}
                </dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        ))}
      </div>
    </Dialog>
  );
}
