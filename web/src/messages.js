// SPDX-License-Identifier: MIT
// Messages as lines between their threads. Ordinals matched them (tools/html/page_messages.c); one end alone is a stub.
import { h } from "preact";
import { GUTTER } from "./view.js";
import { count, plain, time } from "./text.js";

const NUMBERS = ["sent", "received", "bytes"];
const WORDS = ["sentFile", "sentAt", "receivedFile", "receivedAt", "from", "to", "tag", "comm", "state"];
const MATCHED = 1, STUB = 14, LINES_MOST = 1500, NEAR = 4, NONE = 0xffffffff;
const alone = ["", "", "no other end here: its rank has no file, or had not come so far", "the other end was given back",
    "ambiguous: several threads posted at once", "its number is not known", "it has no number"];

// Columns of all messages; `all` of them are in the recordings, n of them here: the newest.
export function messagesOf(bytes) {
    const [n, all] = new Uint32Array(bytes.buffer, bytes.byteOffset, 2), m = { n, all };
    let at = 8;
    for (const name of NUMBERS) m[name] = new Float64Array(bytes.slice(at, at + 8 * n).buffer), at += 8 * n;
    for (const name of WORDS) m[name] = new Uint32Array(bytes.slice(at, at + 4 * n).buffer), at += 4 * n;
    return m;
}

// Places in the list of locations, the pair of them as one number, and the first and last moment of each message.
export function placeMessages(m, locations) {
    const index = new Map(locations.map((l, i) => [`${l.file} ${l.id}`, i])), pairs = new Map();
    const place = (file, at) => index.get(`${file} ${at}`) ?? -1;
    Object.assign(m, { a: new Int32Array(m.n), b: new Int32Array(m.n), pair: new Int32Array(m.n),
        first: new Float64Array(m.n), last: new Float64Array(m.n) });
    for (let i = 0; i < m.n; i++) {
        const a = (m.a[i] = place(m.sentFile[i], m.sentAt[i])), b = (m.b[i] = place(m.receivedFile[i], m.receivedAt[i]));
        const key = a * 2 ** 21 + b;
        if (!pairs.has(key)) pairs.set(key, pairs.size);
        m.pair[i] = pairs.get(key);
        const s = m.sent[i], r = m.received[i];
        m.first[i] = Number.isNaN(s) ? r : s > r ? r : s;
        m.last[i] = Number.isNaN(r) ? s : s > r ? s : r;
    }
    m.pairs = pairs.size;
}

// Calls f(i) for the messages of which a part is in the window.
function eachIn(m, view, f) {
    const { first, last, n } = m, { from, to } = view;
    for (let i = 0; i < n; i++) if (first[i] <= to && last[i] >= from) f(i);
}

// Lines of the same threads that would lie on one another are one: they end within NEAR pixels.
function linesOf(m, view) {
    const x0 = new Float64Array(m.pairs).fill(-1e9), x1 = new Float64Array(m.pairs).fill(-1e9), lines = [];
    const scale = view.width / view.span;
    eachIn(m, view, (i) => {
        const a = (m.first[i] - view.from) * scale, b = (m.last[i] - view.from) * scale, p = m.pair[i];
        if (Math.abs(a - x0[p]) < NEAR && Math.abs(b - x1[p]) < NEAR || lines.length >= LINES_MOST) return;
        x0[p] = a, x1[p] = b;
        lines.push(i);
    });
    return lines;
}

// heights: where the lines of each location end.
export function drawMessages(timeline, heights) {
    const m = timeline.model.messages, { context: c, view, theme: t } = timeline, lines = linesOf(m, view);
    const paths = new Map([[t.message, new Path2D()], [t.wrong, new Path2D()], [t.dim, new Path2D()]]);
    const x = (time) => GUTTER + view.x(time);
    for (const i of lines) {
        const a = heights[m.a[i]], b = heights[m.b[i]], matched = m.state[i] === MATCHED;
        if (matched && a !== undefined && b !== undefined) {
            const path = paths.get(m.received[i] < m.sent[i] ? t.wrong : t.message);
            path.moveTo(x(m.sent[i]), a), path.lineTo(x(m.received[i]), b);
        } else if (a !== undefined) {
            paths.get(t.dim).moveTo(x(m.sent[i]), a), paths.get(t.dim).lineTo(x(m.sent[i]) + STUB, a + STUB / 2);
        } else if (b !== undefined) {
            paths.get(t.dim).moveTo(x(m.received[i]) - STUB, b - STUB / 2), paths.get(t.dim).lineTo(x(m.received[i]), b);
        }
    }
    c.save();
    c.beginPath();
    c.rect(GUTTER, 0, view.width, timeline.height);
    c.clip();
    c.lineWidth = 1;
    c.globalAlpha = Math.min(1, Math.max(0.15, view.width / (lines.length + 1) / 4)); // many lines must not hide the calls
    for (const [color, path] of paths) c.strokeStyle = color, c.stroke(path);
    c.restore();
}

const rank = (r) => (r === NONE ? "?" : String(r));

// By sender, receiver, tag and communicator.
function channels(m, view) {
    const all = new Map();
    eachIn(m, view, (i) => {
        const name = `${m.from[i]} ${m.to[i]} ${m.tag[i]} ${m.comm[i]}`;
        const g = all.get(name) || { i, n: 0, matched: 0, bytes: 0, longest: -Infinity, at: i, back: 0 };
        g.n++, g.bytes += m.bytes[i];
        if (m.state[i] === MATCHED) {
            const ns = m.received[i] - m.sent[i];
            g.matched++, g.back += ns < 0 ? 1 : 0;
            if (ns > g.longest) g.longest = ns, g.at = i;
        }
        all.set(name, g);
    });
    return [...all.values()].sort((x, y) => y.n - x.n);
}

function notes(m, rows, view) {
    const back = rows.reduce((sum, g) => sum + g.back, 0), why = new Map();
    eachIn(m, view, (i) => m.state[i] !== MATCHED && why.set(m.state[i], (why.get(m.state[i]) || 0) + 1));
    return [
        m.all > m.n && `Lines of the newest ${count(m.n)} of ${count(m.all)} messages.`,
        back && `${count(back)} of them arrive before they were sent: the clocks of these hosts differ, so times between ranks are not exact.`,
        ...[...why].map(([state, n]) => `${count(n)} without a line to a partner: ${alone[state]}.`),
    ].filter(Boolean);
}

export function Messages({ app }) {
    const m = app.model.messages, rows = channels(m, app.view);
    if (!m.n) return h("p", null, "No messages are kept.");
    const head = ["from", "to", "tag", "communicator", "messages", "bytes", "with partner", "longest from send to receive"];
    return h("div", null, h("p", { class: "dim" }, "Messages of the window, matched by their numbers."),
        notes(m, rows, app.view).map((text) => h("p", null, text)),
        h("table", { class: "wide" }, h("tr", null, head.map((t) => h("th", null, t))), rows.slice(0, 200).map((g) => h("tr", null,
            h("td", { class: "n" }, rank(m.from[g.i])), h("td", { class: "n" }, rank(m.to[g.i])), h("td", { class: "n" }, m.tag[g.i] | 0),
            h("td", null, h("bdi", null, plain(app.model.comms[m.comm[g.i]] || "?"))), h("td", { class: "n" }, count(g.n)),
            h("td", { class: "n" }, count(g.bytes)), h("td", { class: "n" }, count(g.matched)),
            h("td", { class: "n" }, g.matched ? h("button", { class: "link", onClick: () => app.view.show(m.first[g.at], Math.abs(g.longest)) }, time(g.longest)) : "")))));
}
