// What the page knows of a network whose nodes run in parts: stages of a pipeline, or processors.
class Layered {
  constructor(data) {
    Object.assign(this, data);
    const t = this.tensors, n = this.nodes;
    t.count = t.source.length;
    t.first = starts(t.uses);
    this.made = byKey(t.source, n + 1);
    this.uses = byKey(t.target, n + 1);
    this.members = byKey(this.of, this.parts.length);
    this.movesOf = byKey(this.moves.tensor, t.count);
    this.tensorOf = new Uint32Array(t.target.length);
    for (let k = 0; k < t.count; k++) this.tensorOf.fill(k, t.first[k], t.first[k + 1]);
    // lines to draw: one per tensor and use between two nodes of the drawing
    this.lines = [];
    for (let e = 0; e < t.target.length; e++) {
      const tensor = this.tensorOf[e], from = t.source[tensor], to = t.target[e];
      if (from < n && to < n && from !== to) this.lines.push({tensor, from, to, crosses: this.placeOf(from) !== this.placeOf(to)});
    }
    this.pairs = new Map();
    for (let k = 0; k < this.moves.tensor.length; k++) {
      const key = `${this.moves.from[k]} ${this.moves.to[k]}`;
      if (!this.pairs.has(key)) this.pairs.set(key, {pair: [this.moves.from[k], this.moves.to[k]], moves: [], bytes: 0});
      const pair = this.pairs.get(key);
      pair.moves.push(k);
      pair.bytes += t.bytes[this.moves.tensor[k]];
    }
  }

  slice(index, key) { return Array.from(index.order.subarray(index.first[key], index.first[key + 1])); }
  placeOf(node) { return this.parts[this.of[node]].place; }
  label(node) { return node < this.nodes ? this.labels[node] : "outside"; }
  made_by(node) { return this.slice(this.made, node); }
  used_by(node) { return Array.from(new Set(this.slice(this.uses, node).map((e) => this.tensorOf[e]))); }
  users(tensor) { return Array.from(this.tensors.target.subarray(this.tensors.first[tensor], this.tensors.first[tensor + 1])); }
  tensorName(tensor) { return this.tensors.names ? this.tensors.names[tensor] : `from ${this.label(this.tensors.source[tensor])}`; }
  pairName([from, to]) { return `${this.places[from]} → ${this.places[to]}`; }
  pairOf([from, to]) { return this.pairs.get(`${from} ${to}`) || {pair: [from, to], moves: [], bytes: 0}; }
  cost(moves, k) { return d3.sum(moves, (move) => this.moves.costs[k].of[move]); }

  // Values of nodes in these colours, the largest, and what they are.
  values(colour) {
    const f = this.figures[+colour.slice(7)];
    return {of: f.of, top: d3.max(f.of) || 1, unit: f.unit, text: f.name};
  }
}
