// SPDX-License-Identifier: MIT
// Colours that people with colour-blindness tell apart, by name: a region has the same one in every recording.
const hues = [
    [0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0], [150, 140, 60],
    [100, 143, 255], [254, 97, 0], [120, 94, 240], [90, 130, 140], [170, 110, 80],
];

export function hash(name) {
    let h = 2166136261;
    for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
    return h >>> 0;
}

function shade([r, g, b], name, dark) {
    const level = dark ? 0.72 + (hash(`${name}~`) % 4) * 0.08 : 0.95 + (hash(`${name}~`) % 4) * 0.08;
    return [r, g, b].map((v) => Math.min(255, Math.round(dark ? v * level : 255 - (255 - v) * (0.85 / level))));
}

export const rgb = (name, dark) => shade(hues[hash(name) % hues.length], name, dark);
const texts = [new Map(), new Map()];
export function css(name, dark) {
    const known = texts[dark ? 1 : 0];
    if (!known.has(name)) known.set(name, `rgb(${rgb(name, dark).join(",")})`);
    return known.get(name);
}
const word = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

// A table of all regions of a file, as words of a picture.
export function palette(file, dark) {
    const table = new Uint32Array(file.regions.length);
    file.regions.forEach((name, i) => (table[i] = word(rgb(name, dark))));
    return table;
}

export function theme(dark) {
    return dark
        ? { paper: word([24, 26, 30]), hatch: word([92, 84, 62]), reduced: word([70, 72, 80]), ink: "#e6e6e6", dim: "#9a9fa8",
            line: "#3a3f47", paperCss: "#181a1e", bar: "#20242a", select: "#ffffff", message: "rgba(235,235,235,0.55)", wrong: "#ff9e64" }
        : { paper: word([255, 255, 255]), hatch: word([196, 176, 128]), reduced: word([190, 192, 198]), ink: "#16181c", dim: "#646a74",
            line: "#d4d8de", paperCss: "#ffffff", bar: "#f0f2f5", select: "#000000", message: "rgba(20,22,30,0.5)", wrong: "#a33b00" };
}
