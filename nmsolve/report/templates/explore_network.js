// What is said of a layer or operator, of the stage or processor that runs it, of tensors and of moves; and the start of the page.
const SHOWN = 60;

class NetworkPanel extends Panel {
  constructor(place, layered) { super(place, null); this.g = layered; }

  part_(k) { return this.to({kind: "part", part: k}, swatch(groupColour(k), this.g.parts[k].name)); }
  node_(node) { return node < this.g.nodes ? this.to({kind: "node", node}, this.g.labels[node]) : el("span", {}, "outside"); }
  pair_(pair) { return this.to({kind: "pair", pair}, this.g.pairName(pair)); }
  said(rows) { return rows.map(([name, value, unit]) => [name, typeof value === "string" ? value : measured(value, unit)]); }
  costs(moves) { return this.g.moves.costs.map((cost, k) => [cost.name, measured(this.g.cost(moves, k), cost.unit)]); }
  size(tensor) { return measured(this.g.tensors.bytes[tensor], "bytes"); }

  pairRows(pairs) { return pairs.sort((a, b) => b.bytes - a.bytes).map(({pair, bytes}) => [this.pair_(pair), measured(bytes, "bytes")]); }

  whole() {
    const g = this.g;
    return [
      el("h3", {}, "The whole network"),
      this.table([[`${g.what}s`, figure(g.nodes)], [`${g.part}s`, figure(g.parts.length)], ["tensors", figure(g.tensors.count)]]),
      ...this.listed(`${g.what[0].toUpperCase()}${g.what.slice(1)}s by ${g.part}`, g.parts.map((_, k) => [this.part_(k), figure(g.members.first[k + 1] - g.members.first[k])]), SHOWN),
      ...this.listed("Moved, the most first", this.pairRows(Array.from(g.pairs.values())), 12),
      el("p", {class: "soft"}, `Choose a box, a line or a ${g.part}, or search.`),
    ];
  }

  node(node) {
    const g = this.g, rows = g.figures.map((f) => [f.name, measured(f.of[node], f.unit)]);
    const into = g.used_by(node), out = g.made_by(node), here = g.placeOf(node);
    const brought = (tensor) => g.slice(g.movesOf, tensor).filter((move) => g.moves.to[move] === here);
    const moved = into.flatMap(brought);
    return [
      el("h3", {}, g.labels[node]),
      this.table([...(g.kinds[node] ? [["type", g.kinds[node]]] : []), [g.part, this.part_(g.of[node])], ...rows, ...this.said(g.notes ? g.notes[node] : [])]),
      ...(moved.length ? [el("h4", {}, `Brought from other ${g.part}s`), this.table([["bytes", measured(d3.sum(moved, (move) => g.tensors.bytes[g.moves.tensor[move]]), "bytes")], ...this.costs(moved)])] : []),
      ...this.listed("Tensors in", into.map((tensor) => [this.to({kind: "tensor", tensor}, g.tensorName(tensor)), this.size(tensor)]), SHOWN),
      ...this.listed("Tensors out", out.map((tensor) => [this.to({kind: "tensor", tensor}, g.tensors.names ? g.tensors.names[tensor] : `to ${g.users(tensor).map((k) => g.label(k)).slice(0, 3).join(", ")}`), this.size(tensor)]), SHOWN),
    ];
  }

  part(k) {
    const g = this.g, part = g.parts[k], own = g.slice(g.members, k);
    const near = Array.from(g.pairs.values()).filter(({pair}) => pair.includes(part.place));
    return [
      el("h3", {}, swatch(groupColour(k), part.name)),
      part.note ? el("p", {}, part.note) : null,
      this.table(this.said(part.rows)),
      ...this.listed("Moves", this.pairRows(near), 12),
      ...(own.length ? [el("h4", {}, `Its ${g.what}s`), el("p", {class: "chips"}, ...own.slice(0, SHOWN).map((node) => this.node_(node))), own.length > SHOWN ? el("p", {class: "soft"}, `and ${figure(own.length - SHOWN)} more`) : null] : []),
    ];
  }

  pair(pair) {
    const {moves, bytes} = this.g.pairOf(pair), tensors = moves.map((move) => this.g.moves.tensor[move]).sort((a, b) => this.g.tensors.bytes[b] - this.g.tensors.bytes[a]);
    return [
      el("h3", {}, this.g.pairName(pair)),
      this.table([["tensors", figure(moves.length)], ["bytes", measured(bytes, "bytes")], ...this.costs(moves)]),
      ...this.listed("Tensors", tensors.map((tensor) => [this.to({kind: "tensor", tensor}, this.g.tensorName(tensor)), this.size(tensor)]), SHOWN),
    ];
  }

  tensor(tensor) {
    const g = this.g, users = g.users(tensor), moves = g.slice(g.movesOf, tensor);
    return [
      el("h3", {}, g.tensors.names ? g.tensors.names[tensor] : `Tensor ${g.tensorName(tensor)}`),
      this.table([["made by", this.node_(g.tensors.source[tensor])], ["bytes", this.size(tensor)]]),
      ...this.listed("Used by", users.map((node) => [this.node_(node), node < g.nodes ? g.parts[g.of[node]].name : "a result"]), SHOWN),
      ...(moves.length ? [el("h4", {}, "Moved"), ...moves.map((move) => this.table([[this.pair_([g.moves.from[move], g.moves.to[move]]), this.size(tensor)], ...this.costs([move])]))] : [el("p", {class: "soft"}, "It is not moved.")]),
    ];
  }
}

async function explore(place, data) {
  const by = (name) => place.querySelector(`[data-is="${name}"]`);
  const layered = new Layered(data), state = {colour: "part", hover: null, chosen: null, focus: -1};
  const graph = new Graph(by("board"), layered, state), panel = new NetworkPanel(by("panel"), layered);
  const about = {
    words(thing) {
      const g = layered;
      if (thing.kind === "node") return `${g.labels[thing.node]}${g.kinds[thing.node] ? ` (${g.kinds[thing.node]})` : ""}: ${g.parts[g.of[thing.node]].name}, ${g.figures[0].name} ${measured(g.figures[0].of[thing.node], g.figures[0].unit)}`;
      const moves = g.slice(g.movesOf, thing.tensor);
      return `${g.tensorName(thing.tensor)}: ${measured(g.tensors.bytes[thing.tensor], "bytes")}` + (moves.length ? `, ${moves.slice(0, 3).map((move) => g.pairName([g.moves.from[move], g.moves.to[move]])).join(", ")}` : "");
    },
    find(text, most) {
      const parts = matches(layered.parts.length, (k) => layered.parts[k].name, text, 3).map((part) => [{kind: "part", part}, layered.parts[part].name]);
      return [...matches(layered.nodes, (node) => layered.labels[node], text, most).map((node) => [{kind: "node", node}, layered.labels[node]]), ...parts].slice(0, most);
    },
    kinds: [["part", layered.part], ...layered.figures.map((f, k) => [`figure:${k}`, f.name])],
    legend() {
      const lines = el("span", {}, `strong lines: tensors that are moved between ${layered.part}s`);
      if (state.colour !== "part") return [heatKey(layered.values(state.colour)), lines];
      return [...layered.parts.slice(0, 40).map((_, k) => panel.part_(k)), ...(layered.parts.length > 40 ? [`and ${layered.parts.length - 40} more`] : []), lines];
    },
  };
  by("search").placeholder = `${layered.what} or ${layered.part}`;
  timelines(place, [layered]);
  const choose = wire(place, graph, state, panel, about);
  return {layered, graph, state, choose};
}
