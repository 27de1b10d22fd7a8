// Forget an entry: first what would go, then the erasing itself.
import { useState } from "preact/hooks";
import { type ApiError, asApiError, at, send, useAnswer } from "./api";
import { Dialog } from "./dialog";
import { plural } from "./format";
import { Failure, Loading } from "./parts";
import { say } from "./said";

/** What goes, or has gone. The lists hold ids, or names of files. */
interface Locations {
  turns: string[];
  notes: string[];
  facts: unknown[];
  bullets: number;
  days: string[];
  archived: Record<string, number>;
  passages: unknown[];
  files: string[];
  old_versions: unknown[];
  /** Erases exactly this, once. */
  confirmation: string;
}

/** `title` says what the entry is. */
export function Forget({ id, title, close, done }: { id: string; title: string; close: () => void; done: () => void }) {
  const preview = useAnswer<Locations>(at("memory", id), { dry_run: true }, false, "DELETE");
  const [isErasing, setErasing] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const erase = async (confirmation: string) => {
    setErasing(true);
    setError(null);
    try {
      await send(at("memory", id), { method: "DELETE", parameters: { confirmation } });
    } catch (failure) {
      setError(asApiError(failure));
      setErasing(false);
      preview.reload(); // a confirmation works once
      return;
    }
    say("Forgotten.");
    done();
  };
  return (
    <Dialog title="Forget for good?" close={close}>
      <blockquote class="goes-title">{title}</blockquote>
      {preview.error ? (
        <Failure error={preview.error} retry={preview.reload} />
      ) : preview.data ? (
        <>
          <ul class="goes">
            {lines(preview.data).map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          <p class="muted">It is erased from the memory, the archive, and the index for good. Claude Code’s own transcript, git, and backups keep what they have.</p>
        </>
      ) : (
        <Loading rows={3} what="Looking for what would go" />
      )}
      {error && <Failure error={error} />}
      <div class="dialog-foot">
        <button type="button" autofocus onClick={close}>
          Keep
        </button>
        <button type="button" class="danger" disabled={!preview.data || isErasing} onClick={() => preview.data && void erase(preview.data.confirmation)}>
          {isErasing ? "Forgetting…" : "Forget for good"}
        </button>
      </div>
    </Dialog>
  );
}

function lines(found: Locations): string[] {
  const originals = Object.values(found.archived).reduce((sum, one) => sum + one, 0);
  const counts: Array<[number, string, string]> = [
    [found.turns.length, "turn", "turns"],
    [found.notes.length, "note", "notes"],
    [found.bullets, "bullet of a summary", "bullets of summaries"],
    [found.facts.length, "fact that rests on it", "facts that rest on it"],
    [originals, "original exchange in the archive", "original exchanges in the archive"],
    [found.passages.length, "passage of a file", "passages of files"],
    [found.files.length, "file", "files"],
    [found.old_versions.length, "earlier version of a file", "earlier versions of files"],
  ];
  const days = found.days.length ? [`In ${found.days.map((day) => `${day}.md`).join(", ")}`] : [];
  return [...counts.filter(([count]) => count > 0).map(([count, one, more]) => plural(count, one, more)), ...days];
}
