// Parses diagrams with the real Mermaid: a JSON list of texts comes in, a JSON list of what it understood goes out.
// Usage: node parse.mjs FOLDER, where FOLDER has node_modules (environment.sh makes it).
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const inside = (...path) => pathToFileURL(join(resolve(process.argv[2]), "node_modules", ...path)).href;

const { JSDOM } = (await import(inside("jsdom", "lib", "api.js"))).default;
globalThis.window = new JSDOM("<!doctype html><body></body>").window;
globalThis.document = window.document;
const { default: mermaid } = await import(inside("mermaid", "dist", "mermaid.core.mjs"));

// Entities wait in this form until the picture is drawn.
const shown = (text) => text.replace(/ﬂ°°(\d+)¶ß/gu, (_, code) => String.fromCodePoint(Number(code)));

const answers = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const { diagramType } = await mermaid.parse(text);
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    answers.push({
      type: diagramType,
      actors: [...db.getActors().values()].map((actor) => actor.description),
      messages: db.getMessages().map(({ from, to, message, type }) => ({
        from: from ?? null,
        to: to ?? null,
        text: typeof message === "string" ? shown(message) : "",
        type,
      })),
    });
  } catch (error) {
    answers.push({ error: String(error.message ?? error) });
  }
}
process.stdout.write(JSON.stringify(answers));
