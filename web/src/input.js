// SPDX-License-Identifier: MIT
// Mouse, touch pad, touch screen and keyboard on the timeline.
import { GUTTER } from "./view.js";

function wheel(event, timeline, view, redraw) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1, dx = event.deltaX * unit, dy = event.deltaY * unit;
    if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(dy * 0.004), event.offsetX - GUTTER);
    else if (event.shiftKey) view.pan(dy || dx);
    else {
        if (dx) view.pan(dx);
        if (dy) scroll(timeline, dy, redraw);
    }
}

function scroll(timeline, by, redraw) {
    const most = Math.max(0, timeline.total - timeline.height + 40);
    timeline.scroll = Math.min(most, Math.max(0, timeline.scroll + by));
    redraw();
}

// Drags pan; two fingers zoom; a press without a drag is a click.
export function listen(timeline, view, redraw, on) {
    const canvas = timeline.canvas, held = new Map();
    let moved = 0;
    canvas.addEventListener("wheel", (e) => wheel(e, timeline, view, redraw), { passive: false });
    canvas.addEventListener("pointerdown", (e) => {
        canvas.setPointerCapture(e.pointerId);
        held.set(e.pointerId, e);
        moved = 0;
    });
    canvas.addEventListener("pointermove", (e) => {
        const before = held.get(e.pointerId);
        if (!before) return on.hover(e.offsetX, e.offsetY);
        const dx = e.offsetX - before.offsetX, dy = e.offsetY - before.offsetY;
        const other = [...held.values()].find((p) => p.pointerId !== e.pointerId);
        held.set(e.pointerId, e);
        moved += Math.abs(dx) + Math.abs(dy);
        if (other) {
            const was = Math.abs(before.offsetX - other.offsetX), is = Math.abs(e.offsetX - other.offsetX);
            view.zoom((was + 1) / (is + 1), (e.offsetX + other.offsetX) / 2 - GUTTER);
        } else if (moved > 4) {
            view.pan(-dx);
            scroll(timeline, -dy, redraw);
        }
    });
    const release = (e) => {
        if (held.delete(e.pointerId) && moved <= 4 && e.type === "pointerup") on.click(e.offsetX, e.offsetY);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("dblclick", (e) => on.enter(e.offsetX, e.offsetY));
    canvas.addEventListener("keydown", (e) => key(e, timeline, view, redraw, on));
}

function key(event, timeline, view, redraw, on) {
    const step = view.width * (event.shiftKey ? 0.5 : 0.12);
    const actions = {
        ArrowLeft: () => view.pan(-step), a: () => view.pan(-step), ArrowRight: () => view.pan(step), d: () => view.pan(step),
        ArrowUp: () => scroll(timeline, -60, redraw), ArrowDown: () => scroll(timeline, 60, redraw),
        "+": () => view.zoom(0.7), "=": () => view.zoom(0.7), w: () => view.zoom(0.7), "-": () => view.zoom(1 / 0.7),
        s: () => view.zoom(1 / 0.7), Home: () => view.whole(), "0": () => view.whole(), Enter: () => on.picked(),
        Escape: () => on.nothing(), "/": () => on.search(), n: () => on.next(1), N: () => on.next(-1),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
}
