import "./style.css";
import "./frame.css";
import "./parts.css";
import { render } from "preact";
import { App } from "./shell";

render(<App />, document.getElementById("app") as HTMLElement);
