// The board on a canvas: cores as squares, links as pairs of lanes between them (keep right), nodes as dots where there is room.
const CELL = 40, BOX = 26, EDGE = (CELL - BOX) / 2, LANE = 3, DOTS_FROM = 70;

class Board extends Surface {
  // all: what is on the board, or two of them; this.m is the one that is drawn or pointed at.
  constructor(canvas, all, state) {
    super(canvas, state);
    this.all = all; this.m = all[0];
    this.colours = d3.range(Math.max(1, this.m.groups.names.length)).map(groupColour);
  }

  size() { return [this.m.board.cols * CELL, this.m.board.rows * CELL]; }
  show(core) { this.bring((core % this.m.board.cols + 0.5) * CELL, (Math.floor(core / this.m.board.cols) + 0.5) * CELL); }
  focusOf(thing) { return thing.kind === "core" ? thing.core : this.m.coreOf(thing); }
  thingAt(core) { return {kind: "core", core}; }

  beside(core, key) {
    const b = this.m.board, [down, right] = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[key];
    const row = Math.floor(core / b.cols) + down, col = core % b.cols + right;
    return row >= 0 && col >= 0 && row < b.rows && col < b.cols ? row * b.cols + col : -1;
  }

  corner(core) { return [core % this.m.board.cols * CELL + EDGE, Math.floor(core / this.m.board.cols) * CELL + EDGE]; }

  // Ends of the lane of a link; a link round the edge of a torus is drawn as a stub.
  lane(link) {
    const [x, y] = this.corner(link >> 2), d = link & 3, mid = BOX / 2;
    if (d === 0) return [x + BOX, y + mid + LANE, x + BOX + 2 * EDGE, y + mid + LANE];
    if (d === 1) return [x, y + mid - LANE, x - 2 * EDGE, y + mid - LANE];
    if (d === 2) return [x + mid - LANE, y + BOX, x + mid - LANE, y + BOX + 2 * EDGE];
    return [x + mid + LANE, y, x + mid + LANE, y - 2 * EDGE];
  }

  // Nodes of a core stand in a square grid.
  dots(core) {
    const nodes = this.m.nodesOn(core), side = Math.ceil(Math.sqrt(nodes.length)) || 1;
    return {nodes, side, step: BOX / side};
  }

  // What is under a point of the canvas: a node, a core, a link, or nothing.
  under(px, py) {
    this.m = this.all.length > 1 && px > this.state.split * this.wide ? this.all[1] : this.all[0];
    const [x, y] = this.at.invert([px, py]), b = this.m.board, col = Math.floor(x / CELL), row = Math.floor(y / CELL);
    if (col < 0 || row < 0 || col >= b.cols || row >= b.rows) return null;
    const core = row * b.cols + col, dx = x - col * CELL - EDGE, dy = y - row * CELL - EDGE;
    if (dx >= 0 && dy >= 0 && dx < BOX && dy < BOX) {
      if (this.dotted(core)) {
        const {nodes, side, step} = this.dots(core), k = Math.floor(dy / step) * side + Math.floor(dx / step);
        if (k < nodes.length) return {kind: "node", node: nodes[k]};
      }
      return {kind: "core", core};
    }
    let best = null, least = 5;
    for (let other of [core, core - 1, core + 1, core - b.cols, core + b.cols]) {
      if (other < 0 || other >= this.m.cores) continue;
      for (let d = 0; d < 4; d++) {
        const link = 4 * other + d;
        if (!this.m.works(link)) continue;
        const [x1, y1, x2, y2] = this.lane(link), inX = x >= Math.min(x1, x2) - 1 && x <= Math.max(x1, x2) + 1, inY = y >= Math.min(y1, y2) - 1 && y <= Math.max(y1, y2) + 1;
        const away = d < 2 ? (inX ? Math.abs(y - y1) : 9) : (inY ? Math.abs(x - x1) : 9);
        if (away < least) { least = away; best = {kind: "link", link}; }
      }
    }
    return best;
  }

  dotted(core) {
    if (!this.m.home || this.state.colour !== "group") return false;
    const count = this.m.home.first[core + 1] - this.m.home.first[core];
    return count > 0 && (count === 1 || BOX * this.at.k > DOTS_FROM && BOX * this.at.k / Math.ceil(Math.sqrt(count)) > 3);
  }

  // Values of cores in the colours that are chosen, and the largest.
  values() {
    const own = this.m.values(this.state.colour);
    return {top: d3.max(this.all, (one) => d3.max(one.values(this.state.colour).of)) || 1, ...own};
  }

  paintAll(c) {
    const kept = this.m, split = this.all.length > 1 ? this.state.split * this.wide : this.wide;
    this.all.forEach((one, k) => {
      this.m = one;
      c.save();
      c.beginPath(); c.rect(k ? split : 0, 0, k ? this.wide - split : split, this.tall); c.clip();
      this.moved(c);
      this.paint(c);
      c.restore();
    });
    this.m = kept;
    if (this.all.length > 1) { c.fillStyle = css("--ink"); c.fillRect(split - 1, 0, 2, this.tall); }
  }

  paint(c) {
    const b = this.m.board;
    const [x0, y0] = this.at.invert([0, 0]), [x1, y1] = this.at.invert([this.wide, this.tall]);
    const from = {c: Math.max(0, Math.floor(x0 / CELL)), r: Math.max(0, Math.floor(y0 / CELL))};
    const to = {c: Math.min(b.cols - 1, Math.floor(x1 / CELL)), r: Math.min(b.rows - 1, Math.floor(y1 / CELL))};
    const seen = [];
    for (let r = from.r; r <= to.r; r++) for (let q = from.c; q <= to.c; q++) seen.push(r * b.cols + q);
    if (this.m.loads && this.at.k * LANE > 0.6) this.drawLinks(c, seen);
    const values = this.state.colour === "group" ? null : this.values();
    for (const core of seen) this.drawCore(c, core, values);
    this.drawChips(c);
    this.drawChosen(c);
  }

  drawLinks(c, seen) {
    const top = d3.max(this.all, (one) => one.hottest) || 1;
    for (const core of seen) for (let d = 0; d < 4; d++) {
      const link = 4 * core + d;
      if (!this.m.works(link)) continue;
      const [x1, y1, x2, y2] = this.lane(link), share = this.m.loads[link] / top;
      c.strokeStyle = share > 0 ? heat(share) : css("--line");
      c.lineWidth = 0.5 + 3 * share;
      c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke();
    }
  }

  drawCore(c, core, values) {
    const [x, y] = this.corner(core), m = this.m, state = m.board.state[core];
    c.fillStyle = css("--empty");
    c.fillRect(x, y, BOX, BOX);
    if (state) {
      c.strokeStyle = state === 1 ? css("--warn") : css("--soft"); c.lineWidth = 1.5;
      c.beginPath(); c.moveTo(x + 4, y + 4); c.lineTo(x + BOX - 4, y + BOX - 4);
      if (state !== 2) { c.moveTo(x + BOX - 4, y + 4); c.lineTo(x + 4, y + BOX - 4); }
      c.stroke();
      return;
    }
    if (values) {
      if (values.of[core] > 0) { c.fillStyle = heat(values.of[core] / values.top); c.fillRect(x, y, BOX, BOX); }
      return;
    }
    if (this.dotted(core)) {
      const {nodes, side, step} = this.dots(core), gap = nodes.length === 1 ? 0 : 0.12 * step;
      nodes.forEach((node, k) => {
        c.fillStyle = m.groups.of ? this.colours[m.group(node)] : css("--accent");
        c.fillRect(x + k % side * step + gap, y + Math.floor(k / side) * step + gap, step - 2 * gap, step - 2 * gap);
      });
      return;
    }
    const g = m.groups.names.length, total = m.count[core];
    if (!total) return;
    if (!g) { c.fillStyle = css("--accent"); c.fillRect(x, y, BOX, BOX); return; }
    let left = x;
    for (let k = 0; k < g; k++) {
      const amount = m.amounts[core * g + k];
      if (!amount) continue;
      c.fillStyle = this.colours[k];
      c.fillRect(left, y, BOX * amount / total + 0.05, BOX);
      left += BOX * amount / total;
    }
  }

  drawChips(c) {
    const b = this.m.board, [down, across] = b.chips, [rows, cols] = b.cores;
    if (down * across < 2) return;
    c.strokeStyle = css("--soft"); c.lineWidth = 1; c.setLineDash([3, 3]);
    for (let r = 0; r < down; r++) for (let q = 0; q < across; q++) c.strokeRect(q * cols * CELL + 1, r * rows * CELL + 1, cols * CELL - 2, rows * CELL - 2);
    c.setLineDash([]);
  }

  frame(c, core, colour, width) {
    const [x, y] = this.corner(core);
    c.strokeStyle = colour; c.lineWidth = width;
    c.strokeRect(x - width / 2, y - width / 2, BOX + width, BOX + width);
  }

  drawChosen(c) {
    const ink = css("--ink"), one = Math.min(3, Math.max(1.2, 2.5 / this.at.k));
    for (const [what, width] of [[this.state.hover, 0.7 * one], [this.state.chosen, one]]) {
      if (!what) continue;
      if (what.kind === "core") this.frame(c, what.core, ink, width);
      if (what.kind === "link") this.drawRoute(c, [what.link], ink, 2 * width);
      if (what.kind === "node" || what.kind === "flow") this.drawReach(c, what, ink, width);
    }
    if (this.state.focus >= 0 && document.activeElement === this.canvas) {
      c.setLineDash([2, 2]); this.frame(c, this.state.focus, ink, 1.5 * one); c.setLineDash([]);
    }
  }

  // What a node or a flow sends: its routes, and the cores that it reaches.
  drawReach(c, what, ink, width) {
    const home = this.m.coreOf(what), {cores, links} = this.m.reach(what);
    this.drawRoute(c, links, css("--route"), 2.2 * width);
    cores.forEach((to) => this.frame(c, to, css("--route"), width));
    this.frame(c, home, ink, 1.3 * width);
    if (what.kind === "node" && this.dotted(home)) {
      const {nodes, side, step} = this.dots(home), k = nodes.indexOf(what.node), [x, y] = this.corner(home);
      c.strokeStyle = ink; c.lineWidth = Math.min(width, step / 6);
      c.strokeRect(x + k % side * step, y + Math.floor(k / side) * step, step, step);
    }
  }

  drawRoute(c, links, colour, width) {
    c.strokeStyle = colour; c.lineWidth = width;
    c.beginPath();
    for (const link of links) { const [x1, y1, x2, y2] = this.lane(link); c.moveTo(x1, y1); c.lineTo(x2, y2); }
    c.stroke();
  }
}
