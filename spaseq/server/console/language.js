// The keywords and functions of the language, which the server knows.

import { server } from "./api.js";

let known = null;

/** `{keywords, functions}`; empty lists if the server does not tell. */
export function language() {
  known ??= server.language().catch(() => { known = null; return { keywords: [], functions: [] }; });
  return known;
}
