import "./style.css";
import { render } from "preact";
import { App } from "./shell";

render(<App />, document.getElementById("app") as HTMLElement);
