// SPDX-License-Identifier: MIT
// Times, counts and names for people.
const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

export function time(ns) {
    const a = Math.abs(ns);
    if (a >= 60e9) return `${Math.floor(ns / 60e9)} min ${((a % 60e9) / 1e9).toFixed(1)} s`;
    for (const [size, unit] of units)
        if (a >= size) return `${(ns / size).toFixed(unit === "ns" ? 0 : 3)} ${unit}`;
    return ns ? `${ns.toFixed(2)} ns` : "0";
}

// A tick of the ruler, with as many digits as the step needs.
export function tick(ns, step) {
    const [size, unit] = units.find(([s]) => step >= s) || [1, "ns"];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return `${(ns / size).toFixed(digits)} ${unit}`;
}

export const count = (n) => Math.round(n).toLocaleString("en-US");
export const percent = (part, all) => (all ? `${(100 * part / all).toFixed(1)} %` : "");

// Controls and marks that turn the direction of text lose their power.
const unplain = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const plain = (name) => name.replace(unplain, "\ufffd") || '""';

// Longer names lose their middle.
export function fit(name, most) {
    if (name.length <= most) return name;
    if (most < 3) return "";
    const head = Math.floor(most / 2);
    return `${name.slice(0, head)}…${name.slice(name.length - (most - head - 1))}`;
}
