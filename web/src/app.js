// SPDX-License-Identifier: MIT
// The page at work: what the timeline shows, what the reader is asked for, what the panels say.
import { h, render } from "preact";
import { Timeline, nameOf } from "./timeline.js";
import { View, placeOf, textOf, GUTTER } from "./view.js";
import { Curves } from "./curves.js";
import { Facts, Totals, Points, Ledger } from "./panels.js";
import { FlamePanel } from "./flame_panel.js";
import { Messages } from "./messages.js";
import { listen } from "./input.js";
import { time } from "./text.js";

const tabs = { Call: Facts, "Flame graph": FlamePanel, Totals, Points, Messages, Ledger };

export class App {
    constructor(model, parts) {
        this.model = model;
        this.parts = parts;
        this.view = new View(model.from, model.to);
        this.timeline = new Timeline(parts.canvas, model, this.view);
        this.curves = new Curves(parts.curves, model, this.view);
        this.tab = "Flame graph";
        this.hits = { text: "", regions: [] };
        this.flame = this.wholeFlame(model.files[model.culprit]);
        this.view.changed = () => this.redraw();
        listen(this.timeline, this.view, () => this.redraw(), this);
    }
    start() {
        this.restyle();
        addEventListener("resize", () => this.restyle());
        addEventListener("hashchange", () => this.follow());
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
        this.follow();
        this.panels();
    }
    get dark() {
        return matchMedia("(prefers-color-scheme: dark)").matches;
    }
    restyle() {
        this.timeline.setTheme(this.dark);
        this.timeline.resize();
        this.curves.build(this.dark);
        this.panels();
    }
    // Once a frame, however often it is called.
    redraw() {
        if (this.frame) return;
        this.frame = requestAnimationFrame(() => {
            this.frame = 0;
            const begin = performance.now();
            this.timeline.draw();
            this.drawn = performance.now() - begin;
            this.curves.show();
            clearTimeout(this.later), clearTimeout(this.rest);
            this.later = setTimeout(() => this.settle(), 90);
        });
    }
    // The view stands: what is not exact is asked for, and the address names the place.
    settle() {
        if (this.link) this.sharpen();
        const text = textOf(this.view, this.timeline.location);
        if (this.follows !== text) history.replaceState(null, "", (this.follows = text));
        clearTimeout(this.rest);
        this.rest = setTimeout(() => this.tab !== "Call" && this.flameOfWindow(), 300); // calls in sight come first
        this.panels();
    }
    follow() {
        if (this.follows === location.hash) return;
        const place = placeOf(location.hash);
        const found = place.location && this.timeline.locations.find((l) => l.file === place.location[0] && l.id === place.location[1]);
        if (found) this.timeline.reveal(found);
        if (place.t) this.view.set(place.t[0], place.t[1]);
        if (place.t || found) this.parts.app.scrollIntoView();
        this.redraw();
    }
    panels() {
        render(h("div", null,
            h("nav", { role: "tablist" }, Object.keys(tabs).filter((name) => name !== "Messages" || this.model.messages.n).map((name) => h("button", {
                role: "tab", "aria-selected": name === this.tab,
                onClick: () => {
                    this.tab = name;
                    this.settle();
                },
            }, name)), h("span", { class: "dim" }, this.status || "")),
            h("div", { class: "panel" }, h(tabs[this.tab], { app: this }))), this.parts.panel);
    }
    say(text) {
        this.status = text;
        this.panels();
    }

    // ---- questions to the reader ----
    async ask(what, file, more) {
        if (!file.loaded) throw new Error(file.embedded ? file.why || "the recording is still being unpacked" : file.line ? "this rank is a line here: fdr html with a larger --size shows all of it" : "this recording is not embedded");
        return this.link.ask(what, { file: file.index, ...more });
    }
    // Exact calls for the locations in sight whose overview is too coarse here. One question at a time, the newest next.
    async sharpen() {
        if (this.asking) return void (this.again = true);
        this.asking = true;
        for (const file of this.model.files) if (file.loaded) await this.sharpenFile(file).catch((e) => this.say(e.message));
        this.asking = false;
        if (this.again) this.again = false, this.sharpen();
        else this.settled?.();
    }
    async sharpenFile(file) {
        const { view, timeline } = this, want = [], all = file.end - file.first;
        const around = view.span * (view.span > all / 50 ? 0.05 : 0.25); // what is large takes long
        const from = Math.max(0, view.from - around - file.first), to = Math.min(file.end - file.first, view.to + around - file.first);
        const cells = Math.ceil(view.width * 1.5);
        if (to <= from || all / file.cells <= 1.5 * view.span / view.width) return;
        timeline.each((l) => {
            const e = l.exact, depth = timeline.depths(l);
            const good = e && e.depth >= depth && e.from <= view.from && e.to >= view.to && e.cell <= 1.2 * view.span / view.width;
            if (l.file === file.index && depth && !good) want.push({ location: l.id, depth });
        });
        if (!want.length) return;
        const rows = await this.ask("lanes", file, { want, from, to, cells });
        for (const [id, lanes] of rows) {
            const l = file.list.find((one) => one.id === id), w = want.find((one) => one.location === id);
            l.exact = { lanes, depth: w.depth, from: from === 0 ? -Infinity : from + file.first, to: to >= file.end - file.first ? Infinity : to + file.first, cell: (to - from) / cells };
        }
        const ids = file.list.filter((l) => l.points.length).flatMap((l) => [l.id, ...file.locations.filter((s) => s.samples && s.parent === l.id).map((s) => s.id)]);
        if (ids.length) this.takePoints(file, await this.ask("points", file, { locations: ids, from, to, cells }), from, to);
        this.redraw();
    }
    takePoints(file, rows, from, to) {
        for (const l of file.list) {
            const own = new Set([l.id, ...file.locations.filter((s) => s.samples && s.parent === l.id).map((s) => s.id)]);
            if (l.points.length) l.exactPoints = { from: from + file.first, to: to + file.first, rows: rows.filter((p) => own.has(p[0])) };
        }
    }
    wholeFlame(file) {
        return { file, nodes: file.flame, note: file.flame.length ? "Kept calls of the whole run." : "There are too many paths to show; zoom in.", key: "" };
    }
    // Of the chosen location, else of all of the culprit's.
    async flameOfWindow() {
        const location = this.timeline.location, file = this.model.files[location ? location.file : this.model.culprit];
        const key = `${file.index} ${location ? location.id : -1} ${this.view.from} ${this.view.to}`;
        if (this.flame.key === key) return;
        const whole = this.view.from <= this.model.from && this.view.to >= this.model.to && !location;
        if (whole) this.flame = { ...this.wholeFlame(file), key };
        else {
            const from = Math.max(0, this.view.from - file.first), to = Math.min(file.end, this.view.to) - file.first;
            try {
                const nodes = to > from ? await this.ask("flame", file, { location: location ? location.id : -1, from, to }) : [];
                this.flame = { file, nodes, key, note: `Kept calls of the ${time(this.view.span)} shown${location ? `, thread ${location.label}` : ""}; parts outside do not count.` };
            } catch (error) {
                this.flame = { ...this.flame, key, note: error.message };
            }
        }
        this.panels();
    }

    // ---- calls ----
    pick(found) {
        const { lane, i, location, depth } = found, file = this.model.files[location.file];
        this.timeline.picked = { location, depth, name: nameOf(file, lane, i), start: lane.start[i], duration: lane.duration[i], busy: lane.busy[i],
            region: lane.region[i], count: lane.count[i], flags: lane.flags[i] };
    }
    click(x, y) {
        const found = this.timeline.at(x, y);
        this.parts.canvas.focus({ preventScroll: true });
        if (found) this.timeline.location = found.location;
        if (found && found.lane) this.pick(found), (this.tab = "Call");
        else this.timeline.picked = null;
        if (found && found.depth === 0 && x < GUTTER) this.fold(found.location);
        this.redraw();
    }
    fold(location) {
        if (!this.timeline.wide.delete(location)) this.timeline.wide.add(location);
    }
    enter(x, y) {
        const found = this.timeline.at(x, y);
        if (found && found.lane) this.pick(found), this.zoomToPicked();
    }
    picked() {
        if (this.timeline.picked) this.zoomToPicked();
    }
    nothing() {
        this.timeline.picked = this.timeline.location = null;
        this.redraw();
    }
    zoomToPicked() {
        const p = this.timeline.picked;
        this.view.show(p.start + this.model.files[p.location.file].first, p.duration);
    }
    hover(x, y) {
        const found = this.timeline.at(x, y);
        if (!found || !found.lane) return void (this.parts.canvas.title = "");
        const file = this.model.files[found.location.file], sum = found.lane.count[found.i];
        this.parts.canvas.title = `${nameOf(file, found.lane, found.i)}  ${time(found.lane.duration[found.i])}${sum > 1 ? `, ${sum} calls` : ""}`;
    }
    goTo(file, location, start, duration) {
        const l = file.list.find((one) => one.id === location);
        if (l) this.timeline.reveal(l);
        this.view.show(start + file.first, duration);
    }

    // ---- search ----
    search() {
        this.parts.search.focus();
    }
    look(text) {
        const wanted = text.toLowerCase();
        this.hits = { text, files: this.model.files.map((f) => f.regions.flatMap((n, i) => (i && wanted && n.toLowerCase().includes(wanted) ? [i] : []))) };
        const all = this.hits.files.reduce((sum, list) => sum + list.length, 0);
        this.say(text ? `${all} regions match; Enter: the next call` : "");
    }
    next(direction) {
        const location = this.timeline.location, index = location ? location.file : this.model.culprit;
        const regions = this.hits.files ? this.hits.files[index] : [];
        if (regions.length) this.findCall(this.model.files[index], regions, direction);
    }
    // The next call of these regions behind the one that is picked, else behind the left edge.
    async findCall(file, regions, direction, least = 0) {
        const p = this.timeline.picked && this.timeline.picked.location.file === file.index ? this.timeline.picked : null;
        const at = p ? p.start : this.view.from - file.first, end = file.end - file.first;
        const from = direction > 0 ? at + 1 : 0, to = direction > 0 ? end : at - 1;
        try {
            const found = to >= from && await this.ask("find", file, { location: this.timeline.location ? this.timeline.location.id : -1, from: Math.max(0, from), to,
                regions, count: file.regions.length, backward: direction < 0, least });
            if (!found) return this.say("no further call of it is kept in that direction");
            this.arrive(file, found);
        } catch (error) {
            this.say(error.message);
        }
    }
    arrive(file, found) {
        const location = file.list.find((l) => l.id === found.location);
        this.timeline.reveal(location, found.depth);
        this.timeline.picked = { location, depth: found.depth, name: file.regions[found.region], start: found.start, duration: found.duration,
            busy: found.duration, region: found.region, count: 1, flags: found.flags };
        this.tab = "Call";
        const margin = Math.max(found.duration * 4, Math.min(this.view.span / 2, 1e5));
        this.view.set(found.start + file.first - margin, found.start + found.duration + file.first + margin);
        this.say("");
    }
}
