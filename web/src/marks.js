// SPDX-License-Identifier: MIT
// Points under the lanes of a location: samples, messages, collectives, markers, events.
import { GUTTER } from "./view.js";

export const MARKS = 14;
export const SEND = 3, RECV = 4, COLL_BEGIN = 5, COLL_END = 6, METRIC = 7, MARKER = 8, SAMPLE = 9, EVENT = 10, IO_BEGIN = 11, IO_END = 12;
const sign = { [SEND]: "▲", [RECV]: "▼", [COLL_BEGIN]: "◆", [COLL_END]: "◇", [MARKER]: "⚑", [EVENT]: "●", [IO_BEGIN]: "▪" };

export function drawMarks(timeline, location, y) {
    const { context: c, view, theme: t } = timeline, shift = timeline.model.files[location.file].first;
    const seen = new Map();
    const points = location.exactPoints && location.exactPoints.from <= view.from && location.exactPoints.to >= view.to
        ? location.exactPoints.rows : location.points;
    c.fillStyle = t.dim;
    for (const p of points) {
        const x = view.x(p[3] + shift);
        if (p[1] === METRIC || x < 0 || x > view.width) continue;
        if (p[1] === SAMPLE) {
            c.fillRect(GUTTER + x, y + 2, 1, MARKS - 5);
            continue;
        }
        if (x - (seen.get(p[1]) ?? -9) < 7) continue;
        seen.set(p[1], x);
        c.fillText(sign[p[1]] || "·", GUTTER + x - 4, y + MARKS / 2 - 1);
    }
    c.fillText("points", 6, y + MARKS / 2);
}

export function pointText(file, p) {
    const name = { [MARKER]: file.markers[p[2]], [EVENT]: file.events[p[2]], [METRIC]: (file.metrics[p[2]] || [])[0] }[p[1]];
    const what = { [SEND]: `send to ${p[9]}, tag ${p[10]}, ${p[6]} bytes`, [RECV]: `receive from ${p[9]}, tag ${p[10]}, ${p[6]} bytes`,
        [COLL_BEGIN]: "collective begins", [COLL_END]: "collective ends",
        [IO_BEGIN]: "input or output begins", [IO_END]: "input or output ends" }[p[1]];
    return what || name || "point";
}
