// RDF for reading: terms, short IRIs, and a graph as one block for each subject.

import { h } from "./dom.js";

const PREFIXES = {
  "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf", "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
  "http://www.w3.org/2001/XMLSchema#": "xsd", "http://www.w3.org/ns/prov#": "prov",
  "http://www.w3.org/ns/sosa/": "sosa", "http://www.w3.org/ns/ssn/": "ssn", "https://schema.org/": "schema",
  "http://xmlns.com/foaf/0.1/": "foaf", "http://www.w3.org/2004/02/skos/core#": "skos",
  "https://www.w3.org/ns/activitystreams#": "as", "http://purl.org/dc/terms/": "dcterms",
};

/** The part of an IRI that tells it from its neighbours. */
export function short(iri) {
  const cut = Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/")) + 1;
  const prefix = PREFIXES[iri.slice(0, cut)];
  if (prefix) return `${prefix}:${iri.slice(cut)}`;
  const parts = iri.replace(/[/#]+$/, "").split(/[/#]/);
  const last = parts.at(-1);
  // A number alone says nothing: house/3.
  return /^\d+$/.test(last) && parts.length > 4 ? `${parts.at(-2)}/${last}` : last || iri;
}

/** A term in the form of SPARQL's JSON results as an element. */
export function term(value) {
  if (value === null || value === undefined) return h("span.term.none", {}, "–");
  if (typeof value !== "object") return h("span.term.literal", {}, String(value));
  if (value.type === "uri") return h("span.term.iri", { title: value.value }, short(value.value));
  if (value.type === "bnode") return h("span.term.blank", {}, `_:${value.value}`);
  if (value.type === "triple") {
    const { subject, predicate, object } = value.value;
    return h("span.term", {}, "<<( ", term(subject), " ", term(predicate), " ", term(object), " )>>");
  }
  const note = value["xml:lang"] ? `@${value["xml:lang"]}` : value.datatype ? short(value.datatype) : "";
  return h("span.term.literal", { title: note }, value.value);
}

const TERM = /<([^>]*)>|_:([\w.-]*\w)|"((?:[^"\\]|\\.)*)"(?:@([\w-]+)|\^\^<([^>]*)>)?/gy;
const ESCAPES = { n: "\n", t: "\t", r: "\r", '"': '"', "'": "'", "\\": "\\", b: "\b", f: "\f" };

function unescaped(text) {
  return text.replace(/\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\(.)/g, (_, four, eight, one) =>
    four || eight ? String.fromCodePoint(parseInt(four || eight, 16)) : ESCAPES[one] ?? one);
}

/** The next term of a line from `TERM.lastIndex` on, or null. */
function next(line) {
  while (line[TERM.lastIndex] === " " || line[TERM.lastIndex] === "\t") TERM.lastIndex += 1;
  const match = TERM.exec(line);
  if (!match) return null;
  const [, iri, blank, literal, language, datatype] = match;
  if (iri !== undefined) return { type: "uri", value: unescaped(iri) };
  if (blank !== undefined) return { type: "bnode", value: blank };
  return { type: "literal", value: unescaped(literal), datatype, "xml:lang": language };
}

/** A term that is written as in N-Triples as an element. */
export function written(text) {
  TERM.lastIndex = 0;
  return term(next(text) ?? text);
}

/** The triples of N-Triples or N-Quads text. A line with a triple term is left as text. */
export function triples(text) {
  const found = [];
  for (const line of text.split("\n")) {
    if (!line.trim() || line.startsWith("#")) continue;
    const terms = [];
    TERM.lastIndex = 0;
    for (let one; terms.length < 3 && (one = next(line));) terms.push(one);
    found.push(terms.length === 3 ? terms : line);
  }
  return found;
}

/** A graph as a list of subjects, each with its predicates and objects. */
export function graph(text) {
  const subjects = new Map();
  const others = [];
  for (const one of triples(text)) {
    if (typeof one === "string") { others.push(h("pre", {}, one)); continue; }
    const [subject, predicate, object] = one;
    const key = `${subject.type} ${subject.value}`;
    if (!subjects.has(key)) subjects.set(key, { subject, pairs: [] });
    subjects.get(key).pairs.push([predicate, object]);
  }
  return h("div.graph", {},
    [...subjects.values()].map(({ subject, pairs }) => h("section", {},
      h("h4", {}, term(subject)),
      h("dl", {}, pairs.map(([predicate, object]) => [
        h("dt", {}, predicate.value.endsWith("#type") ? "a" : term(predicate)),
        h("dd", {}, term(object)),
      ])))),
    others);
}
