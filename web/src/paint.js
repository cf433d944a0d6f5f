// SPDX-License-Identifier: MIT
// One lane as one row of pixels: the longest call of each pixel, and behind it what was given back as texture.
import { REDUCED, SUM } from "./model.js";
import { lacking } from "./model.js";

// Every so many pixels of a diagonal are drawn, by the number of bands of durations that are lacking.
const PERIOD = [0, 9, 6, 4, 3];

export class Row {
    constructor(width) {
        this.width = width;
        this.color = new Uint32Array(width);
        this.longest = new Float64Array(width);
        this.texture = new Uint8Array(width);
        this.half = new Uint8Array(width); // a sum of short calls: drawn lower, by how busy it was
    }
    clear() {
        this.color.fill(0);
        this.longest.fill(0);
        this.texture.fill(0);
        this.half.fill(0);
    }
    // ns of the window to pixels; shift: of the file's times to the page's
    gaps(gaps, depth, view) {
        for (const gap of gaps) {
            const level = lacking(gap, depth);
            const a = Math.max(0, Math.floor(view.x(gap.from))), b = Math.min(this.width, Math.ceil(view.x(gap.to)));
            if (level) for (let x = a; x < b; x++) this.texture[x] = level;
        }
    }
    calls(lane, view, shift, colors, reducedColor) {
        const { start, duration, region, flags, longest, busy, n } = lane;
        for (let i = firstAt(lane, view.from - shift); i < n; i++) {
            const s = start[i] + shift;
            if (s > view.to) break;
            if (s + duration[i] < view.from) continue;
            const x0 = view.x(s), x1 = view.x(s + duration[i]), reduced = flags[i] & REDUCED;
            const a = Math.max(0, Math.floor(x0)), b = Math.min(this.width, Math.max(a + 1, Math.floor(x1)));
            const color = reduced ? reducedColor : colors[region[i]] || reducedColor;
            const part = flags[i] & SUM ? Math.round(7 * (1 - Math.min(1, busy[i] / (duration[i] || 1)))) : 0;
            for (let x = a; x < b; x++) {
                if (longest[i] < this.longest[x]) continue;
                this.longest[x] = longest[i] || 0.5;
                this.color[x] = color;
                this.half[x] = part;
            }
        }
    }
    // Into the picture, from line y on.
    blit(pixels, stride, y, height, paper, hatch) {
        const { width, color, texture, half } = this;
        for (let line = 0; line < height - 1; line++) {
            const at = (y + line) * stride;
            for (let x = 0; x < width; x++) {
                const t = texture[x];
                if (color[x] && line * 14 >= half[x] * height) pixels[at + x] = color[x];
                else if (t && (x + line) % PERIOD[t] === 0) pixels[at + x] = hatch;
                else pixels[at + x] = paper;
            }
        }
    }
}

// The first item that may reach into the window.
export function firstAt(lane, from) {
    let low = 0, high = lane.n;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.start[middle] < from) low = middle + 1;
        else high = middle;
    }
    return Math.max(0, low - 1);
}

// The item at a moment, the longest within `slack`; -1: none.
export function itemAt(lane, at, slack) {
    let best = -1;
    for (let i = Math.max(0, firstAt(lane, at - slack) - 1); i < lane.n && lane.start[i] <= at + slack; i++) {
        if (lane.start[i] + lane.duration[i] < at - slack) continue;
        if (best < 0 || lane.longest[i] > lane.longest[best]) best = i;
    }
    return best;
}
