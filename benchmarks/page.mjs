// SPDX-License-Identifier: MIT
// page.mjs CHROMIUM PAGE: one visit of a page in figures, as one line of JSON. benchmarks/page.py runs it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [executablePath, path] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });

const mark = (name) => page.waitForFunction((n) => performance.getEntriesByName(n)[0]?.startTime, name, { timeout: 120000 }).then((v) => v.jsonValue());

// The stated script: to the middle of the run and 20 times into it, 60 pans, out again; a step in each frame.
const script = () => page.evaluate(async () => {
    const { view } = fdrPage, steps = [], work = [], intervals = [];
    for (let i = 0; i < 40; i++) steps.push(() => view.zoom(0.7, view.width * 0.6));
    for (let i = 0; i < 60; i++) steps.push(() => view.pan(i % 2 ? 90 : 40));
    for (let i = 0; i < 40; i++) steps.push(() => view.zoom(1 / 0.7, view.width * 0.4));
    for (let i = 0; i < 60; i++) steps.push(() => view.pan(i % 3 ? -60 : 150));
    view.whole();
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    let before = await frame();
    for (const step of steps) {
        step();
        const now = await frame();
        await frame();
        work.push(fdrPage.drawn);
        intervals.push((now - before) / 2), before = now;
    }
    const p95 = (list) => list.sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
    return { frames: work.length, frame_p95_ms: p95(work), interval_p95_ms: p95(intervals.slice(1)) };
});

// From the last move until the reader's own calls of the window are drawn; the longest of sixteen places.
const exact = () => page.evaluate(async () => {
    const { view, model } = fdrPage, all = model.to - model.from;
    let longest = 0;
    for (const share of [0.3, 0.15, 0.02, 0.002])
        for (const at of [0.1, 0.4, 0.7, 0.95]) {
            const settled = new Promise((done) => (fdrPage.settled = done));
            const begin = performance.now();
            view.set(model.from + all * at, model.from + all * (at + share));
            await settled;
            longest = Math.max(longest, performance.now() - begin);
        }
    fdrPage.settled = undefined;
    return longest;
});

// The largest set of pages of the tab's process, in MiB.
async function tab() {
    const session = await browser.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const sizes = processInfo.filter((p) => p.type === "renderer").map((p) =>
        Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${p.id}/status`, "utf8"))[1]) / 1024);
    return Math.max(...sizes);
}

await page.goto(`file://${path}`, { waitUntil: "commit" });
const timeline = await mark("fdr-timeline"), loaded = await mark("fdr-loaded");
const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
const seen = { first_s: first / 1000, timeline_s: timeline / 1000, loaded_s: loaded / 1000, ...await script(), exact_ms: await exact() };
seen.tab_mib = await tab();
console.log(JSON.stringify(seen));
await browser.close();
