// Routes that were decided: the board with the loads of links, every flow with the links that it takes.
class Routed {
  constructor(data) {
    Object.assign(this, data);
    this.cores = this.board.rows * this.board.cols;
    this.groups = {names: []};
    this.home = null;
    this.hottest = d3.max(this.loads) || 0;
    const f = this.flows;
    if (!f) return;
    f.firstGoal = starts(f.goals); f.firstStep = starts(f.steps);
    this.goalOf = new Uint32Array(f.target.length); this.stepOf = new Uint32Array(f.link.length);
    for (let k = 0; k < this.count; k++) { this.goalOf.fill(k, f.firstGoal[k], f.firstGoal[k + 1]); this.stepOf.fill(k, f.firstStep[k], f.firstStep[k + 1]); }
    this.leave = byKey(f.source, this.cores);
    this.arrive = byKey(f.target, this.cores);
    this.over = byKey(f.link, 4 * this.cores);
  }

  place(core) { return `(${Math.floor(core / this.board.cols)}, ${core % this.board.cols})`; }
  works(link) { return this.board.works[link] === 1; }
  linkName(link) { return `${this.place(link >> 2)} → ${this.place(this.board.ends[link])}`; }
  coreOf(thing) { return thing.kind === "flow" ? this.flows.source[thing.flow] : -1; }
  targets(flow) { return Array.from(this.flows.target.subarray(this.flows.firstGoal[flow], this.flows.firstGoal[flow + 1])); }
  links(flow) { return Array.from(this.flows.link.subarray(this.flows.firstStep[flow], this.flows.firstStep[flow + 1])); }
  reach({flow}) { return {cores: this.targets(flow), links: this.links(flow)}; }

  flowName(flow) {
    const goals = this.targets(flow);
    return `${this.place(this.flows.source[flow])} → ${this.place(goals[0])}${goals.length > 1 ? ` and ${goals.length - 1} more` : ""}`;
  }

  // Flows of an index, each once, the largest first.
  largest(index, key, flowOf) {
    if (!this.flows) return [];
    const own = Array.from(index.order.subarray(index.first[key], index.first[key + 1]), (k) => flowOf ? flowOf[k] : k);
    return Array.from(new Set(own)).sort((a, b) => this.flows.rate[b] - this.flows.rate[a] || a - b);
  }

  flowsOver(link) { return this.largest(this.over, link, this.stepOf); }
  values(colour) { return {of: this[colour], text: {sent: "messages that leave the core", received: "messages that reach the core", entries: `routing table entries, by ${this.form}`}[colour]}; }

  // (4 cores) the loads of all links, added up again from the flows in the page.
  recomputed() {
    const out = new Float64Array(4 * this.cores);
    if (this.flows) this.flows.link.forEach((link, k) => { out[link] += this.flows.rate[this.stepOf[k]]; });
    return out;
  }
}

class RoutesPanel extends Panel {
  constructor(place, routed) { super(place, null); this.m = routed; }

  link_(link) { return this.to({kind: "link", link}, this.m.linkName(link)); }
  core_(core) { return this.to({kind: "core", core}, this.m.place(core)); }
  flowRows(flows) { return flows.map((flow) => [this.to({kind: "flow", flow}, this.m.flowName(flow)), figure(this.m.flows.rate[flow])]); }
  left() { return this.m.flows ? null : el("p", {class: "soft"}, "The routes of single flows are too many for this page; links have sums."); }

  whole() {
    const m = this.m, hot = d3.range(m.loads.length).filter((link) => m.loads[link] > 0).sort((a, b) => m.loads[b] - m.loads[a] || a - b);
    const largest = m.flows ? d3.range(m.count).sort((a, b) => m.flows.rate[b] - m.flows.rate[a] || a - b).slice(0, 8) : [];
    return [
      el("h3", {}, "The whole board"),
      this.table([["flows", figure(m.count)], ["links in use", figure(hot.length)], ["load of all links", figure(d3.sum(m.loads))], ["largest routing table", `${figure(d3.max(m.entries))} entries`]]),
      ...this.listed("Hottest links", hot.slice(0, 8).map((link) => [this.link_(link), figure(m.loads[link])]), 8),
      ...this.listed("Largest flows", this.flowRows(largest), 8),
      this.left(),
      el("p", {class: "soft"}, "Choose a core, a link or a flow, or search for “(row, column)”."),
    ];
  }

  core(core) {
    const m = this.m, states = ["", "faulty", "taken by other networks", "unusable"];
    return [
      el("h3", {}, `Core ${m.place(core)}`),
      m.board.state[core] ? el("p", {class: "bad"}, states[m.board.state[core]]) : null,
      this.table([["sends", figure(m.sent[core])], ["takes in", figure(m.received[core])], [`table entries, by ${m.form}`, figure(m.entries[core])]]),
      ...this.listed("Flows that leave it", this.flowRows(m.largest(m.leave, core)), 20),
      ...this.listed("Flows that reach it", this.flowRows(m.largest(m.arrive, core, m.goalOf)), 20),
    ];
  }

  link(link) {
    const m = this.m, over = m.flowsOver(link);
    return [
      el("h3", {}, `Link ${m.linkName(link)}`),
      this.table([["messages per step", figure(m.loads[link])], ["of the hottest", `${figure(100 * m.loads[link] / (m.hottest || 1))} %`], ...(m.flows ? [["flows over it", figure(over.length)]] : [])]),
      ...this.listed("Largest flows over it", this.flowRows(over), 30),
    ];
  }

  flow(flow) {
    const m = this.m, links = m.links(flow), from = m.flows.firstStep[flow];
    return [
      el("h3", {}, `Flow ${m.flowName(flow)}`),
      this.table([["messages per step", figure(m.flows.rate[flow])], ["from", this.core_(m.flows.source[flow])], ["links of its route", figure(links.length)]]),
      ...this.listed("It goes to", m.targets(flow).map((core) => [this.core_(core)]), 30),
      ...this.listed("Its route", links.map((link, k) => [this.link_(link), m.flows.channel ? `channel ${m.flows.channel[from + k]}, ${figure(m.loads[link])} in all` : `${figure(m.loads[link])} in all`]), 60),
    ];
  }
}

async function explore(place, data) {
  const by = (name) => place.querySelector(`[data-is="${name}"]`);
  const routed = new Routed(data), state = {split: 0.5, colour: "sent", hover: null, chosen: null, focus: -1};
  const board = new Board(by("board"), [routed], state), panel = new RoutesPanel(by("panel"), routed);
  const about = {
    words(thing) {
      if (thing.kind === "core") return `core ${routed.place(thing.core)}: sends ${figure(routed.sent[thing.core])}, takes in ${figure(routed.received[thing.core])}`;
      return `link ${routed.linkName(thing.link)}: ${figure(routed.loads[thing.link])}`;
    },
    find(text, most) {
      const cores = matches(routed.cores, (core) => routed.place(core), text, 3).map((core) => [{kind: "core", core}, `core ${routed.place(core)}`]);
      const flows = routed.flows ? matches(routed.count, (flow) => routed.flowName(flow), text, most).map((flow) => [{kind: "flow", flow}, routed.flowName(flow)]) : [];
      return [...cores, ...flows].slice(0, most);
    },
    kinds: [["sent", "messages sent"], ["received", "messages taken in"], ["entries", "routing tables"]],
    legend: () => [heatKey(board.values()), el("span", {}, "links: ", ramp(), ` ${figure(routed.hottest)} on the hottest`)],
  };
  timelines(place, [routed]);
  const choose = wire(place, board, state, panel, about);
  return {routed, board, state, choose};
}
