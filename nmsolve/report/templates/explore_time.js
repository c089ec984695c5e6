// The timeline of the search: best answers by the engine that found them, and the best bound.
function timeline(place, data, said) {
  const found = data.events.filter((e) => !e[3]), bounds = data.events.filter((e) => e[3]);
  const wide = Math.max(280, place.clientWidth), tall = 220, left = 78, right = wide - 12, low = tall - 28;
  const svg = d3.select(place).html("").append("svg").attr("viewBox", `0 0 ${wide} ${tall}`).attr("role", "img")
    .attr("aria-label", `${found.length} best answers and ${bounds.length} bounds over ${figure(data.seconds)} seconds; the table below has what each engine did`);
  const last = found.length ? found[found.length - 1][2] : 1, top = Math.min(d3.max(found, (e) => e[2]) || 1, 2.2 * Math.abs(last) || 1);
  const x = d3.scaleLinear([0, Math.max(data.seconds, 1e-9)], [left, right]), y = d3.scaleLinear([0, top || 1], [low, 10]).clamp(true);
  const step = (rows) => d3.line((e) => x(e[0]), (e) => y(e[2])).curve(d3.curveStepAfter)([...rows, ...(rows.length ? [[data.seconds, "", rows[rows.length - 1][2]]] : [])]);
  svg.append("g").attr("transform", `translate(0,${low})`).call(d3.axisBottom(x).ticks(wide / 90).tickFormat((t) => `${t} s`));
  svg.append("g").attr("transform", `translate(${left},0)`).call(data.unit ? d3.axisLeft(y).ticks(5).tickFormat((v) => measured(v, data.unit)) : d3.axisLeft(y).ticks(5, "~s"));
  svg.append("path").attr("class", "found").attr("d", step(found));
  svg.append("path").attr("class", "bound").attr("d", step(bounds));
  const names = Array.from(new Set(found.map((e) => e[1])));
  svg.selectAll("circle").data(found).join("circle").attr("cx", (e) => x(e[0])).attr("cy", (e) => y(e[2])).attr("r", 3.5).attr("fill", (e) => groupColour(names.indexOf(e[1])));
  const line = svg.append("line").attr("class", "cursor").attr("y1", 10).attr("y2", low).attr("visibility", "hidden");
  svg.on("pointermove", (event) => {
    const t = x.invert(d3.pointer(event)[0]), at = (rows) => rows[d3.bisector((e) => e[0]).right(rows, t) - 1];
    const best = at(found), bound = at(bounds);
    line.attr("x1", x(Math.max(0, t))).attr("x2", x(Math.max(0, t))).attr("visibility", "visible");
    said.textContent = `${figure(Math.max(0, t))} s: ` + (best ? `${measured(best[2], data.unit)} by ${best[1]}${best[4] ? ` (${best[4]})` : ""}` : "no answer yet") + (bound ? `; bound ${measured(bound[2], data.unit)} by ${bound[1]}` : "");
  });
  const key = el("p", {class: "chips soft"}, ...names.map((name, k) => el("span", {}, el("i", {class: "swatch", style: `background:${groupColour(k)}`}), name)), el("span", {}, el("i", {class: "swatch bar"}), "bound"));
  place.append(key);
}

// Draws the timelines of a page: of its run, and of the other one where two are compared.
function timelines(place, all) {
  const by = (name) => place.querySelector(`[data-is="${name}"]`);
  new ResizeObserver(() => all.forEach((one, k) => { if (one.events.length) timeline(by(k ? "time-right" : "time"), one, by("time-said")); })).observe(by("time"));
}
