// Comunica: the events of the window in an N3 store, which is queried when a match can end.
//
//     node comunica_driver.mjs FOLDER        FOLDER/node_modules has the packages
import { packagesOf, serve } from "./protocol.mjs";

const load = packagesOf(process.argv[2], "comunica");
const { QueryEngine } = load("@comunica/query-sparql-rdfjs");
const { DataFactory, Store } = load("n3");

async function count({ window, kinds, text }, events) {
  const engine = new QueryEngine();
  const store = new Store();
  const arrivals = events.filter(({ kind }) => kinds.includes(kind));
  let [first, found] = [0, 0];
  for (const { time, kind, quads } of arrivals) {
    for (; arrivals[first].time < time - window; first++) {
      store.removeQuads(arrivals[first].quads);
    }
    store.addQuads(quads);
    if (kind !== kinds.at(-1)) continue;
    const query = text.replaceAll("<end>", `<${quads[0].subject.value}>`);
    const solutions = await engine.queryBindings(query, { sources: [store] });
    for (const solution of await solutions.toArray()) {
      found += Number(solution.get("n").value);
    }
  }
  return found;
}

await serve(DataFactory, count);
