// SPDX-License-Identifier: MIT
// The window of time that is shown, and the place in it that the address names: #t=FROM,TO&loc=FILE.LOCATION
export const GUTTER = 150; // for names, left of the lanes

export class View {
    constructor(from, to) {
        this.least = from, this.most = to;
        this.from = from, this.to = to;
        this.width = 1000;
        this.changed = () => {};
    }
    get span() {
        return this.to - this.from;
    }
    x(t) {
        return (t - this.from) * this.width / this.span;
    }
    time(x) {
        return this.from + x * this.span / this.width;
    }
    set(from, to) {
        const all = this.most - this.least, span = Math.min(Math.max(to - from, 20), all * 1.1);
        const middle = (from + to) / 2, edge = Math.max(0, (span - all) / 2) + all * 0.05;
        this.from = Math.min(Math.max(middle - span / 2, this.least - edge), this.most + edge - span);
        this.to = this.from + span;
        this.changed();
    }
    zoom(factor, x = this.width / 2) {
        const at = this.time(x);
        this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
    }
    pan(pixels) {
        const t = pixels * this.span / this.width;
        this.set(this.from + t, this.to + t);
    }
    whole() {
        this.set(this.least, this.most);
    }
    show(start, duration) {
        const around = Math.max(duration * 2, 200);
        this.set(start - around, start + duration + around);
    }
}

export function placeOf(text) {
    const place = {};
    for (const part of text.replace(/^#/, "").split("&")) {
        const [name, value = ""] = part.split("=");
        const numbers = value.split(/[,.](?=[-\d])/).map(Number);
        if (numbers.length !== 2 || numbers.some((n) => !Number.isFinite(n))) continue;
        if (name === "t" && numbers[1] > numbers[0]) place.t = numbers;
        if (name === "loc") place.location = numbers;
    }
    return place;
}

export function textOf(view, location) {
    const t = `#t=${Math.round(view.from)},${Math.round(view.to)}`;
    return location ? `${t}&loc=${location.file}.${location.id}` : t;
}
