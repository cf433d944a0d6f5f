// SPDX-License-Identifier: MIT
// The page's scripts begin here, behind the first screen.
import { App } from "./app.js";
import { loadModel } from "./model.js";
import { Worker1, sendRecordings } from "./link.js";
import { take, unpack } from "./unpack.js";

function element(name, attributes, ...inside) {
    const e = Object.assign(document.createElement(name), attributes);
    e.append(...inside);
    return e;
}

function build() {
    const app = document.getElementById("app");
    const parts = { app };
    parts.canvas = element("canvas", { tabIndex: 0 });
    parts.canvas.setAttribute("aria-label", "Timeline. Keys: W and S zoom, A and D pan, arrows, 0 shows the whole run.");
    parts.curves = element("div", { id: "curves", hidden: true });
    parts.panel = element("div", { id: "panel" });
    parts.search = element("input", { type: "search", placeholder: "search regions ( / )" });
    const button = (text, title, onclick) => element("button", { title, onclick }, text);
    parts.bar = element("div", { id: "bar" }, parts.search, button("◂", "hit before (N)", () => parts.main.next(-1)),
        button("▸", "next hit (n)", () => parts.main.next(1)), button("+", "zoom in (w)", () => parts.main.view.zoom(0.5)),
        button("−", "zoom out (s)", () => parts.main.view.zoom(2)), button("whole run", "(0)", () => parts.main.view.whole()),
        element("span", { className: "dim" }, element("i", { className: "texture" }), " detail given back, not idle"),
        element("span", { className: "dim" }, "click: facts · double-click or W S: zoom · drag or A D: pan · wheel: scroll"));
    app.append(parts.bar, parts.curves, element("div", { id: "timeline" }, parts.canvas), parts.panel);
    return parts;
}

function listenToSearch(main, input) {
    input.addEventListener("input", () => main.look(input.value));
    input.addEventListener("keydown", (e) => {
        if (e.key === "Enter") main.next(e.shiftKey ? -1 : 1);
        if (e.key === "Escape") main.parts.canvas.focus();
    });
}

// The recordings follow the scripts in the page: they are there when the document is complete.
const complete = () => new Promise((done) => {
    if (document.readyState !== "loading") done();
    else document.addEventListener("DOMContentLoaded", done, { once: true });
});

async function start() {
    const model = await loadModel();
    const parts = build();
    const main = (parts.main = new App(model, parts));
    globalThis.fdrPage = main;
    main.start();
    listenToSearch(main, parts.search);
    performance.mark("fdr-timeline");
    const worker = new TextDecoder().decode(await unpack(take(document.getElementById("worker"))));
    const link = (main.link = new Worker1(worker));
    await complete();
    await link.ask("module", { text: take(document.getElementById("reader")) });
    if (model.files.some((f) => f.embedded)) main.say("unpacking the recording");
    await sendRecordings(link, model.files, (i, why) => {
        Object.assign(model.files[i], { loaded: !why, why });
        main.say(why ? `recording ${i + 1}: ${why}` : "");
        main.settle();
    });
    performance.mark("fdr-loaded");
}

start().catch((error) => {
    const line = document.createElement("p");
    line.className = "warn";
    line.textContent = `The timeline does not start: ${error.message}`;
    document.getElementById("app").append(line);
});
