// SPDX-License-Identifier: MIT
// The worker's other end: a question is a promise.
import { take } from "./unpack.js";

export class Worker1 {
    constructor(source) {
        this.worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
        this.open = new Map();
        this.id = 0;
        this.worker.onmessage = ({ data }) => {
            const { resolve, reject } = this.open.get(data.id);
            this.open.delete(data.id);
            if (data.error) reject(new Error(data.error));
            else resolve(data.result);
        };
        this.worker.onerror = (event) => {
            for (const { reject } of this.open.values()) reject(new Error(event.message));
        };
    }
    ask(what, more) {
        const id = ++this.id;
        this.worker.postMessage({ ...more, id, what });
        return new Promise((resolve, reject) => this.open.set(id, { resolve, reject }));
    }
}

// Sends the pieces of every recording; each leaves the page as it goes. loaded(file, why) as each is open.
export async function sendRecordings(link, files, loaded) {
    for (let i = 0; i < files.length; i++) {
        const pieces = [...document.querySelectorAll(`script[data-file="${i}"]`)];
        if (!pieces.length) continue;
        const bytes = pieces.reduce((sum, p) => sum + Number(p.dataset.bytes), 0);
        try {
            link.ask("begin", { file: i, bytes, base: Number(files[i].base) }).catch(() => {});
            for (const piece of pieces) await link.ask("piece", { file: i, text: take(piece) });
            await link.ask("end", { file: i, end: files[i].end - files[i].first });
            loaded(i, "");
        } catch (error) {
            loaded(i, error.message);
        }
    }
}
