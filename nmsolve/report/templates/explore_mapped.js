// What the page knows of a mapping.
class Mapped {
  constructor(data) {
    Object.assign(this, data);
    this.cores = this.board.rows * this.board.cols;
    if (this.core) this.home = byKey(this.core, this.cores);
    if (this.messages) {
      this.messages.first = starts(this.messages.count);
      this.sent = byKey(this.messages.source, this.nodes);
    }
    this.traffic = new Float64Array(this.cores);
    this.received = new Float64Array(this.cores);
    if (this.pairs) for (let k = 0; k < this.pairs.weight.length; k++) {
      this.traffic[this.pairs.from[k]] += this.pairs.weight[k];
      this.received[this.pairs.to[k]] += this.pairs.weight[k];
    }
    const g = this.groups.names.length;
    this.amounts = this.groups.count || new Uint32Array(this.cores * g);
    if (this.groups.of) for (let i = 0; i < this.nodes; i++) this.amounts[this.core[i] * g + this.groups.of[i]]++;
    this.hottest = this.loads ? this.loads.reduce((a, b) => Math.max(a, b), 0) : 0;
  }

  id(node) { return this.ids ? this.ids[node] : String(node); }
  place(core) { return `(${Math.floor(core / this.board.cols)}, ${core % this.board.cols})`; }
  nodesOn(core) { return this.home ? this.home.order.subarray(this.home.first[core], this.home.first[core + 1]) : new Uint32Array(0); }
  group(node) { return this.groups.of ? this.groups.of[node] : -1; }
  coreOf(thing) { return thing.kind === "node" ? this.core[thing.node] : -1; }
  works(link) { return this.board.works && this.board.works[link] === 1; }

  // The messages of a node: for each the cores that it reaches, with the traffic to them where the page has it.
  messagesOf(node) {
    const m = this.messages, out = [];
    if (!m) return out;
    for (let k = this.sent.first[node]; k < this.sent.first[node + 1]; k++) {
      const row = this.sent.order[k], a = m.first[row], b = m.first[row + 1];
      out.push({many: m.many[row] === 1, rate: m.rate[row], targets: m.target.subarray(a, b), weights: m.weight ? m.weight.subarray(a, b) : null});
    }
    return out;
  }

  // The other cores that the messages of a node reach, and the links on their routes.
  reach({node}) {
    const home = this.core[node], cores = new Set(), links = new Set();
    for (const message of this.messagesOf(node)) for (const to of message.targets) if (to !== home) {
      cores.add(to);
      for (const link of this.route(home, to)) links.add(link);
    }
    return {cores, links};
  }

  // Values of cores in these colours, and what they are; top, where a full share is the largest.
  values(colour) {
    if (colour === "traffic") return {of: this.traffic, text: "traffic that leaves the core"};
    if (colour === "step") return {of: this.step, text: "time of a step, in ns"};
    if (colour === "count") return {of: this.count, text: "nodes"};
    const r = this.resources[+colour.slice(9)], full = (p) => typeof r.limit === "number" ? r.limit : r.limit[p];
    if (r.limit === null) return {of: r.used, text: r.name};
    return {of: Array.from(r.used, (u, p) => u / Math.max(1, full(p))), top: 1, text: `${r.name}, share of the limit`};
  }

  // The links of the route from one core to another: along the row first, the shorter way round, or round dead links.
  route(from, to) {
    const b = this.board, links = [];
    if (b.before) {
      for (let v = to; v !== from;) {
        const u = b.before[from * this.cores + v];
        if (u === v || u >= this.cores) return [];
        for (let d = 0; d < 4; d++) if (b.ends[4 * u + d] === v && this.works(4 * u + d)) { links.push(4 * u + d); break; }
        v = u;
      }
      return links.reverse();
    }
    if (!b.lines) return links;
    const goesUp = (a, z, wrap) => {
      if (wrap <= 0) return z >= a;
      const ahead = z >= a ? z - a : z - a + wrap;
      return ahead <= wrap - ahead + 1e-9 * wrap;
    };
    let r = Math.floor(from / b.cols), c = from % b.cols;
    const toRow = Math.floor(to / b.cols), toCol = to % b.cols;
    const east = goesUp(b.lines.x[c], b.lines.x[toCol], b.lines.wrap[0]), south = goesUp(b.lines.y[r], b.lines.y[toRow], b.lines.wrap[1]);
    for (; c !== toCol; c = (c + (east ? 1 : b.cols - 1)) % b.cols) links.push(4 * (r * b.cols + c) + (east ? 0 : 1));
    for (; r !== toRow; r = (r + (south ? 1 : b.rows - 1)) % b.rows) links.push(4 * (r * b.cols + c) + (south ? 2 : 3));
    return links;
  }

  // What a message puts on each link: its rate once on every link of its tree, or the traffic of each destination on its route.
  spread(home, message) {
    const load = new Map();
    message.targets.forEach((to, k) => {
      if (to === home) return;
      for (const link of this.route(home, to)) load.set(link, message.many ? message.rate : (load.get(link) || 0) + (message.weights ? message.weights[k] : 0));
    });
    return load;
  }

  // The largest flows over a link: of nodes where the page has their messages, else of pairs of cores.
  flowsOver(link) {
    const flows = [];
    if (this.messages && (this.messages.weight || this.messages.many.every((x) => x === 1))) {
      for (let node = 0; node < this.nodes; node++) {
        let sum = 0;
        for (const message of this.messagesOf(node)) sum += this.spread(this.core[node], message).get(link) || 0;
        if (sum > 0) flows.push({node, weight: sum});
      }
    } else if (this.pairs) {
      for (let k = 0; k < this.pairs.weight.length; k++)
        if (this.route(this.pairs.from[k], this.pairs.to[k]).includes(link)) flows.push({from: this.pairs.from[k], to: this.pairs.to[k], weight: this.pairs.weight[k]});
    }
    return flows.sort((a, b) => b.weight - a.weight);
  }

  // (4 cores) the loads of all links, added up again from the messages in the page; null where it does not have them all.
  recomputed() {
    if (!this.messages || !this.loads || !(this.messages.weight || this.messages.many.every((x) => x === 1))) return null;
    const out = new Float64Array(4 * this.cores);
    for (let node = 0; node < this.nodes; node++)
      for (const message of this.messagesOf(node)) for (const [link, load] of this.spread(this.core[node], message)) out[link] += load;
    return out;
  }
}
