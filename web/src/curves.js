// SPDX-License-Identifier: MIT
// Metrics as curves above each other, on the timeline's own axis.
import uPlot from "uplot";
import { GUTTER } from "./view.js";
import { METRIC } from "./marks.js";
import { css } from "./colors.js";
import { plain } from "./text.js";

const HEIGHT = 90, MOST = 6;

// Series by metric and location: { name, unit, points: [[t, value]...] }
function seriesOf(model) {
    const all = new Map();
    for (const file of model.files)
        for (const location of file.list)
            for (const p of location.points) {
                if (p[1] !== METRIC) continue;
                const [name, unit] = file.metrics[p[2]] || ["metric", ""];
                const label = plain(name), key = `${label} ${unit}`;
                if (!all.has(key)) all.set(key, { name: label, unit: plain(unit) === '""' ? "" : plain(unit), lines: new Map() });
                const lines = all.get(key).lines, line = `${location.label}${model.files.length > 1 ? ` ${file.who}` : ""}`;
                if (!lines.has(line)) lines.set(line, []);
                lines.get(line).push([p[3] + file.first, p[6]]);
            }
    return [...all.values()];
}

function chart(series, box, width, dark) {
    const names = [...series.lines.keys()].slice(0, 8);
    const tables = names.map((n) => {
        const points = series.lines.get(n).sort((a, b) => a[0] - b[0]);
        return [points.map((p) => p[0]), points.map((p) => p[1])];
    });
    const ink = dark ? "#ccc" : "#333", grid = { stroke: dark ? "#333" : "#ddd" };
    return new uPlot({
        width, height: HEIGHT, legend: { show: false }, cursor: { drag: { x: false, y: false } },
        title: undefined, padding: [6, 0, 6, 0], scales: { x: { time: false, auto: false } },
        axes: [{ show: false }, { size: GUTTER - 18, stroke: ink, grid, label: `${series.name}${series.unit ? ` (${series.unit})` : ""}`, labelSize: 18, font: "11px system-ui", labelFont: "11px system-ui" }],
        series: [{}, ...names.map((n) => ({ label: n, stroke: css(n, dark), width: 1.5, spanGaps: true }))],
    }, uPlot.join(tables), box);
}

export class Curves {
    constructor(box, model, view) {
        Object.assign(this, { box, model, view, charts: [] });
        this.series = seriesOf(model).slice(0, MOST);
        box.hidden = !this.series.length;
    }
    build(dark) {
        for (const c of this.charts) c.destroy();
        const width = this.view.width + GUTTER;
        this.charts = this.series.map((s) => chart(s, this.box, width, dark));
        this.show();
    }
    show() {
        for (const c of this.charts) c.setScale("x", { min: this.view.from, max: this.view.to });
    }
}
