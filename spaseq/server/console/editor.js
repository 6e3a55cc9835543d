// The query editor: highlighting, completion and the server's diagnostics for SPAseq.

import {
  EditorState, EditorView, HighlightStyle, StreamLanguage, autocompletion, bracketMatching,
  closeBrackets, closeBracketsKeymap, completionKeymap, defaultKeymap, drawSelection,
  highlightActiveLine, highlightSelectionMatches, history, historyKeymap, indentWithTab, keymap,
  lineNumbers, lintGutter, linter, searchKeymap, syntaxHighlighting, tags,
} from "./vendor/codemirror.js";

/** The highlighter, for the server's keywords and functions. */
const highlighter = ({ keywords, functions }) => StreamLanguage.define({
  name: "spaseq",
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "{", "[", '"', "'"] } },
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^<[^<>"{}|^`\\\s]*>/)) return "url";
    if (stream.match(/^"""[\s\S]*?"""|^'''[\s\S]*?'''|^"(?:[^"\\]|\\.)*"|^'(?:[^'\\]|\\.)*'/)) return "string";
    if (stream.match(/^@[a-zA-Z-]+/)) return "meta";
    if (stream.match(/^[?$]\w+/)) return "variableName";
    if (stream.match(/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/)) return "number";
    if (stream.match(/^[\p{L}\w.-]*:[\p{L}\w.%-]*/u)) return "name";
    const word = stream.match(/^[\p{L}_]\w*/u);
    if (word) {
      const upper = word[0].toUpperCase();
      if (word[0] === "a" || word[0] === "true" || word[0] === "false") return "atom";
      const called = /^\s*\(/.test(stream.string.slice(stream.pos));
      if (called && functions.includes(upper)) return "function";
      return keywords.includes(upper) ? "keyword" : "className";
    }
    stream.next();
    return "operator";
  },
  tokenTable: {
    className: tags.className, function: tags.function(tags.variableName), name: tags.propertyName,
  },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.className, color: "var(--code-step)", fontWeight: "600" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.propertyName, color: "var(--code-name)" },
  { tag: tags.url, color: "var(--code-name)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-string)" },
  { tag: [tags.atom, tags.meta], color: "var(--code-function)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.operator, color: "var(--soft)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--card)", fontSize: "13.5px", height: "100%" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--accent)", padding: "10px 0" },
  ".cm-scroller": { lineHeight: "1.55" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--faint)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  "&.cm-focused": { outline: "none" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--selected) !important" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "#fff" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "70ch", padding: "6px 10px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
});

/** The words that fit at the cursor: keywords, functions, and the names in the text. */
function complete(context, words, language) {
  const word = context.matchBefore(/[?$]?[\w:.-]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const text = context.state.doc.toString();
  const found = new Map();
  const add = (labels, type) => labels.forEach((label) => found.has(label) || found.set(label, { label, type }));
  add([...text.matchAll(/[?$]\w+/g)].map(([name]) => name).filter((name) => name !== word.text), "variable");
  if (!word.text.startsWith("?")) {
    add([...text.matchAll(/\bGPM\s+(\w+)/gi)].map((match) => match[1]), "class");
    add([...text.matchAll(/\bPREFIX\s+([\w.-]*:)/gi)].map((match) => match[1]), "namespace");
    add(words(), "text");
    add(language.keywords, "keyword");
    add(language.functions, "function");
  }
  return { from: word.from, options: [...found.values()], validFor: /^[?$]?[\w:.-]*$/ };
}

/** Diagnostics of the API (lines and columns from 1) at places of the text. */
function placed(doc, diagnostics) {
  const position = (line, column) => {
    const found = doc.line(Math.min(Math.max(line || 1, 1), doc.lines));
    return Math.min(found.from + Math.max((column || 1) - 1, 0), found.to);
  };
  return diagnostics.map((one) => {
    const from = position(one.line, one.column);
    const to = one.end_line ? position(one.end_line, one.end_column) : doc.lineAt(from).to;
    return {
      from: Math.min(from, Math.max(to - 1, 0)), to: Math.max(to, from),
      severity: one.severity === "warning" ? "warning" : "error",
      message: one.message + (one.hint ? `\nhint: ${one.hint}` : ""),
    };
  });
}

/**
 * An editor in `parent`. It lives in a shadow root, where its styles are constructed sheets, so
 * the page's content security policy need not allow inline styles.
 *
 * @param options `text`; `language`, the server's `{keywords, functions}`; `check(text, signal)`,
 *   which resolves to diagnostics; `words()`, further completions; `changed(text)`; `submit(text)`,
 *   called for Ctrl+Enter; `label`.
 * @returns `{text(), set(text), focus(), destroy()}`
 */
export function editor(parent, { text, language, check, words, changed, submit, label }) {
  const root = parent.attachShadow({ mode: "open" });
  let asked = new AbortController();
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(),
      closeBrackets(), highlightSelectionMatches(), highlighter(language), syntaxHighlighting(colours), look,
      EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
      autocompletion({ override: [(context) => complete(context, words, language)] }),
      lintGutter(),
      linter(async (view) => {
        asked.abort();
        asked = new AbortController();
        const doc = view.state.doc;
        try {
          const found = await check(doc.toString(), asked.signal);
          return placed(doc, found);
        } catch (error) {
          return error.name === "AbortError" ? [] : placed(doc, error.problem?.diagnostics || []);
        }
      }, { delay: 350 }),
      keymap.of([
        { key: "Mod-Enter", run: (view) => { submit(view.state.doc.toString()); return true; } },
        ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap,
        ...completionKeymap, indentWithTab,
      ]),
      EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
    ],
  });
  const view = new EditorView({ state, parent: root, root });
  return {
    text: () => view.state.doc.toString(),
    set: (value) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
