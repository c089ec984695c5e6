// The network on a canvas: nodes as boxes in layers from left to right, rows of layers one below the other.
const ACROSS = 46, DOWN = 30, WIDE = 32, TALL = 20, NAMED_FROM = 1.5, STUB = 7;

class Graph extends Surface {
  constructor(canvas, layered, state) {
    super(canvas, state);
    this.g = layered;
    this.colours = layered.parts.map((_, k) => groupColour(k));
    this.inks = this.colours.map((colour) => readable(colour));
    this.middle = (node) => [(layered.x[node] + 0.5) * ACROSS, (layered.y[node] + 0.5) * DOWN];
    this.room = [((d3.max(layered.x) || 0) + 1) * ACROSS, ((d3.max(layered.y) || 0) + 1.4) * DOWN];
    layered.lines.forEach((line) => { line.curve = this.curve(line); line.stub = layered.row[line.from] !== layered.row[line.to]; });
  }

  size() { return this.room; }
  show(node) { this.bring(...this.middle(node)); }
  focusOf(thing) { return thing.kind === "node" ? thing.node : -1; }
  thingAt(node) { return {kind: "node", node}; }

  // Left and right follow the data, up and down go to the nearest node there.
  beside(node, key) {
    const g = this.g, [x, y] = this.middle(node), near = (nodes) => d3.least(nodes.filter((k) => k < g.nodes && k !== node), (k) => Math.abs(this.middle(k)[1] - y));
    const back = () => near(g.used_by(node).map((tensor) => g.tensors.source[tensor])), on = () => near(g.made_by(node).flatMap((tensor) => g.users(tensor)));
    if (key === "ArrowLeft" || key === "ArrowRight") return (key === "ArrowLeft" ? back() : on()) ?? -1;
    const up = key === "ArrowUp", there = d3.range(g.nodes).filter((k) => up ? g.y[k] < g.y[node] : g.y[k] > g.y[node]);
    return d3.least(there, (k) => { const [p, q] = this.middle(k); return Math.abs(q - y) + 1.5 * Math.abs(p - x); }) ?? -1;
  }

  // Ends and control points of a line; it rises over the layers that it passes.
  curve({from, to}) {
    const [ax, ay] = this.middle(from), [bx, by] = this.middle(to), x1 = ax + WIDE / 2, x2 = bx - WIDE / 2;
    const layers = Math.round((bx - ax) / ACROSS), rise = this.g.row[from] !== this.g.row[to] || layers === 1 ? 0 : DOWN * Math.min(2.5, 0.45 + 0.2 * Math.abs(layers));
    const pull = layers >= 1 ? (x2 - x1) / (layers === 1 ? 2 : 4) : ACROSS / 2;
    return [x1, ay, x1 + pull, ay - rise, x2 - pull, by - rise, x2, by];
  }

  under(px, py) {
    const [x, y] = this.at.invert([px, py]), g = this.g;
    let best = -1, least = 6 / this.at.k;
    for (let node = 0; node < g.nodes; node++) {
      const [p, q] = this.middle(node), away = Math.hypot(Math.max(0, Math.abs(x - p) - WIDE / 2), Math.max(0, Math.abs(y - q) - TALL / 2));
      if (away < least) { least = away; best = node; }
    }
    if (best >= 0) return {kind: "node", node: best};
    let line = null;
    least = 5 / this.at.k;
    for (const one of g.lines) {
      const away = one.stub ? this.fromStub(one.curve, x, y) : fromCurve(one.curve, x, y, least);
      if (away < least) { least = away; line = one; }
    }
    return line && {kind: "tensor", tensor: line.tensor};
  }

  fromStub(c, x, y) { return Math.min(toSegment(x, y, c[0], c[1], c[0] + STUB, c[1]), toSegment(x, y, c[6] - STUB, c[7], c[6], c[7])); }

  // Adds a line to the path; what goes on in another row leaves at the right and comes in at the left, unless it is shown whole.
  trace(c, line, whole) {
    const p = line.curve;
    c.moveTo(p[0], p[1]);
    if (!line.stub || whole) c.bezierCurveTo(p[2], p[3], p[4], p[5], p[6], p[7]);
    else { c.lineTo(p[0] + STUB, p[1]); c.moveTo(p[6] - STUB, p[7]); c.lineTo(p[6], p[7]); }
  }

  strokes(c, lines, colour, width, whole) {
    c.strokeStyle = colour; c.lineWidth = width;
    c.beginPath();
    for (const line of lines) this.trace(c, line, whole);
    c.stroke();
  }

  paint(c) {
    const g = this.g, one = Math.min(6, Math.max(0.35, 1.2 / this.at.k)), chosen = this.state.chosen;
    const pair = chosen && chosen.kind === "pair" ? chosen.pair : null, part = chosen && chosen.kind === "part" ? chosen.part : -1;
    this.strokes(c, g.lines.filter((line) => !line.crosses), css("--soft"), 0.6 * one, false);
    this.strokes(c, g.lines.filter((line) => line.crosses), css("--ink"), 1.2 * one, false);
    const values = this.state.colour === "part" ? null : g.values(this.state.colour), empty = css("--empty"), ink = css("--ink"), paper = css("--paper");
    const [x0, y0] = this.at.invert([0, 0]), [x1, y1] = this.at.invert([this.wide, this.tall]);
    for (let node = 0; node < g.nodes; node++) {
      const [x, y] = this.middle(node), pale = (part >= 0 && g.of[node] !== part) || (pair && !pair.includes(g.placeOf(node)));
      if (x < x0 - ACROSS || x > x1 + ACROSS || y < y0 - DOWN || y > y1 + DOWN) continue;
      const fill = !values ? this.colours[g.of[node]] : values.of[node] > 0 ? heat(values.of[node] / values.top) : empty;
      c.fillStyle = paper;
      c.fillRect(x - WIDE / 2, y - TALL / 2, WIDE, TALL);
      c.globalAlpha = pale ? 0.2 : 1;
      c.fillStyle = fill;
      c.fillRect(x - WIDE / 2, y - TALL / 2, WIDE, TALL);
      if (this.at.k > NAMED_FROM) this.names(c, node, x, y, values ? (values.of[node] > 0 ? readable(fill) : ink) : pale ? ink : this.inks[g.of[node]], ink);
      c.globalAlpha = 1;
    }
    if (pair) this.strokes(c, g.lines.filter((line) => g.placeOf(line.from) === pair[0] && g.placeOf(line.to) === pair[1]), css("--route"), 2 * one, true);
    for (const [thing, width] of [[this.state.hover, 1.2 * one], [chosen, 2 * one]]) if (thing) this.mark(c, thing, width);
    if (this.state.focus >= 0 && document.activeElement === this.canvas) { c.setLineDash([2, 2]); this.frame(c, this.state.focus, ink, 1.5 * one, 3); c.setLineDash([]); }
  }

  names(c, node, x, y, inside, ink) {
    const g = this.g, two = this.at.k > 2.4, part = g.parts[g.of[node]].name;
    c.textAlign = "center"; c.textBaseline = "middle"; c.font = "5px system-ui, sans-serif"; c.fillStyle = inside;
    c.fillText(shorter(c, g.kinds[node] || g.labels[node], WIDE - 2), x, y - (two ? 3.5 : 0));
    if (!two) return;
    c.font = "4px system-ui, sans-serif";
    c.fillText(shorter(c, part, WIDE - 2), x, y + 4);
    c.fillStyle = ink; c.font = "3.4px system-ui, sans-serif";
    c.fillText(shorter(c, g.labels[node], ACROSS - 3, true), x, y + TALL / 2 + 3);
  }

  frame(c, node, colour, width, away) {
    const [x, y] = this.middle(node);
    c.strokeStyle = colour; c.lineWidth = width;
    c.strokeRect(x - WIDE / 2 - away, y - TALL / 2 - away, WIDE + 2 * away, TALL + 2 * away);
  }

  // A node with what comes in (dashed) and goes out, or a tensor with all of its users.
  mark(c, thing, width) {
    const g = this.g, route = css("--route"), ink = css("--ink");
    if (thing.kind === "tensor") {
      const lines = g.lines.filter((line) => line.tensor === thing.tensor);
      this.strokes(c, lines, route, width, true);
      new Set(lines.flatMap((line) => [line.from, line.to])).forEach((node) => this.frame(c, node, route, width / 2, 1));
    }
    if (thing.kind === "node") {
      this.strokes(c, g.lines.filter((line) => line.from === thing.node), route, width, true);
      c.setLineDash([3, 2]); this.strokes(c, g.lines.filter((line) => line.to === thing.node), route, width, true); c.setLineDash([]);
      this.frame(c, thing.node, ink, width, 1);
    }
  }
}

function readable(colour) { const {r, g, b} = d3.rgb(colour); return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111" : "#fff"; }

// The text as far as there is room; of paths the end.
function shorter(c, text, room, end) {
  if (c.measureText(text).width <= room) return text;
  let k = Math.max(1, Math.floor(text.length * room / c.measureText(text).width) - 1);
  return end ? `…${text.slice(-k)}` : `${text.slice(0, k)}…`;
}

function toSegment(x, y, x1, y1, x2, y2) {
  const dx = x2 - x1, dy = y2 - y1, part = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x1 - part * dx, y - y1 - part * dy);
}

// The distance from a Bézier curve, by twelve pieces of it; far away it does not matter.
function fromCurve(p, x, y, far) {
  if (x < Math.min(p[0], p[2], p[4], p[6]) - far || x > Math.max(p[0], p[2], p[4], p[6]) + far || y < Math.min(p[1], p[3], p[5], p[7]) - far || y > Math.max(p[1], p[3], p[5], p[7]) + far) return Infinity;
  let best = Infinity, [a, b] = [p[0], p[1]];
  for (let k = 1; k <= 12; k++) {
    const t = k / 12, s = 1 - t, w = [s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t];
    const c = w[0] * p[0] + w[1] * p[2] + w[2] * p[4] + w[3] * p[6], d = w[0] * p[1] + w[1] * p[3] + w[2] * p[5] + w[3] * p[7];
    best = Math.min(best, toSegment(x, y, a, b, c, d));
    [a, b] = [c, d];
  }
  return best;
}
