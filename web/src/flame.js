// SPDX-License-Identifier: MIT
// The flame graph of the window: paths from the outermost call down, the widest first.
import { REDUCED, FILTERED } from "./model.js";
import { theme, css } from "./colors.js";
import { fit } from "./text.js";

const ROW = 16;
export const label = (file, node) =>
    node[2] & FILTERED ? "[filtered]" : node[2] & REDUCED ? "[reduced]" : file.regions[node[1]] || "[unknown]";

// Places of the nodes: [x, width, depth] in parts of 1.
export function layout(nodes, root = 0) {
    const children = nodes.map(() => []), boxes = [];
    nodes.forEach((n, i) => n[0] >= 0 && children[n[0]].push(i));
    for (const list of children) list.sort((a, b) => nodes[b][4] - nodes[a][4]);
    const all = nodes[root][4] || children[root].reduce((sum, c) => sum + nodes[c][4], 0) || 1;
    const stack = [[root, 0, 0]];
    while (stack.length) {
        const [i, x, depth] = stack.pop();
        boxes.push({ i, x, width: i === root ? 1 : nodes[i][4] / all, depth });
        let at = x;
        for (const c of children[i]) {
            if (nodes[c][4] / all > 0.0004) stack.push([c, at, depth + 1]);
            at += nodes[c][4] / all;
        }
    }
    return boxes;
}

export function drawFlame(canvas, file, nodes, dark, root) {
    const t = theme(dark), boxes = nodes.length ? layout(nodes, root) : [];
    const width = (canvas.width = Math.max(200, canvas.parentElement.clientWidth - 16));
    const depth = boxes.reduce((most, b) => Math.max(most, b.depth), 0);
    canvas.height = Math.min(4000, (depth + 1) * ROW + 4);
    const c = canvas.getContext("2d", { alpha: false });
    c.fillStyle = t.paperCss;
    c.fillRect(0, 0, width, canvas.height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const b of boxes) {
        const x = b.x * width, w = Math.max(0.5, b.width * width - 0.5), node = nodes[b.i];
        const name = node[0] < 0 ? "all calls" : label(file, node);
        c.fillStyle = node[0] < 0 ? t.line : node[2] & REDUCED ? t.dim : css(name, dark);
        c.fillRect(x, b.depth * ROW, w, ROW - 1);
        if (w < 26) continue;
        c.fillStyle = node[0] < 0 ? t.ink : "#fff";
        c.fillText(fit(name, Math.floor((w - 4) / 6)), x + 3, b.depth * ROW + ROW / 2);
    }
    return (x, y) => boxes.find((b) => b.depth === Math.floor(y / ROW) && x >= b.x * width && x < (b.x + b.width) * width);
}

// Sums by region; calls of a region inside itself count once in `inclusive`.
export function totals(file, nodes) {
    const rows = new Map();
    nodes.forEach((n, i) => {
        if (n[0] < 0) return;
        const name = label(file, n), row = rows.get(name) || { name, region: n[1], calls: 0, inclusive: 0, exclusive: 0, longest: 0 };
        rows.set(name, row);
        row.calls += n[3], row.exclusive += n[5];
        if (n[6] > row.longest) row.longest = n[6], row.at = n[7], row.location = n[8];
        for (let p = n[0]; ; p = nodes[p][0]) {
            if (p <= 0) {
                row.inclusive += n[4];
                break;
            }
            if (nodes[p][1] === n[1] && nodes[p][2] === n[2]) break;
        }
    });
    return [...rows.values()].sort((a, b) => b.exclusive - a.exclusive);
}
