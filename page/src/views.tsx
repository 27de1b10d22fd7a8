// Which view an address shows. The order is the one of the navigation.
import type { ComponentType } from "preact";
import { Around } from "./around";
import { Entry } from "./entry";
import { FileHistory, Files } from "./files";
import { Health } from "./health";
import { AllFiles, AllSessions, AllTopics } from "./projects";
import type { Route } from "./router";
import { Search } from "./search";
import { Session } from "./session";
import { Timeline } from "./timeline";
import { Topics } from "./topics";

export interface View {
  name: string;
  show: ComponentType<{ route: Route }>;
  /** What shows all projects, if something else does. */
  showAll?: ComponentType;
  /** What it is called in the navigation; "" if it is not there. */
  label: string;
  /** The key after `g` that goes there. */
  key: string;
  /** It uses the whole width. */
  isWide?: boolean;
}

export const VIEWS: View[] = [
  { name: "", show: Timeline, showAll: AllSessions, label: "Timeline", key: "t" },
  { name: "search", show: Search, label: "Search", key: "s" },
  { name: "topics", show: Topics, showAll: AllTopics, label: "Topics", key: "o" },
  { name: "files", show: Files, showAll: AllFiles, label: "Files", key: "f", isWide: true },
  { name: "health", show: Health, label: "Costs and health", key: "h" },
  { name: "session", show: Session, label: "", key: "" },
  { name: "turn", show: Session, label: "", key: "" },
  { name: "entry", show: Entry, label: "", key: "" },
  { name: "file", show: FileHistory, label: "", key: "" },
  { name: "graph", show: Around, label: "", key: "" },
];
