// SPDX-License-Identifier: MIT
// A recording in the reader that was compiled to WebAssembly (web/wasm/exports.c).
const ITEM_BYTES = 48, NODE_BYTES = 56, POINT_BYTES = 72;

// The C library asks for a console that nobody sees.
function imports(module) {
    const all = {};
    for (const i of WebAssembly.Module.imports(module)) (all[i.module] ??= {})[i.name] = () => 52;
    return all;
}

export class Recording {
    constructor(module, bytes, base) {
        this.wasm = new WebAssembly.Instance(module, imports(module)).exports;
        this.wasm._initialize();
        this.base = base;
        this.size = bytes;
        this.room = this.wasm.room(bytes);
        this.filled = 0;
        if (!this.room) throw new Error("no memory for the recording");
    }
    // Appends a piece of the file.
    fill(piece) {
        new Uint8Array(this.wasm.memory.buffer, this.room, this.size).set(piece, this.filled);
        this.filled += piece.length;
    }
    // "" or why it does not open. end: of the recording, since `base`; 0: each location's own.
    open(end = 0) {
        this.wasm.end(end ? this.base + end : 0);
        const verdict = this.wasm.open(this.size);
        return verdict === 2 ? this.text(this.wasm.message()) || "not readable" : "";
    }
    text(at) {
        const memory = new Uint8Array(this.wasm.memory.buffer);
        let end = at;
        while (memory[end]) end++;
        return new TextDecoder().decode(memory.slice(at, end));
    }
    // Calls of a window by depth: a Map of depth to columns.
    lanes(location, from, to, cells, depthMin, depthMax) {
        const count = this.wasm.lanes(location, from, to, this.base, cells, depthMin, depthMax);
        if (count < 0) throw new Error("out of memory");
        const at = this.wasm.lanes_result();
        const words = new Uint32Array(this.wasm.memory.buffer, at, count * ITEM_BYTES / 4);
        const times = new Float64Array(this.wasm.memory.buffer, at, count * ITEM_BYTES / 8);
        return byDepth(count, (i, c) => c < 4 ? times[i * 6 + c] : words[i * 12 + 4 + c]);
    }
    flame(location, from, to) {
        const count = this.wasm.flame(location, from, to, this.base, 0);
        if (count < 0) throw new Error("out of memory");
        const at = this.wasm.flame_result(), view = new DataView(this.wasm.memory.buffer, at, count * NODE_BYTES);
        const rows = [];
        for (let i = 0, p = 0; i < count; i++, p += NODE_BYTES) {
            const f = (k) => view.getFloat64(p + 8 * k, true), u = (k) => view.getUint32(p + 32 + 4 * k, true);
            rows.push([i ? u(0) : -1, u(1), u(2), view.getFloat64(p + 48, true), f(0), f(1), f(2), f(3), u(3)]);
        }
        return rows;
    }
    points(location, from, to, cells) {
        const count = this.wasm.points(location, from, to, this.base, cells);
        if (count < 0) throw new Error("out of memory");
        const at = this.wasm.points_result(), view = new DataView(this.wasm.memory.buffer, at, count * POINT_BYTES);
        const rows = [];
        for (let i = 0, p = 0; i < count; i++, p += POINT_BYTES) {
            const f = (k) => view.getFloat64(p + 8 * k, true), u = (k) => view.getUint32(p + 40 + 4 * k, true);
            rows.push([location, u(0), u(1), f(0), f(1), u(2), f(2), f(3), f(4), u(3), u(4), u(5), view.getFloat64(p + 64, true)]);
        }
        return rows;
    }
    // The next call of these regions; null: there is none.
    find(location, from, to, regions, count, backward, least) {
        const wanted = new Uint8Array(this.wasm.memory.buffer, this.wasm.wanted(count), count);
        for (const r of regions) wanted[r] = 1;
        if (!this.wasm.find(location, from, to, this.base, backward, least)) return null;
        const view = new DataView(this.wasm.memory.buffer, this.wasm.find_result(), 32);
        return {
            start: view.getFloat64(0, true), duration: view.getFloat64(8, true), location: view.getUint32(16, true),
            region: view.getUint32(20, true), depth: view.getUint32(24, true), flags: view.getUint32(28, true),
        };
    }
}

// get(i, column): start, duration, busy, longest, region, depth, count, flags of item i.
export function byDepth(count, get) {
    const sizes = new Map(), lanes = new Map();
    for (let i = 0; i < count; i++) sizes.set(get(i, 5), (sizes.get(get(i, 5)) || 0) + 1);
    for (const [depth, n] of sizes)
        lanes.set(depth, {
            n: 0, start: new Float64Array(n), duration: new Float64Array(n), busy: new Float64Array(n),
            longest: new Float64Array(n), region: new Uint32Array(n), count: new Uint32Array(n), flags: new Uint8Array(n),
        });
    for (let i = 0; i < count; i++) {
        const lane = lanes.get(get(i, 5)), k = lane.n++;
        lane.start[k] = get(i, 0), lane.duration[k] = get(i, 1), lane.busy[k] = get(i, 2), lane.longest[k] = get(i, 3);
        lane.region[k] = get(i, 4), lane.count[k] = get(i, 6), lane.flags[k] = get(i, 7);
    }
    return lanes;
}
