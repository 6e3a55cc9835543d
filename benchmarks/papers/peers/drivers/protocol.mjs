// The driver's side of the protocol in ../README.md, for drivers in JavaScript over N3's terms.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const EX = "http://example.org/";
const TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const INTEGER = "http://www.w3.org/2001/XMLSchema#integer";

// Loads packages from FOLDER/node_modules, where install.py has put them.
export function packagesOf(folder, name) {
  const packages = path.resolve(folder, "node_modules");
  if (!existsSync(packages)) {
    console.error(`cannot: no packages in ${packages}; run install.py ${name}`);
    process.exit(1);
  }
  return createRequire(path.join(packages, "any.js"));
}

// The question in SPARQL, as sparql.py writes it.
function textOf(words) {
  const command = [path.join(import.meta.dirname, "sparql.py"), ...words];
  const done = spawnSync("python3", command, { encoding: "utf8" });
  if (done.status !== 0) throw new Error(done.stderr);
  return done.stdout.trim();
}

function quadsOf({ namedNode, literal, quad }, [time, kind, key]) {
  const event = namedNode(`${EX}e${time}`);
  const integer = (value) => literal(value, namedNode(INTEGER));
  return [
    quad(event, namedNode(TYPE), namedNode(EX + kind)),
    quad(event, namedNode(`${EX}t`), integer(time)),
    quad(event, namedNode(`${EX}k`), integer(key)),
  ];
}

// Answers on standard output what is asked on standard input, until its end.
//
// `count` gets a question {window, kinds, text} and the events {time, kind, quads}, and resolves to
// the number of matches; the processor time that it takes is reported. `refusal` says why a question
// cannot be asked, or nothing.
export async function serve(factory, count, refusal = () => undefined) {
  const answer = (...words) => process.stdout.write(`${words.join(" ")}\n`);
  console.log = console.debug = () => {}; // only answers may be on standard output
  let question;
  let events = [];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line.startsWith("question ")) {
      const [name, window, ...kinds] = line.split(" ").slice(1);
      question = { window: Number(window), kinds, text: textOf([name, window, ...kinds]) };
      events = [];
      const why = refusal(question);
      answer(why === undefined ? "ready" : `cannot: ${why}`);
    } else if (line === "run") {
      const arrivals = events.map((event) => ({
        time: Number(event[0]),
        kind: event[1],
        quads: quadsOf(factory, event),
      }));
      const before = process.cpuUsage();
      const found = await count(question, arrivals);
      const { user, system } = process.cpuUsage(before);
      answer(found, (user + system) / 1e6);
    } else {
      events.push(line.split(","));
    }
  }
}
