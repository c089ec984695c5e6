// The data of the page: columns are unpacked once, routes and sums follow from them.
async function unpack(column) {
  if (!column) return null;
  const packed = Uint8Array.from(atob(column.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  if (column.kind === "text") return new TextDecoder().decode(bytes).split("\n");
  const kinds = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array};
  return new kinds[column.kind](bytes);
}

// Unpacks every column of nested data; plain values stay.
async function unpackAll(value) {
  if (Array.isArray(value)) return Promise.all(value.map(unpackAll));
  if (value === null || typeof value !== "object") return value;
  if ("kind" in value && "data" in value) return unpack(value);
  const out = {};
  for (const key of Object.keys(value)) out[key] = key === "events" ? value[key] : await unpackAll(value[key]);
  return out;
}

function starts(counts) {
  const out = new Uint32Array(counts.length + 1);
  for (let k = 0; k < counts.length; k++) out[k + 1] = out[k] + counts[k];
  return out;
}

// Nodes by core: those of core p are order[first[p]] to order[first[p + 1] - 1].
function byKey(keys, count) {
  const amount = new Uint32Array(count);
  for (const k of keys) amount[k]++;
  const first = starts(amount), at = first.slice(), order = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) order[at[keys[i]]++] = i;
  return {first, order};
}

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
