// SPDX-License-Identifier: MIT
// build.mjs OUT: the page's scripts and styles, with the hashes that its content security policy names.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const web = dirname(fileURLToPath(import.meta.url)), out = process.argv[2];
const module = (name) => join(web, "node_modules", name);

async function script(entry, name) {
    const result = await build({
        entryPoints: [join(web, "src", entry)], bundle: true, minify: true, format: "iife", target: ["chrome105", "firefox113"],
        legalComments: "none", charset: "ascii", write: false, nodePaths: [module("")], absWorkingDir: web,
    });
    const text = result.outputFiles[0].text.trim();
    // Inside <script> these would end it, or hide its end.
    if (/<\/script|<!--/i.test(text)) throw new Error(`${name} contains an end of a script`);
    writeFileSync(join(out, name), text);
    return text;
}

async function styles() {
    const text = readFileSync(join(module("uplot"), "dist/uPlot.min.css"), "utf8") + readFileSync(join(web, "src/page.css"), "utf8");
    const { code } = await transform(text, { loader: "css", minify: true, charset: "ascii", target: ["chrome105", "firefox113"] });
    writeFileSync(join(out, "page.css"), code.trim());
    return code.trim();
}

function licences() {
    const text = ["uplot", "preact"].map((name) => {
        const { version } = JSON.parse(readFileSync(join(module(name), "package.json"), "utf8"));
        return `This page contains ${name} ${version}:\n\n${readFileSync(join(module(name), "LICENSE"), "utf8").trim()}\n`;
    });
    writeFileSync(join(out, "licences.txt"), text.join("\n").replaceAll("--", "- -"));
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const page = await script("main.js", "page.js");
await script("worker.js", "worker.js");
const css = await styles();
licences();
writeFileSync(join(out, "hashes"),
    `default-src 'none'; script-src ${hash(page)} 'wasm-unsafe-eval'; style-src ${hash(css)}; worker-src blob:; img-src data:`);
