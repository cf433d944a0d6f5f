// SPDX-License-Identifier: MIT
// The flame graph as a panel. A click makes a path the whole width; a click on the top goes back.
import { h, Component } from "preact";
import { drawFlame, label } from "./flame.js";
import { count, time } from "./text.js";

export class FlamePanel extends Component {
    constructor() {
        super();
        this.root = 0;
        this.said = "";
    }
    componentDidMount() {
        this.paint();
    }
    componentDidUpdate() {
        this.paint();
    }
    paint() {
        const { flame, dark } = this.props.app;
        if (this.of !== flame.nodes) this.root = 0;
        this.of = flame.nodes;
        this.hit = drawFlame(this.canvas, flame.file, flame.nodes, dark, this.root);
    }
    point(event, click) {
        const { flame } = this.props.app, box = this.hit(event.offsetX, event.offsetY), node = box && flame.nodes[box.i];
        if (click && box) this.root = box.i === this.root ? Math.max(0, node[0]) : box.i;
        const text = !node ? "" : node[0] < 0 ? "all calls" : `${label(flame.file, node)}: ${count(node[3])} calls, ${time(node[4])} inside, ${time(node[5])} without callees`;
        if (text !== this.said || click) this.said = text, this.forceUpdate();
    }
    render({ app }) {
        return h("div", null, h("p", { class: "dim" }, app.flame.note, " ", h("bdi", null, this.said)),
            h("canvas", { ref: (c) => (this.canvas = c), onMouseMove: (e) => this.point(e, false), onClick: (e) => this.point(e, true) }));
    }
}
