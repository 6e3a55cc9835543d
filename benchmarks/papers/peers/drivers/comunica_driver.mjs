// Comunica: the events of the window in an N3 store, which is queried when a match can end.
//
//     node comunica_driver.mjs FOLDER        FOLDER/node_modules has the packages
//
// It asks what sparql.py asks; the text comes from there.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const folder = path.resolve(process.argv[2], "node_modules");
if (!existsSync(folder)) {
  console.error(`cannot: no packages in ${folder}; run install.py comunica`);
  process.exit(1);
}
const load = createRequire(path.join(folder, "any.js"));
const { QueryEngine } = load("@comunica/query-sparql-rdfjs");
const { DataFactory, Store } = load("n3");
const EX = "http://example.org/";
const TYPE = DataFactory.namedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type");
const INTEGER = DataFactory.namedNode("http://www.w3.org/2001/XMLSchema#integer");
const named = (name) => DataFactory.namedNode(EX + name);
const integer = (value) => DataFactory.literal(value, INTEGER);

function textOf(words) {
  const command = [path.join(import.meta.dirname, "sparql.py"), ...words];
  const done = spawnSync("python3", command, { encoding: "utf8" });
  if (done.status !== 0) throw new Error(done.stderr);
  return done.stdout;
}

function quadsOf([time, kind, key]) {
  const event = named(`e${time}`);
  return [
    DataFactory.quad(event, TYPE, named(kind)),
    DataFactory.quad(event, named("t"), integer(time)),
    DataFactory.quad(event, named("k"), integer(key)),
  ];
}

async function count(question, arrivals) {
  const engine = new QueryEngine();
  const store = new Store();
  let [first, found] = [0, 0];
  for (const { time, quads, ends } of arrivals) {
    for (; arrivals[first].time < time - question.window; first++) {
      store.removeQuads(arrivals[first].quads);
    }
    store.addQuads(quads);
    if (!ends) continue;
    const text = question.text.replaceAll("<end>", `<${quads[0].subject.value}>`);
    for (const solution of await (
      await engine.queryBindings(text, { sources: [store] })
    ).toArray()) {
      found += Number(solution.get("n").value);
    }
  }
  return found;
}

let question;
let events = [];
for await (const line of readline.createInterface({ input: process.stdin })) {
  if (line.startsWith("question ")) {
    const [name, window, ...kinds] = line.split(" ").slice(1);
    question = { window: Number(window), kinds, text: textOf([name, window, ...kinds]) };
    events = [];
    console.log("ready");
  } else if (line === "run") {
    const arrivals = events
      .filter(([, kind]) => question.kinds.includes(kind))
      .map((event) => ({
        time: Number(event[0]),
        quads: quadsOf(event),
        ends: event[1] === question.kinds.at(-1),
      }));
    const before = process.cpuUsage();
    const found = await count(question, arrivals);
    const { user, system } = process.cpuUsage(before);
    console.log(found, (user + system) / 1e6);
  } else {
    events.push(line.split(","));
  }
}
