// SPDX-License-Identifier: MIT
// html_reader.mjs READER.WASM RECORDING BASE SPAN LOCATION...: the calls that the page's reader decodes, one a line:
// location, depth, start, duration, region, flags.
import { readFileSync } from "node:fs";
import { Recording } from "../../web/src/reader.js";

const [wasm, path, base, span, ...locations] = process.argv.slice(2);
const bytes = readFileSync(path), lines = [];
const recording = new Recording(new WebAssembly.Module(readFileSync(wasm)), bytes.length, Number(base));
for (let at = 0; at < bytes.length; at += 1 << 20) recording.fill(bytes.subarray(at, at + (1 << 20)));
const why = recording.open();
if (why) throw new Error(why);
for (const location of locations.map(Number))
    for (const [depth, lane] of recording.lanes(location, 0, Number(span), 2 ** 31 - 1, 0, 0))
        for (let i = 0; i < lane.n; i++)
            lines.push([location, depth, lane.start[i], lane.duration[i], lane.region[i], lane.flags[i]].join(" "));
console.log(lines.join("\n"));
