// SPDX-License-Identifier: MIT
// screenshots.mjs CHROMIUM PAGE FIRST TIMELINE: the first screen and the timeline of a page as pictures.
import { chromium } from "playwright-core";

const [executablePath, path, first, timeline] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
await page.goto(`file://${path}`);
await page.waitForFunction(() => performance.getEntriesByName("fdr-loaded").length, null, { timeout: 120000 });
// No path of the machine that made the pictures.
await page.evaluate(() => {
    for (const row of document.querySelectorAll("#origin tr")) if (/^(program|command|host)/.test(row.textContent)) row.remove();
    for (const file of fdrPage.model.files) file.sources = [];
});
await page.screenshot({ path: first });
await page.evaluate(() => document.getElementById("app").scrollIntoView());
await page.evaluate(() => {
    const { view, model } = fdrPage;
    view.set(model.from, model.to);
    fdrPage.look("luaC_step");
    return fdrPage.next(1);
});
await page.waitForFunction(() => fdrPage.timeline.picked, null, { timeout: 60000 });
await page.evaluate(() => fdrPage.view.whole());
await page.waitForTimeout(1500);
await page.screenshot({ path: timeline });
await browser.close();
