// Write spaseq/server/console/vendor: CodeMirror as one module, uPlot, and their licences.
import { build } from "esbuild";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";

const target = "../../spaseq/server/console/vendor";
await build({
  entryPoints: ["editor_entry.mjs"], bundle: true, format: "esm", minify: true,
  target: "es2022", legalComments: "none", outfile: `${target}/codemirror.js`,
});
await build({
  entryPoints: ["node_modules/uplot/dist/uPlot.esm.js"], bundle: true, format: "esm",
  minify: true, target: "es2022", legalComments: "none", outfile: `${target}/uplot.js`,
});
copyFileSync("node_modules/uplot/dist/uPlot.min.css", `${target}/uplot.css`);

const bundled = [
  "uplot", "style-mod", "w3c-keyname", "crelt", "@marijn/find-cluster-break",
  ...["@codemirror", "@lezer"].flatMap((scope) =>
    readdirSync(`node_modules/${scope}`).map((name) => `${scope}/${name}`)),
].sort();
const notices = bundled.map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync(`${target}/LICENSES.txt`, notices.join(`\n${"-".repeat(78)}\n\n`));
