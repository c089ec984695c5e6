// What is said of a core, a node or a link of a mapping, and the start of its page.
const LISTED = 100;

class MappingPanel extends Panel {
  constructor(place, all, choose) { super(place, choose); this.all = all; this.m = all[0]; }

  whole() {
    const m = this.m;
    const used = m.count.reduce((sum, k) => sum + (k > 0), 0);
    return [
      el("h3", {}, this.all.length > 1 ? `The whole board, ${m === this.all[0] ? "left" : "right"}` : "The whole board"),
      this.table([["nodes", figure(m.nodes)], ["cores in use", `${figure(used)} of ${figure(m.board.state.reduce((sum, s) => sum + (s === 0), 0))}`],
        ...(m.loads ? [["hottest link", figure(m.hottest)]] : [])]),
      ...(m.loads ? [el("h4", {}, "Hottest links"), this.table(Array.from(d3.range(m.loads.length)).sort((a, b) => m.loads[b] - m.loads[a]).slice(0, 8)
        .filter((link) => m.loads[link] > 0).map((link) => [this.to({kind: "link", link}, this.linkName(link)), figure(m.loads[link])]))] : []),
      el("p", {class: "soft"}, "Choose a core, a node or a link on the board, or search for a node."),
    ];
  }

  core(core) {
    const m = this.m, nodes = m.nodesOn(core), g = m.groups.names.length, states = ["", "faulty", "taken by other networks", "unusable"];
    const rows = m.resources.map((r) => [r.name, `${figure(r.used[core])}${r.limit === null ? "" : ` of ${figure(typeof r.limit === "number" ? r.limit : r.limit[core])}`}`]);
    if (m.pairs) rows.push(["sends to other cores", figure(m.traffic[core])], ["takes from other cores", figure(m.received[core])]);
    if (m.step) rows.push(["time of a step", `${figure(m.step[core])} ns`]);
    const groups = d3.range(g).filter((k) => m.amounts[core * g + k]).sort((a, b) => m.amounts[core * g + b] - m.amounts[core * g + a]);
    return [
      el("h3", {}, `Core ${m.place(core)}`),
      m.board.state[core] ? el("p", {class: "bad"}, states[m.board.state[core]]) : null,
      this.table([["nodes", figure(m.count[core])], ...rows]),
      ...(groups.length ? [el("h4", {}, m.groups.title === "community" ? "Communities" : "Populations"),
        this.table(groups.slice(0, 12).map((k) => [this.swatch(k), figure(m.amounts[core * g + k])]))] : []),
      ...(nodes.length ? [el("h4", {}, "Nodes"), el("p", {class: "chips"}, ...Array.from(nodes.subarray(0, LISTED), (node) => this.to({kind: "node", node}, m.id(node)))),
        nodes.length > LISTED ? el("p", {class: "soft"}, `and ${figure(nodes.length - LISTED)} more: zoom in, or search`) : null] : []),
    ];
  }

  swatch(k) { return swatch(groupColour(k), this.m.groups.names[k]); }

  node(node) {
    const m = this.m, home = m.core[node], messages = m.messagesOf(node), to = new Map();
    for (const message of messages) message.targets.forEach((core, k) => to.set(core, (to.get(core) || 0) + (message.weights ? message.weights[k] : message.many ? message.rate : 0)));
    const goals = Array.from(to).sort((a, b) => b[1] - a[1]), away = goals.filter(([core]) => core !== home);
    const places = this.all.map((one) => this.to({kind: "core", core: one.core[node]}, one.place(one.core[node])));
    const rows = this.all.length > 1 ? [["core, left", places[0]], ["core, right", places[1]]] : [["core", places[0]]];
    if (m.group(node) >= 0) rows.push([m.groups.title, this.swatch(m.group(node))]);
    for (const r of m.resources) if (r.sizes) rows.push([r.name, figure(r.sizes[node])]);
    const many = messages.filter((message) => message.many);
    if (many.length) rows.push(["multicast, per step", figure(d3.sum(many, (message) => message.rate))]);
    if (m.messages) rows.push(["other cores that it reaches", figure(away.length)]);
    return [
      el("h3", {}, `Node ${m.id(node)}`), this.table(rows),
      !m.messages ? el("p", {class: "soft"}, "Messages of single nodes are too many for this page; links and cores have sums.")
        : goals.length ? el("h4", {}, m.messages.weight ? "What it sends, by core" : "Cores that it reaches") : el("p", {class: "soft"}, "It sends nothing."),
      ...(goals.length ? [this.table(goals.slice(0, 40).map(([core, weight]) => [this.to({kind: "core", core}, m.place(core)), core === home ? `${figure(weight)}, stays` : figure(weight)])),
        goals.length > 40 ? el("p", {class: "soft"}, `and ${figure(goals.length - 40)} more`) : null] : []),
    ];
  }

  linkName(link) { return `${this.m.place(link >> 2)} → ${this.m.place(this.m.board.ends[link])}`; }

  link(link) {
    const m = this.m, flows = m.flowsOver(link);
    return [
      el("h3", {}, `Link ${this.linkName(link)}`),
      this.table([["traffic per step", figure(m.loads[link])], ["of the hottest", `${figure(100 * m.loads[link] / (m.hottest || 1))} %`], ["flows over it", figure(flows.length)]]),
      ...(flows.length ? [el("h4", {}, flows[0].node === undefined ? "Largest flows, by cores" : "Largest flows, by node that sends"),
        this.table(flows.slice(0, 20).map((f) => [f.node === undefined
          ? el("span", {}, this.to({kind: "core", core: f.from}, m.place(f.from)), " → ", this.to({kind: "core", core: f.to}, m.place(f.to)))
          : this.to({kind: "node", node: f.node}, m.id(f.node)), figure(f.weight)]))] : []),
    ];
  }
}

async function explore(place, data) {
  const by = (name) => place.querySelector(`[data-is="${name}"]`);
  const mapped = new Mapped(data), all = data.other ? [mapped, new Mapped(data.other)] : [mapped];
  const grouped = mapped.groups.names.length || !mapped.resources.length;
  const state = {split: 0.5, colour: grouped ? "group" : "resource:0", hover: null, chosen: null, focus: -1};
  const board = new Board(by("board"), all, state), panel = new MappingPanel(by("panel"), all, null);
  const show = panel.show.bind(panel);
  panel.show = (thing) => { panel.m = board.m; show(thing); };
  const about = {
    words(thing) {
      const m = board.m;
      if (thing.kind === "core") return `core ${m.place(thing.core)}: ${figure(m.count[thing.core])} nodes` + (m.pairs ? `, sends ${figure(m.traffic[thing.core])}` : "");
      if (thing.kind === "link") return `link ${m.place(thing.link >> 2)} → ${m.place(m.board.ends[thing.link])}: ${figure(m.loads[thing.link])}`;
      return `node ${m.id(thing.node)} on core ${m.place(m.core[thing.node])}` + (m.group(thing.node) >= 0 ? `, ${m.groups.names[m.group(thing.node)]}` : "");
    },
    find: (text, most) => mapped.core ? matches(mapped.nodes, (node) => mapped.id(node), text, most).map((node) => [{kind: "node", node}, mapped.id(node)]) : [],
    kinds: [...(grouped ? [["group", mapped.groups.title || "nodes"]] : []), ...mapped.resources.map((r, k) => [`resource:${k}`, r.name]),
      ["count", "number of nodes"], ...(mapped.pairs ? [["traffic", "traffic"]] : []), ...(mapped.step ? [["step", "time of a step"]] : [])],
    legend() {
      const names = mapped.groups.names, out = [];
      if (state.colour === "group") out.push(...names.slice(0, 40).map((_, k) => panel.swatch(k)), ...(names.length > 40 ? [`and ${names.length - 40} more`] : []));
      else out.push(heatKey(board.values()));
      return mapped.loads ? [...out, el("span", {}, "links: ", ramp(), ` ${figure(d3.max(all, (one) => one.hottest))} on the hottest`)] : out;
    },
  };
  by("split-label").hidden = all.length < 2;
  by("split").addEventListener("input", () => { state.split = by("split").value / 100; board.draw(); });
  timelines(place, all);
  const choose = wire(place, board, state, panel, about);
  return {mapped, board, state, choose};
}
