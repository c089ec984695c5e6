// Starts the explorer: unpacks the data, draws, and answers pointer, keys, search and colours.
async function explore() {
  const place = document.getElementById("explorer"), by = (name) => place.querySelector(`[data-is="${name}"]`);
  const data = await unpackAll(JSON.parse(document.getElementById("explorer-data").textContent));
  const mapped = new Mapped(data), all = data.other ? [mapped, new Mapped(data.other)] : [mapped];
  const state = {split: 0.5, colour: mapped.groups.names.length || !mapped.resources.length ? "group" : "resource:0", hover: null, chosen: null, focus: -1};
  const board = new Board(by("board"), all, state), canvas = board.canvas, tip = by("tip");
  const panel = new Panel(by("panel"), all, choose);
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function choose(what, show) {
    state.chosen = what;
    panel.m = board.m;
    if (what && what.kind !== "link") state.focus = what.kind === "core" ? what.core : board.m.core[what.node];
    if (show && state.focus >= 0 && what.kind !== "link") board.show(state.focus);
    panel.show(what);
    by("said").textContent = what ? by("panel").querySelector("h3").textContent : "";
    board.draw();
  }

  function words(what) {
    const m = board.m;
    if (what.kind === "core") return `core ${m.place(what.core)}: ${figure(m.count[what.core])} nodes` + (m.pairs ? `, sends ${figure(m.traffic[what.core])}` : "");
    if (what.kind === "link") return `link ${m.place(what.link >> 2)} → ${m.place(m.board.ends[what.link])}: ${figure(m.loads[what.link])}`;
    return `node ${m.id(what.node)} on core ${m.place(m.core[what.node])}` + (m.group(what.node) >= 0 ? `, ${m.groups.names[m.group(what.node)]}` : "");
  }

  canvas.addEventListener("pointermove", (event) => {
    const what = board.under(event.offsetX, event.offsetY);
    if (!same(what, state.hover)) { state.hover = what; board.draw(); }
    tip.hidden = !what;
    if (what) {
      tip.textContent = words(what);
      tip.style.left = `${Math.min(event.offsetX + 12, canvas.clientWidth - tip.offsetWidth - 4)}px`;
      tip.style.top = `${event.offsetY + 16}px`;
    }
  });
  canvas.addEventListener("pointerleave", () => { state.hover = null; tip.hidden = true; board.draw(); });
  canvas.addEventListener("click", (event) => choose(board.under(event.offsetX, event.offsetY), false));
  canvas.addEventListener("focus", () => { if (state.focus < 0) state.focus = 0; board.draw(); });
  canvas.addEventListener("blur", () => board.draw());
  canvas.addEventListener("keydown", (event) => {
    const b = mapped.board, r = Math.floor(state.focus / b.cols), c = state.focus % b.cols;
    const steps = {ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], ArrowUp: [r - 1, c], ArrowDown: [r + 1, c]};
    if (event.key in steps) {
      const [row, col] = steps[event.key];
      if (row >= 0 && col >= 0 && row < b.rows && col < b.cols) choose({kind: "core", core: row * b.cols + col}, true);
    } else if (event.key === "+" || event.key === "=") board.scaleBy(1.5);
    else if (event.key === "-") board.scaleBy(1 / 1.5);
    else if (event.key === "0") board.fit();
    else if (event.key === "Enter") choose({kind: "core", core: state.focus}, true);
    else return;
    event.preventDefault();
  });

  const search = by("search"), list = by("matches");
  search.addEventListener("input", () => {
    list.replaceChildren(...matches(mapped, search.value.trim(), 12).map((node) => el("li", {}, panel.to({kind: "node", node}, mapped.id(node)))));
  });
  search.addEventListener("keydown", (event) => {
    const [node] = matches(mapped, search.value.trim(), 1);
    if (event.key === "Enter" && node !== undefined) { choose({kind: "node", node}, true); list.replaceChildren(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape") { list.replaceChildren(); choose(null, false); }
  });

  const colours = by("colours");
  const kinds = [...(mapped.groups.names.length || !mapped.resources.length ? [["group", mapped.groups.title || "nodes"]] : []), ...mapped.resources.map((r, k) => [`resource:${k}`, r.name]),
    ["count", "number of nodes"], ...(mapped.pairs ? [["traffic", "traffic"]] : []), ...(mapped.step ? [["step", "time of a step"]] : [])];
  colours.append(...kinds.map(([value, text]) => el("option", {value}, text)));
  colours.value = state.colour;
  colours.addEventListener("change", () => { state.colour = colours.value; legend(); board.draw(); });

  const ramp = () => el("i", {class: "ramp", style: `background:linear-gradient(90deg,${d3.range(0, 1.01, 0.1).map(heat).join(",")})`});
  function legend() {
    const out = by("legend");
    if (state.colour === "group") {
      out.replaceChildren(...mapped.groups.names.slice(0, 40).map((_, k) => panel.swatch(k)), ...(mapped.groups.names.length > 40 ? [`and ${mapped.groups.names.length - 40} more`] : []));
    } else {
      const values = board.values();
      out.replaceChildren(el("span", {}, "0 ", ramp(), ` ${values.top === 1 && values.text.includes("share") ? "100 %" : figure(values.top)}: ${values.text}`));
    }
    if (mapped.loads) out.append(el("span", {}, "links: ", ramp(), ` ${figure(d3.max(all, (one) => one.hottest))} on the hottest`));
  }

  by("in").addEventListener("click", () => board.scaleBy(1.5));
  by("out").addEventListener("click", () => board.scaleBy(1 / 1.5));
  by("fit").addEventListener("click", () => board.fit());
  by("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    board.draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => board.draw());
  by("split-label").hidden = all.length < 2;
  by("split").addEventListener("input", () => { state.split = by("split").value / 100; board.draw(); });
  const draw = () => all.forEach((one, k) => { if (one.events.length) timeline(by(k ? "time-right" : "time"), one, by("time-said")); });
  new ResizeObserver(draw).observe(by("time"));
  legend();
  choose(null, false);
  board.resize();
  place.dataset.ready = "yes";
  window.explorer = {mapped, board, state, choose};
}
explore().catch((error) => {
  document.getElementById("explorer").querySelector("[data-is=said]").textContent = `The explorer did not start: ${error.message}. --plain writes the page without it.`;
  throw error;
});
