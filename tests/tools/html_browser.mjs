// SPDX-License-Identifier: MIT
// html_browser.mjs CHROMIUM PAGE...: opens each page from disk and prints what happened there, as one line of JSON.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [browserPath, ...pages] = process.argv.slice(2);
const flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
const browser = await chromium.launch({ executablePath: browserPath, args: flags });

const marked = (page, name) => page.waitForFunction((n) => performance.getEntriesByName(n).length, name, { timeout: 60000 });

// The page draws the single calls of a window; all of them are told.
async function drawn(page) {
    return page.evaluate(async () => {
        const rows = [];
        for (const location of fdrPage.timeline.locations) {
            const file = fdrPage.model.files[location.file], span = file.end - file.first;
            const want = [{ location: location.id, depth: 0 }];
            const [[, lanes]] = await fdrPage.ask("lanes", file, { want, from: 0, to: span, cells: 2 ** 31 - 1 });
            for (const [depth, lane] of lanes)
                for (let i = 0; i < lane.n; i++) rows.push([location.id, depth, lane.duration[i], lane.region[i]]);
        }
        return rows.sort().length;
    });
}

// With the keyboard and the mouse, as a person would.
async function used(page) {
    const span = () => page.evaluate(() => fdrPage.view.span);
    const before = await span();
    await page.focus("#timeline canvas");
    await page.keyboard.press("w");
    const zoomed = await span();
    await page.keyboard.press("0");
    const box = await page.locator("#timeline canvas").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 20 + 18 + 6);
    await page.waitForFunction(() => fdrPage.timeline.picked, null, { timeout: 20000 });
    const facts = await page.locator(".panel h3").first().textContent();
    await page.fill("input[type=search]", "b");
    await page.keyboard.press("Enter");
    return { zooms: zoomed < before, facts };
}

// The window that a link leads to, in a page of its own: nothing is under way there.
async function linked(address) {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    await page.goto(address);
    await marked(page, "fdr-timeline");
    const view = await page.evaluate(() => [fdrPage.view.from, fdrPage.view.to]);
    await page.close();
    return view;
}

async function visit(path) {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    const seen = { path, errors: [], requests: [] };
    page.on("console", (m) => m.type() === "error" && seen.errors.push(m.text()));
    page.on("pageerror", (e) => seen.errors.push(String(e)));
    page.on("dialog", (d) => (seen.errors.push(`dialog ${d.message()}`), d.dismiss()));
    page.on("request", (r) => /^(file|blob|data):/.test(r.url()) || seen.requests.push(r.url()));
    await page.goto(`file://${path}`);
    await marked(page, "fdr-loaded");
    seen.headline = await page.locator("h1").textContent();
    seen.open = await page.locator("#open").textContent();
    seen.elements = await page.evaluate(() => document.querySelectorAll("img, iframe, object, script[src], svg, b").length);
    seen.injected = await page.evaluate(() => globalThis.injected || 0);
    seen.loaded = await page.evaluate(() => fdrPage.model.files.map((f) => f.why || f.loaded));
    seen.locations = await page.evaluate(() => fdrPage.timeline.locations.length);
    if (seen.loaded[0] === true) seen.calls = await drawn(page);
    if (seen.calls > 1) Object.assign(seen, await used(page));
    await page.close();
    seen.view = await linked(`file://${path}#t=10,20&loc=0.0`);
    return seen;
}

for (const path of pages) {
    console.error(path);
    console.log(JSON.stringify(await visit(path)));
}
await browser.close();
