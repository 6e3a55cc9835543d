// What the console uses of CodeMirror, in one module. See README.md.
export { EditorState } from "@codemirror/state";
export {
  EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers,
} from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export {
  HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting,
} from "@codemirror/language";
export {
  autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap,
} from "@codemirror/autocomplete";
export { forceLinting, lintGutter, linter } from "@codemirror/lint";
export { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
export { tags } from "@lezer/highlight";
