// Write a note into today's memory.
import { useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, send } from "./api";
import { Dialog } from "./dialog";
import { Failure } from "./parts";
import { href } from "./router";
import { say } from "./said";

interface Stored {
  id: string;
  created: boolean;
}

export function Remember({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [tags, setTags] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isStoring, setStoring] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const store = async () => {
    if (!text.trim() || isStoring) return;
    setStoring(true);
    setError(null);
    let note: Stored;
    try {
      const named = tags.split(/[\s,]+/).map((tag) => tag.replace(/^#/, "")).filter(Boolean);
      note = await send<Stored>("memory/store", { method: "POST", body: { text: text.trim(), tags: [...new Set(named)] } });
    } catch (failure) {
      setError(asApiError(failure));
      setStoring(false);
      return;
    }
    close();
    say(
      <>
        {note.created ? "Remembered." : "The memory has this note already."} <a href={href("entry", note.id)}>Show it</a>
      </>,
    );
  };
  return (
    <Dialog title="Remember" close={close}>
      <form
        ref={form}
        class="remember"
        onSubmit={(event) => {
          event.preventDefault();
          void store();
        }}
      >
        <label>
          <span>Note</span>
          <textarea
            rows={5}
            required
            autofocus
            maxLength={20_000}
            placeholder="Staging moves to port 7444 in December."
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit();
            }}
          />
        </label>
        <label>
          <span>Tags, if you like</span>
          <input type="text" value={tags} placeholder="gateway, staging" onInput={(event) => setTags(event.currentTarget.value)} />
        </label>
        {error && <Failure error={error} />}
        <div class="dialog-foot">
          <span class="muted">Secrets are removed before it is written.</span>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={!text.trim() || isStoring}>
            {isStoring ? "Remembering…" : "Remember"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
