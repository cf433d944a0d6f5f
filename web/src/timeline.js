// SPDX-License-Identifier: MIT
// The timeline: a header and one lane a calling depth for each location, on one canvas.
import { OPEN, REDUCED, FILTERED, SUM } from "./model.js";
import { Row, firstAt, itemAt } from "./paint.js";
import { css, hash, palette, theme } from "./colors.js";
import { fit, tick } from "./text.js";
import { drawMarks, MARKS } from "./marks.js";
import { drawMessages, placeMessages } from "./messages.js";
import { GUTTER } from "./view.js";

export const LANE = 15, HEAD = 18, RULER = 20, FEW = 12;

export class Timeline {
    constructor(canvas, model, view) {
        Object.assign(this, { canvas, model, view, scroll: 0, picked: null, location: null, wide: new Set() });
        this.context = canvas.getContext("2d", { alpha: false });
        this.locations = [...model.files].sort((a, b) => (a.line ? 1 : 0) - (b.line ? 1 : 0)).flatMap((f) => f.list); // lines are last
        placeMessages(model.messages, this.locations);
        this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    }
    setTheme(dark) {
        this.dark = dark;
        this.theme = theme(dark);
        this.palettes = this.model.files.map((f) => palette(f, dark));
    }
    resize() {
        const box = this.canvas.parentElement.getBoundingClientRect();
        this.canvas.width = this.width = Math.max(300, Math.floor(box.width));
        this.canvas.height = this.height = Math.max(120, Math.floor(box.height));
        this.view.width = this.width - GUTTER;
        this.picture = this.context.createImageData(this.view.width, this.height);
        this.pixels = new Uint32Array(this.picture.data.buffer);
        this.row = new Row(this.view.width);
        this.draw();
    }
    depths(location) {
        if (this.wide.has(location)) return location.deepest;
        return Math.min(location.deepest, this.locations.length > 12 ? 5 : this.locations.length > 1 ? FEW : 40);
    }
    // Of a rank that is a line the name stands beside its only lane.
    head(location) {
        return this.model.files[location.file].line ? 0 : HEAD;
    }
    heightOf(location) {
        return this.head(location) + this.depths(location) * LANE + (location.points.length ? MARKS : 0) + (this.head(location) ? 4 : 0);
    }
    // Calls f(location, y) for the locations in sight; returns the height of all.
    each(f) {
        let y = RULER - this.scroll;
        for (const location of this.locations) {
            const height = this.heightOf(location);
            if (y + height > RULER && y < this.height) f(location, y);
            y += height;
        }
        return y + this.scroll - RULER;
    }
    // The exact calls of the window if they are there, else those of the overview.
    lanesOf(location) {
        const e = location.exact;
        const fits = e && e.depth >= this.depths(location) && e.from <= this.view.from && e.to >= this.view.to && e.cell <= 2 * this.view.span / this.view.width;
        return fits ? e.lanes : location.lanes;
    }
    draw() {
        const { context, theme: t } = this;
        this.pixels.fill(t.paper);
        this.each((location, y) => this.paintLanes(location, y));
        context.fillStyle = t.paperCss;
        context.fillRect(0, 0, this.width, this.height);
        context.putImageData(this.picture, GUTTER, 0);
        context.font = "11px system-ui, sans-serif";
        context.textBaseline = "middle";
        this.total = this.each((location, y) => this.decorate(location, y));
        if (this.model.messages.n) drawMessages(this, this.messageHeights());
        this.drawPicked();
        this.drawRuler();
        this.drawInstants();
    }
    // Where the lines of messages end: at the points of a location. Those out of sight count, too.
    messageHeights() {
        const heights = [];
        let y = RULER - this.scroll;
        for (const location of this.locations) {
            heights.push(location.points.length ? y + this.head(location) + this.depths(location) * LANE + MARKS / 2 : y + (this.head(location) || LANE / 2));
            y += this.heightOf(location);
        }
        return heights;
    }
    paintLanes(location, y) {
        const shift = this.model.files[location.file].first, lanes = this.lanesOf(location);
        for (let depth = 1; depth <= this.depths(location); depth++) {
            const top = y + this.head(location) + (depth - 1) * LANE;
            if (top < RULER - LANE || top + LANE > this.height) continue;
            this.row.clear();
            this.row.gaps(location.gaps, depth, this.view);
            const lane = lanes.get(depth);
            if (lane) this.row.calls(lane, this.view, shift, this.palettes[location.file], this.theme.reduced);
            this.row.blit(this.pixels, this.view.width, Math.max(0, top), LANE, this.theme.paper, this.theme.hatch);
        }
    }
    decorate(location, y) {
        const { context: c, theme: t } = this, file = this.model.files[location.file];
        if (file.line) {
            c.fillStyle = location === this.location ? t.ink : t.dim;
            return c.fillText(fit(file.who, 26), 6, y + LANE / 2);
        }
        c.fillStyle = location === this.location ? t.line : t.bar;
        c.fillRect(0, y, this.width, HEAD - 1);
        c.fillStyle = t.ink;
        const name = this.model.files.length > 1 ? `${location.label} · ${file.who}` : location.label;
        const more = location.deepest > this.depths(location) ? "▸ " : this.wide.has(location) ? "▾ " : "";
        c.fillText(fit(more + name, 26), 6, y + HEAD / 2);
        this.drawEpochs(location, file, y);
        this.drawNames(location, y);
        if (location.points.length)
            drawMarks(this, location, y + HEAD + this.depths(location) * LANE);
        c.fillStyle = t.dim;
        const hidden = location.deepest - this.depths(location);
        if (hidden > 0) c.fillText(`${hidden} deeper`, 6, y + HEAD + this.depths(location) * LANE - LANE / 2);
    }
    // Exact totals of each epoch as bars: what was given back is in them.
    drawEpochs(location, file, y) {
        const c = this.context;
        for (const e of location.epochs) {
            const a = Math.max(0, this.view.x(e.from)), b = Math.min(this.view.width, this.view.x(e.to));
            if (b <= a) continue;
            let x = a;
            for (const [region, share] of e.parts) {
                const w = (b - a) * share;
                if (w < 0.5) break;
                c.fillStyle = region < 0 ? this.theme.dim : css(file.regions[region] || "", this.dark);
                c.fillRect(GUTTER + x, y + HEAD - 7, w - 0.3, 5);
                x += w;
            }
            c.fillStyle = this.theme.ink;
            c.fillRect(GUTTER + a, y + 2, 1, HEAD - 4);
        }
    }
    drawNames(location, y) {
        const c = this.context, file = this.model.files[location.file], shift = file.first, lanes = this.lanesOf(location);
        for (let depth = 1; depth <= this.depths(location); depth++) {
            const lane = lanes.get(depth), top = y + HEAD + (depth - 1) * LANE;
            if (!lane || top < RULER || top > this.height) continue;
            for (let i = firstAt(lane, this.view.from - shift); i < lane.n; i++) {
                const s = lane.start[i] + shift;
                if (s > this.view.to) break;
                const x0 = Math.max(0, this.view.x(s)), x1 = Math.min(this.view.width, this.view.x(s + lane.duration[i]));
                if (x1 - x0 < 24 || lane.flags[i] & SUM) continue;
                this.drawName(c, nameOf(file, lane, i), x0, x1, top, lane.flags[i]);
            }
        }
    }
    drawName(c, name, x0, x1, top, flags) {
        c.fillStyle = flags & REDUCED || this.dark ? "#fff" : "#000";
        if (!(flags & REDUCED)) c.fillStyle = textColor(name, this.dark);
        c.fillText(fit(name, Math.floor((x1 - x0 - 4) / 6)), GUTTER + x0 + 3, top + LANE / 2);
        c.fillStyle = this.theme.paperCss;
        c.fillRect(GUTTER + x1 - 0.5, top, 1, LANE - 1);
        if (flags & OPEN) c.fillText("▸", GUTTER + x1 - 8, top + LANE / 2);
    }
    drawPicked() {
        const p = this.picked;
        if (!p) return;
        const c = this.context, shift = this.model.files[p.location.file].first;
        this.each((location, y) => {
            if (location !== p.location || p.depth > this.depths(location)) return;
            const x0 = Math.max(0, this.view.x(p.start + shift)), x1 = Math.min(this.view.width, this.view.x(p.start + p.duration + shift));
            if (x1 < 0 || x0 > this.view.width) return;
            c.strokeStyle = this.theme.select;
            c.lineWidth = 2;
            c.strokeRect(GUTTER + x0, y + this.head(location) + (p.depth - 1) * LANE, Math.max(2, x1 - x0), LANE - 1);
        });
    }
    drawRuler() {
        const { context: c, theme: t, view } = this;
        c.fillStyle = t.bar;
        c.fillRect(0, 0, this.width, RULER);
        const least = view.span / Math.max(2, Math.floor(view.width / 120)), power = 10 ** Math.floor(Math.log10(least));
        const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= least);
        c.fillStyle = t.ink;
        for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
            const x = GUTTER + view.x(at);
            c.fillRect(x, RULER - 5, 1, 5);
            c.fillText(tick(at, step), x + 3, RULER / 2);
        }
        c.fillRect(0, RULER - 1, this.width, 1);
        c.fillText(`${tick(view.span, view.span)} shown`, 6, RULER / 2);
    }
    // Signals and triggers: a line through all threads. Of many ranks at one place, the first is named.
    drawInstants() {
        const c = this.context;
        let named = -Infinity;
        const all = this.model.files.flatMap((f) => f.instants).sort((a, b) => a[0] - b[0]);
        for (const [at, name] of all) {
            const x = this.view.x(at);
            if (x < 0 || x > this.view.width) continue;
            c.fillStyle = this.theme.wrong;
            c.fillRect(GUTTER + x, 0, 1, this.height);
            if (x - named < 110) continue;
            named = x;
            const text = fit(name, 18), wide = c.measureText(text).width, left = GUTTER + Math.min(x + 3, this.view.width - wide - 2);
            c.fillStyle = this.theme.bar;
            c.fillRect(left - 1, 0, wide + 2, RULER - 1);
            c.fillStyle = this.theme.wrong;
            c.fillText(text, left, RULER / 2);
        }
    }
    // What lies there: { location, depth, lane, i }, or the location alone.
    at(x, y) {
        let found = null;
        this.each((location, top) => {
            if (y < top || y >= top + this.heightOf(location)) return;
            const head = this.head(location), depth = Math.floor((y - top - head) / LANE) + 1;
            found = { location, depth: y < top + head ? 0 : depth };
            const lane = depth >= 1 && depth <= this.depths(location) && this.lanesOf(location).get(depth);
            if (!lane || x < GUTTER) return;
            const shift = this.model.files[location.file].first;
            const i = itemAt(lane, this.view.time(x - GUTTER) - shift, this.view.span / this.view.width);
            if (i >= 0) found = { ...found, lane, i };
        });
        return found;
    }
    // So that the location is in sight.
    reveal(location, depth = 0) {
        let y = 0;
        if (depth > this.depths(location)) this.wide.add(location);
        for (const l of this.locations) {
            if (l === location) break;
            y += this.heightOf(l);
        }
        const top = y + this.head(location) + depth * LANE, inside = this.height - RULER;
        if (y < this.scroll || top > this.scroll + inside - 20) this.scroll = Math.max(0, top - inside / 2);
        this.location = location;
    }
}

export function nameOf(file, lane, i) {
    if (lane.flags[i] & FILTERED) return "[filtered]";
    if (lane.flags[i] & REDUCED) return "[reduced]";
    return file.regions[lane.region[i]] || "[unknown]";
}

// Black or white, whichever is read better on the colour of the name.
const inks = new Map();
function textColor(name, dark) {
    const key = `${dark}${hash(name)}`;
    if (!inks.has(key)) {
        const [r, g, b] = css(name, dark).match(/\d+/g).map(Number);
        inks.set(key, 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000" : "#fff");
    }
    return inks.get(key);
}
