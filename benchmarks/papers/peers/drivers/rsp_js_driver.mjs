// rsp-js: an RSP-QL query over a window that slides by one, which counts the matches that end in
// its newest event.
//
//     node rsp_js_driver.mjs FOLDER        FOLDER/node_modules has the packages
//
// There is an event at each time, so each is the newest of one window. A window is reported when the
// second event after it comes, so two more follow the last one. rsp-js keeps an instance of the
// window for each step that it covers, and searches all of them for each new one.
import { packagesOf, serve } from "./protocol.mjs";

const load = packagesOf(process.argv[2], "rsp-js");
const { RSPEngine } = load("rsp-js");
const { DataFactory } = load("n3");
const EX = "http://example.org/";
const LONGEST = 1000;

function queryOf({ window, kinds, text }) {
  const [, select, pattern] = /(SELECT .*?) WHERE \{(.*)\}$/.exec(text);
  return [
    `PREFIX : <${EX}>`,
    "REGISTER RStream <found> AS",
    select,
    `FROM NAMED WINDOW :w ON STREAM :s [RANGE ${window + 1} STEP 1]`,
    "WHERE {",
    `WINDOW :w { ${pattern.replaceAll("<end>", "?end")}`,
    `FILTER NOT EXISTS { ?later :t ?after FILTER(?after > ?t${kinds.length}) } }`,
    "}",
  ].join("\n");
}

async function count(question, events) {
  const engine = new RSPEngine(queryOf(question));
  const stream = engine.getStream(`${EX}s`);
  let [found, left] = [0, events.length];
  const done = new Promise((resolve) => {
    engine.register().on("RStream", ({ bindings }) => {
      found += Number(bindings.get("n").value);
      if (--left === 0) resolve();
    });
  });
  const { namedNode, quad } = DataFactory;
  const end = namedNode(`${EX}end`);
  const last = events.at(-1).time;
  for (const { time, quads } of events) {
    for (const one of quads) stream.add(one, time);
  }
  for (const time of [last + 1, last + 2]) stream.add(quad(end, end, end), time);
  await done;
  return found;
}

await serve(DataFactory, count, ({ window }) =>
  window > LONGEST ? `a window of ${window} has as many instances` : undefined,
);
