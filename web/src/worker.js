// SPDX-License-Identifier: MIT
// The worker: unpacks recordings and answers what the page asks of them.
import { Recording } from "./reader.js";
import { unpack } from "./unpack.js";

let module = null;
const files = [];
let turn = Promise.resolve();

const answers = {
    async module({ text }) {
        module = await WebAssembly.compile(await unpack(text));
    },
    // A recording begins: its size and the time that its results count from.
    begin({ file, bytes, base }) {
        files[file] = new Recording(module, bytes, base);
    },
    async piece({ file, text }) {
        files[file].fill(await unpack(text));
    },
    end({ file, end }) {
        const why = files[file].filled === files[file].size ? files[file].open(end) : "pieces are missing";
        if (why) throw new Error(why);
        return { memory: files[file].wasm.memory.buffer.byteLength };
    },
    lanes({ file, want, from, to, cells }) {
        return want.map((w) => [w.location, files[file].lanes(w.location, from, to, cells, 0, w.depth)]);
    },
    flame: ({ file, location, from, to }) => files[file].flame(location, from, to),
    points: ({ file, locations, from, to, cells }) =>
        locations.flatMap((l) => files[file].points(l, from, to, cells)),
    find: ({ file, location, from, to, regions, count, backward, least }) =>
        files[file].find(location, from, to, regions, count, backward, least),
};

// One after another: pieces must come in order.
self.onmessage = ({ data }) => {
    turn = turn.then(async () => {
        try {
            self.postMessage({ id: data.id, result: await answers[data.what](data) });
        } catch (error) {
            self.postMessage({ id: data.id, error: String(error.message || error) });
        }
    });
};
