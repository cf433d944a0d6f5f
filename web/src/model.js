// SPDX-License-Identifier: MIT
// The page's data, decoded: recordings, their locations, overviews and gaps.
import { byDepth } from "./reader.js";
import { messagesOf } from "./messages.js";
import { take, unpack } from "./unpack.js";
import { plain } from "./text.js";

const COLUMNS = 8, TIMES = 4;
export const OPEN = 1, REDUCED = 2, FILTERED = 4, SUM = 8;

// tools/html/overview.c writes it.
function overviewOf(bytes) {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
    const unit = new Float64Array(bytes.buffer, bytes.byteOffset, 1)[0], all = new Map();
    for (let k = 0, at = 4; k < words[2]; k++) {
        const id = words[at], n = words[at + 1], first = at + 2;
        all.set(id, byDepth(n, (i, c) => words[first + c * n + i] * (c < TIMES ? unit : 1)));
        at = first + COLUMNS * n;
    }
    return { lanes: all, cells: words[3] };
}

// What was given back of each depth: [from, to, depth below which all is kept, by band of durations].
function gapsOf(file, location) {
    const gaps = [];
    for (const e of file.epochs)
        if (e[0] === location.id) gaps.push({ from: e[2], to: e[3], complete: e.slice(7, 11), deepest: e[11], tier: e[1] });
    if (gaps.length) return gaps;
    const reduced = new Map();
    for (const r of file.ledger) if (r[0] === location.id && r[1] === 0 && r[6]) reduced.set(r[2], r[4] ? 2 : 4);
    const ends = file.reductions.filter((r) => r[0] === location.id).map((r) => r[2]);
    if (reduced.size) gaps.push({ from: location.start ?? location.from, to: Math.max(location.from, ...ends), reduced });
    return gaps;
}

// Exact totals of each epoch as shares of its length, the greatest first: [region or -1, share].
function epochsOf(file, totals, location) {
    return file.epochs.filter((e) => e[0] === location.id).map((e) => {
        const parts = totals.get(`${e[0]} ${e[12]}`) || [], all = parts.reduce((sum, p) => sum + p[5], 0) || 1;
        return { from: e[2], to: e[3], parts: parts.sort((p, q) => q[5] - p[5]).map((p) => [p[2], p[5] / all]) };
    });
}

function byEpoch(rows) {
    const all = new Map();
    for (const p of rows) {
        const key = `${p[0]} ${p[1]}`;
        if (all.has(key)) all.get(key).push(p);
        else all.set(key, [p]);
    }
    return all;
}

// Bands of durations that a lane lacks there: 0 none, 4 all.
export function lacking(gap, depth) {
    if (gap.reduced) return gap.reduced.get(depth) || 0;
    if (depth > gap.deepest) return 0;
    return gap.complete.reduce((sum, d) => sum + (d < depth ? 1 : 0), 0);
}

function locationOf(file, index, data, overview) {
    const lanes = overview.get(data.id) || new Map();
    const named = file.locations.find((l) => l.id === data.parent);
    return {
        ...data, file: index, lanes, exact: null, gaps: [], deepest: Math.max(0, ...lanes.keys()),
        label: plain(data.name || (named && named.name) || `thread ${data.tid || data.id}`), points: [], whole: false,
    };
}

// What a rank that is a line has not.
const nothing = { sources: [], markers: [], events: [], metrics: [], epochs: [], epochTotals: [], totals: [], ledger: [], reductions: [], flame: [], points: [], places: {} };

async function fileOf(data, index) {
    const { lanes, cells } = overviewOf(await unpack(take(document.getElementById(`overview${index}`))));
    const file = { ...nothing, ...data, index, cells, loaded: false, why: "" };
    file.regions = data.regions.map(plain);
    file.list = data.locations.filter((l) => !l.samples).map((l) => locationOf(file, index, l, lanes));
    const totals = byEpoch(file.epochTotals);
    for (const l of file.list) Object.assign(l, { gaps: gapsOf(file, l), epochs: epochsOf(file, totals, l) });
    for (const p of file.points) {
        const own = data.locations.find((l) => l.id === p[0]);
        const shown = file.list.find((l) => l.id === (own && own.samples && own.parent !== null ? own.parent : p[0]));
        if (shown) shown.points.push(p);
    }
    return file;
}

export async function loadModel() {
    const data = JSON.parse(new TextDecoder().decode(await unpack(take(document.getElementById("data")))));
    const files = [];
    for (let i = 0; i < data.files.length; i++) files.push(await fileOf(data.files[i], i));
    const messages = messagesOf(await unpack(take(document.getElementById("messages"))));
    const first = Math.min(...files.map((f) => f.first)), last = Math.max(...files.map((f) => f.end));
    return { files, messages, comms: data.comms, culprit: data.culprit, from: Math.min(0, first), to: Math.max(last, first + 1) };
}

// Exact totals of a region over the chosen locations of a file.
export function totalOf(file, region, location) {
    let sum = null;
    for (const t of file.totals) {
        if (t[1] !== 0 || t[2] !== region || (location !== undefined && t[0] !== location)) continue;
        sum ??= { calls: 0, inclusive: 0, exclusive: 0, least: Infinity, most: 0, untimed: 0, atLeast: false, bins: [] };
        sum.calls += t[3], sum.inclusive += t[4], sum.exclusive += t[5], sum.untimed += t[8];
        if (t[3]) sum.least = Math.min(sum.least, t[6]);
        sum.most = Math.max(sum.most, t[7]), sum.atLeast ||= Boolean(t[9]);
        t[10].forEach((n, i) => (sum.bins[i] = (sum.bins[i] || 0) + n));
    }
    return sum;
}

// Upper limit of the bin that holds this share of the calls.
export function quantile(total, share) {
    let sum = 0;
    const all = total.bins.reduce((a, b) => a + b, 0);
    for (let i = 0; i < total.bins.length; i++) if ((sum += total.bins[i] || 0) >= share * all) return 2 ** (i + 1);
    return null;
}
