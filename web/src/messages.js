// SPDX-License-Identifier: MIT
// Messages as lines between their threads. Ordinals matched them (tools/html/page_messages.c); one end alone is a stub.
import { h } from "preact";
import { GUTTER } from "./view.js";
import { count, plain, time } from "./text.js";

const NUMBERS = ["sent", "received", "bytes"];
const WORDS = ["sentFile", "sentAt", "receivedFile", "receivedAt", "from", "to", "tag", "comm", "state"];
const MATCHED = 1, STUB = 14, LINES_MOST = 5000, NONE = 0xffffffff;
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

const first = (m, i) => Math.min(Number.isNaN(m.sent[i]) ? Infinity : m.sent[i], Number.isNaN(m.received[i]) ? Infinity : m.received[i]);
const last = (m, i) => Math.max(Number.isNaN(m.sent[i]) ? -Infinity : m.sent[i], Number.isNaN(m.received[i]) ? -Infinity : m.received[i]);

// Calls f(i) for the messages of which a part is in the window.
function eachIn(m, view, f) {
    for (let i = 0; i < m.n; i++) if (first(m, i) <= view.to && last(m, i) >= view.from) f(i);
}

export const keyOf = (file, location) => file * 2 ** 32 + location;

// Lines of the same threads that would lie on one another are one.
export function drawMessages(timeline, heights) {
    const m = timeline.model.messages, { context: c, view, theme: t } = timeline, seen = new Map();
    let lines = 0, here = 0;
    eachIn(m, view, () => here++);
    c.save();
    c.globalAlpha = Math.min(1, Math.max(0.15, view.width / (here + 1) / 4)); // many lines must not hide the calls
    c.beginPath();
    c.rect(GUTTER, 0, view.width, timeline.height);
    c.clip();
    c.lineWidth = 1;
    eachIn(m, view, (i) => {
        const a = heights.get(keyOf(m.sentFile[i], m.sentAt[i])), b = heights.get(keyOf(m.receivedFile[i], m.receivedAt[i]));
        const x0 = view.x(m.sent[i]), x1 = view.x(m.received[i]), both = m.state[i] === MATCHED;
        if (lines >= LINES_MOST || (both ? a === undefined || b === undefined : a === undefined && b === undefined)) return;
        const pair = `${a} ${b}`, before = seen.get(pair);
        if (before && Math.abs(before[0] - (both ? x0 : x0 || x1)) < 2 && (!both || Math.abs(before[1] - x1) < 2)) return;
        seen.set(pair, [both ? x0 : x0 || x1, x1]);
        lines++;
        c.strokeStyle = both && m.received[i] < m.sent[i] ? t.wrong : both ? t.message : t.dim;
        c.beginPath();
        if (both) c.moveTo(GUTTER + x0, a), c.lineTo(GUTTER + x1, b);
        else if (a !== undefined) c.moveTo(GUTTER + x0, a), c.lineTo(GUTTER + x0 + STUB, a + STUB / 2);
        else c.moveTo(GUTTER + x1 - STUB, b - STUB / 2), c.lineTo(GUTTER + x1, b);
        c.stroke();
    });
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
            h("td", { class: "n" }, g.matched ? h("button", { class: "link", onClick: () => app.view.show(first(m, g.at), Math.abs(g.longest)) }, time(g.longest)) : "")))));
}
