// Material fetches mermaid from a CDN unless the page has it: docs/hooks.py puts an installed copy beside the site.
import { mermaid } from "../assets/mermaid/index.js";

mermaid.initialize({ startOnLoad: false });
window.mermaid = mermaid;
