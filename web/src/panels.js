// SPDX-License-Identifier: MIT
// The panels under the timeline: facts of a call, totals and points of the window, the ledger.
import { h } from "preact";
import { totalOf, quantile, OPEN, REDUCED, FILTERED, SUM } from "./model.js";
import { totals } from "./flame.js";
import { pointText, METRIC, SAMPLE } from "./marks.js";
import { count, percent, time } from "./text.js";

const row = (name, ...value) => h("tr", null, h("td", null, name), h("td", { class: "n" }, ...value));
const bdi = (text) => h("bdi", null, text);

// Bars of a log2 histogram. One that is clicked goes to the next kept call that is at least that long.
function histogram(total, app, region, file) {
    const most = Math.max(1, ...total.bins);
    const first = total.bins.findIndex((n) => n), last = total.bins.findLastIndex((n) => n);
    if (first < 0) return h("p", null, "Its histogram was given back.");
    const bars = [];
    for (let i = first; i <= last; i++) {
        const n = total.bins[i] || 0, title = `${count(n)} calls of ${time(2 ** i)} to ${time(2 ** (i + 1))}; click: the next of them that is kept`;
        const height = n ? 4 + 40 * Math.log1p(n) / Math.log1p(most) : 0;
        bars.push(h("button", { class: "bar", title, "aria-label": title, onClick: () => app.findCall(file, [region], 1, 2 ** i) },
            h("i", { style: { height: `${height}px` } })));
    }
    return h("div", { class: "histogram" }, bars, h("small", null, `${time(2 ** first)} … ${time(2 ** (last + 1))}, log scale`));
}

function regionFacts(app, file, region) {
    const total = totalOf(file, region);
    if (!total) return h("p", null, "No exact totals of this region.");
    const p50 = quantile(total, 0.5), p99 = quantile(total, 0.99);
    return h("div", null, h("h3", null, "All its calls in the run, exact"), h("table", null,
        row("calls", (total.atLeast ? "at least " : "") + count(total.calls)),
        row("time inside", time(total.inclusive)), row("without callees", time(total.exclusive)),
        row("mean", total.calls ? time(total.inclusive / total.calls) : ""),
        row("half of them below", p50 ? time(p50) : "not known"), row("99 of 100 below", p99 ? time(p99) : "not known"),
        row("shortest, longest", total.calls ? `${time(total.least)}, ${time(total.most)}` : ""),
        total.untimed ? row("only counted", count(total.untimed)) : null), histogram(total, app, region, file));
}

export function Facts({ app }) {
    const p = app.timeline.picked;
    if (!p) return h("p", null, "Click a call. Double-click: zoom to it. Wheel scrolls, Ctrl and wheel zooms, drag or Shift and wheel pans. Keys: W S A D, arrows, 0, / searches, N next hit.");
    const file = app.model.files[p.location.file], sum = p.flags & SUM;
    const gone = p.flags & REDUCED ? (p.flags & FILTERED ? "A rule kept this call out; only its callees are here." : "This caller was given back; only its callees are kept.") : null;
    return h("div", { class: "columns" }, h("div", null,
        h("h3", null, bdi(p.name)), h("p", { class: "dim" }, file.sources[p.region] || ""), gone && h("p", null, gone),
        h("table", null,
            sum ? row("drawn here", `${count(p.count)} short calls; longest named`) : null,
            row("thread", bdi(p.location.label)), row("depth", p.depth), row("begins", time(p.start + file.first)),
            row(p.flags & OPEN ? "open for at least" : "lasts", time(p.duration)), sum ? row("of it inside calls", time(p.busy)) : null),
        h("p", null, h("button", { onClick: () => app.zoomToPicked() }, "Zoom to it"), " ",
            h("button", { onClick: () => app.findCall(file, [p.region], -1) }, "◂ call before"), " ",
            h("button", { onClick: () => app.findCall(file, [p.region], 1) }, "next call ▸"))),
        gone ? null : regionFacts(app, file, p.region));
}

export function Totals({ app }) {
    const { file, nodes, note } = app.flame;
    const rows = totals(file, nodes).slice(0, 200), all = rows.reduce((sum, r) => sum + r.exclusive, 0);
    return h("div", null, h("p", { class: "dim" }, note), h("table", { class: "wide" },
        h("tr", null, ["region", "calls", "time inside", "without callees", "", "longest"].map((t) => h("th", null, t))),
        rows.map((r) => h("tr", null, h("td", null, bdi(r.name)), h("td", { class: "n" }, count(r.calls)), h("td", { class: "n" }, time(r.inclusive)),
            h("td", { class: "n" }, time(r.exclusive)), h("td", { class: "n" }, percent(r.exclusive, all)),
            h("td", { class: "n" }, r.longest ? h("button", { class: "link", onClick: () => app.goTo(file, r.location, r.at, r.longest) }, time(r.longest)) : "")))));
}

// The points of the window, those of the same kind and name together.
export function Points({ app }) {
    const groups = new Map();
    for (const location of app.timeline.locations) {
        const file = app.model.files[location.file], e = location.exactPoints;
        const exact = e && e.from <= app.view.from && e.to >= app.view.to;
        for (const p of exact ? e.rows : location.points) {
            const t = p[3] + file.first;
            if (t < app.view.from || t > app.view.to) continue;
            const name = p[1] === SAMPLE ? `sample in ${file.places[p[12].toString(16)] || "unknown code"}` : pointText(file, p);
            const key = `${p[1]} ${name}`, g = groups.get(key) || { name, kind: p[1], n: 0, first: t, location, last: p[6] };
            g.n += p[5], g.last = p[6];
            groups.set(key, g);
        }
    }
    const list = [...groups.values()].sort((a, b) => b.n - a.n).slice(0, 200);
    if (!list.length) return h("p", null, "No messages, samples, metrics, markers or events here.");
    return h("table", { class: "wide" }, h("tr", null, ["what", "how often", "last value", "first here"].map((t) => h("th", null, t))),
        list.map((g) => h("tr", null, h("td", null, bdi(g.name)), h("td", { class: "n" }, count(g.n)),
            h("td", { class: "n" }, g.kind === METRIC ? String(g.last) : ""),
            h("td", { class: "n" }, h("button", { class: "link", onClick: () => app.view.show(g.first, app.view.span / 20) }, time(g.first))))));
}

export function Ledger({ app }) {
    const location = app.timeline.location || app.timeline.locations[0];
    if (!location) return h("p", null, "No location.");
    const file = app.model.files[location.file], rows = file.ledger.filter((l) => l[0] === location.id);
    const classes = ["region", "message", "collective", "metric", "marker", "sample", "io", "task", "user"];
    return h("div", null, h("p", null, "Ledger of ", bdi(location.label), ": presented = kept + filtered + given back + lost"), h("table", { class: "wide" },
        h("tr", null, ["class", "depth", "presented", "kept", "filtered", "given back", "lost"].map((t) => h("th", null, t))),
        rows.map((l) => h("tr", null, h("td", null, classes[l[1]] || l[1]), l.slice(2).map((n) => h("td", { class: "n" }, count(n)))))));
}
