// Draws the schedule on two canvases that move together. All data are in the page; nothing is loaded from anywhere.
(function () {
  const D = JSON.parse(document.getElementById("schedule-data").textContent);
  const IDLE = "#f0c05a", BYTES = "#56b4e9";
  const AXIS = 24, MOST_MOVES = 400, MOST_MARKS = 300, CHIPS = 24, FOUND = 12;
  const rows = D.rows.length, shown = {chain: true, moves: true, one: -1, found: -1};
  const view = {from: 0, to: D.end, top: 0, high: 0};
  let ink, line, paper, soft, shade, late, route;  // of the theme, read anew for every drawing
  function inks() { [ink, line, paper, soft, shade, late, route] = ["--ink", "--line", "--paper", "--soft", "--shade", "--late", "--route"].map(css); }

  // --- data: lists of distances back to columns ---
  const bars = D.bars.map(function (flat) {
    const count = flat.length / 4, row = {begin: new Float64Array(count), start: new Float64Array(count), end: new Float64Array(count), who: new Int32Array(count)};
    let last = 0;
    for (let k = 0; k < count; k++) {
      row.begin[k] = last + flat[4 * k];
      row.start[k] = row.begin[k] + flat[4 * k + 1];
      last = row.end[k] = row.start[k] + flat[4 * k + 2];
      row.who[k] = flat[4 * k + 3];
    }
    return row;
  });
  function intervals(flat) {
    const out = [];
    let last = 0;
    for (let k = 0; k < flat.length; k += 2) {
      out.push([last + flat[k], last + flat[k] + flat[k + 1]]);
      last += flat[k] + flat[k + 1];
    }
    return out;
  }
  const on = D.on.map(intervals);
  const moves = [];
  let left = 0;
  for (let k = 0; k < (D.moves || []).length; k += 6) {
    left += D.moves[k + 4];
    moves.push({from: D.moves[k], to: D.moves[k + 1], a: D.moves[k + 2], b: D.moves[k + 3], begin: left, end: left + D.moves[k + 5]});
  }
  const memory = (D.memory || []).map(function (flat) {
    const count = flat.length / 2, time = new Float64Array(count), held = new Float64Array(count);
    let at = 0, most = 0;
    for (let k = 0; k < count; k++) {
      at += flat[2 * k];
      time[k] = at;
      held[k] = flat[2 * k + 1];
      most = Math.max(most, held[k]);
    }
    return {time: time, held: held, most: most};
  });
  const top = memory.reduce(function (m, u) { return Math.max(m, u.most); }, 1);
  const partner = new Map(D.partner), chain = new Map(), marks = new Map();
  D.chain.forEach(function (link, k) { chain.set(link[0], {source: link[1], text: link[2], place: k}); });
  D.marks.forEach(function (m) { marks.set(m[0], {deadline: m[1], due: m[2], late: m[3]}); });
  const places = new Map();  // of processes of the chain and with marks: one row and bar
  bars.forEach(function (row, y) {
    if (!D.merged) row.who.forEach(function (p, k) {
      if (chain.has(p) || marks.has(p)) {
        if (!places.has(p)) places.set(p, []);
        places.get(p).push([y, k]);
      }
    });
  });

  // --- words and colours ---
  const whole = function (n) { return Math.round(n).toLocaleString("en"); };
  const netOf = function (p) { return D.merged ? p : D.net[p]; };
  function colour(t) { return t < 0 ? BYTES : D.colours[t % D.colours.length]; }
  function label(p) {
    if (D.merged) return p < 0 ? "" : D.networks[p];
    const name = D.labels.length ? D.labels[p] : "/process " + p, t = D.net[p];
    return name[0] === "/" && t >= 0 ? D.networks[t] + name : name;
  }
  function first(array, value) {  // the first index with array[index] > value
    let a = 0, b = array.length;
    while (a < b) { const m = (a + b) >> 1; if (array[m] > value) b = m; else a = m + 1; }
    return a;
  }

  // --- canvases ---
  const panels = [];
  function panel(id, paint) {
    const canvas = document.getElementById(id);
    if (!canvas) return;
    const one = {canvas: canvas, paint: paint, wide: 0, tall: 0, gutter: 0, context: canvas.getContext("2d")};
    panels.push(one);
    listen(one);
  }
  function measure(one) {
    const ratio = window.devicePixelRatio || 1, c = one.context;
    one.wide = one.canvas.clientWidth;
    c.font = "12px system-ui, sans-serif";
    let wide = 20;
    for (let y = 0; y < rows; y += Math.max(1, Math.floor(rows / 400))) wide = Math.max(wide, c.measureText(D.rows[y]).width);
    one.gutter = Math.min(170, Math.ceil(wide) + 12);
    one.tall = Math.max(60, Math.min(rows * view.high, rows > 64 ? 860 : 720)) + AXIS;
    one.canvas.style.height = one.tall + "px";
    one.canvas.width = Math.round(one.wide * ratio);
    one.canvas.height = Math.round(one.tall * ratio);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  const fit = function () { return Math.max(rows > 860 ? 1 : 2, Math.min(40, Math.floor(720 / rows * 4) / 4)); };
  const x = function (one, t) { return one.gutter + (t - view.from) / (view.to - view.from) * (one.wide - one.gutter - 8); };
  const y = function (row) { return AXIS + row * view.high - view.top; };

  function axis(one) {
    const c = one.context, room = one.wide - one.gutter - 8, rough = (view.to - view.from) / Math.max(2, room / 110);
    const ten = Math.pow(10, Math.floor(Math.log10(rough))), step = Math.max(1, [1, 2, 5, 10].find(function (k) { return k * ten >= rough; }) * ten);
    c.fillStyle = paper;
    c.fillRect(0, 0, one.wide, AXIS);
    c.fillRect(0, 0, one.gutter, one.tall);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      const at = Math.round(x(one, t)) + 0.5;
      c.strokeStyle = soft;
      c.beginPath(); c.moveTo(at, AXIS - 5); c.lineTo(at, AXIS); c.stroke();
      c.fillStyle = ink;
      c.textAlign = t === 0 ? "left" : "center";
      if (at < one.wide - 20 || t === 0) c.fillText(whole(t), at, AXIS - 13);
    }
    c.strokeStyle = soft;
    c.beginPath(); c.moveTo(one.gutter, AXIS - 0.5); c.lineTo(one.wide, AXIS - 0.5); c.stroke();
    const each = Math.max(1, Math.ceil(14 / view.high));
    c.textAlign = "right";
    c.fillStyle = ink;
    for (let r = 0; r < rows; r += each) {
      const at = y(r) + view.high / 2;
      if (at > AXIS + 4 && at < one.tall) c.fillText(short(c, D.rows[r], one.gutter - 10), one.gutter - 6, Math.max(at, AXIS + 7));
    }
  }
  function short(c, text, room) {
    if (c.measureText(text).width <= room) return text;
    let k = text.length;
    while (k > 1 && c.measureText(text.slice(0, k) + "…").width > room) k--;
    return text.slice(0, k) + "…";
  }
  function eachRow(one, work) {
    const a = Math.max(0, Math.floor(view.top / view.high)), b = Math.min(rows, Math.ceil((view.top + one.tall - AXIS) / view.high));
    for (let r = a; r < b; r++) work(r, y(r));
  }
  function stripes(one, r, at) {
    const c = one.context;
    if (view.high >= 6) {
      c.fillStyle = line;
      c.fillRect(one.gutter, Math.round(at + view.high) - 1, one.wide - one.gutter, 1);
    }
  }

  let hatch = null;
  function hatched(c) {
    if (hatch) return hatch;
    const tile = document.createElement("canvas"), t = tile.getContext("2d");
    tile.width = tile.height = 6;
    t.fillStyle = paper; t.fillRect(0, 0, 6, 6);
    t.strokeStyle = soft; t.lineWidth = 1;
    t.beginPath(); t.moveTo(-1, 7); t.lineTo(7, -1); t.moveTo(-1, 1); t.lineTo(1, -1); t.moveTo(5, 7); t.lineTo(7, 5); t.stroke();
    return hatch = c.createPattern(tile, "repeat");
  }
  const strip = function () { return D.on.length && view.high >= 8 ? Math.max(2, Math.round(view.high * 0.16)) : 0; };

  function schedule(one) {
    const c = one.context, low = strip(), gap = view.high >= 8 ? 2 : view.high >= 4 ? 1 : 0;
    eachRow(one, function (r, at) {
      stripes(one, r, at);
      const spells = on[r] || [];
      if (!low) {
        c.fillStyle = IDLE;
        spells.forEach(function (s) { box(one, s[0], s[1], at, Math.max(1, view.high - gap)); });
      } else spells.forEach(function (s) {
        c.fillStyle = IDLE;
        box(one, s[0], s[1], at + view.high - low - 1, low);
      });
      const row = bars[r], tall = Math.max(0.75, view.high - gap - (low ? low + 1 : 0));
      for (let k = first(row.end, view.from); k < row.begin.length && row.begin[k] < view.to; k++) {
        const p = row.who[k], t = netOf(p), other = partner.has(p) && !D.merged ? partner.get(p) : -1;
        c.globalAlpha = shown.one >= 0 && t !== shown.one && other !== shown.one ? 0.13 : 1;
        if (row.start[k] > row.begin[k]) {
          c.fillStyle = hatched(c);
          box(one, row.begin[k], row.start[k], at, tall);
        }
        c.fillStyle = colour(t);
        box(one, row.start[k], row.end[k], at, tall);
        if (other >= 0) {
          c.fillStyle = colour(other);
          box(one, row.start[k], row.end[k], at + tall / 2, tall / 2);
          diamond(one, row.end[k], at + tall / 2, Math.min(5, tall / 3), x(one, row.end[k]) - x(one, row.start[k]));
        }
        if (low) { c.fillStyle = soft; box(one, row.begin[k], row.end[k], at + view.high - low - 1, low); }
        const wide = x(one, row.end[k]) - x(one, row.start[k]);
        if (tall >= 11 && wide > 26 && c.globalAlpha === 1) name(one, label(p), row.start[k], row.end[k], at + tall / 2, other >= 0 ? 13 : 3);
        const mark = marks.get(p);
        if (mark && mark.late && !D.merged) {
          const since = Math.max(row.start[k], mark.due), high = Math.max(1, tall / 4);
          if (tall >= 8) { c.fillStyle = paper; box(one, since, row.end[k], at, high + 1); }
          c.fillStyle = late;
          box(one, since, row.end[k], at, high);
        }
        c.globalAlpha = 1;
      }
    });
    const said = [];
    if (shown.moves) said.push(drawMoves(one));
    said.push(drawMarks(one));
    if (shown.chain) drawChain(one, low, gap);
    if (shown.found >= 0) barsOf(shown.found).forEach(function (at) { outline(one, bars[at[0]].begin[at[1]], bars[at[0]].end[at[1]], y(at[0]), Math.max(3, view.high - gap), route, 3); });
    return said.filter(Boolean).join(" ");
  }
  function box(one, a, b, at, tall) {
    const from = Math.max(one.gutter, x(one, a)), to = Math.min(one.wide, x(one, b));
    if (to < from) return;
    const wide = to - from;
    one.context.fillRect(from, at, wide > 3 && view.high >= 6 ? wide - 0.6 : Math.max(0.6, wide), tall);
  }
  function diamond(one, t, at, size, room) {
    if (size < 1.5 || room < 5) return;
    const c = one.context, middle = x(one, t) - Math.min(room / 2, size + 2);
    if (middle < one.gutter) return;
    c.fillStyle = paper; c.strokeStyle = ink; c.lineWidth = 1;
    c.beginPath(); c.moveTo(middle, at - size); c.lineTo(middle + size, at); c.lineTo(middle, at + size); c.lineTo(middle - size, at); c.closePath(); c.fill(); c.stroke();
  }
  function name(one, text, a, b, at, kept) {
    const c = one.context, from = Math.max(one.gutter, x(one, a)) + 3, room = Math.min(one.wide, x(one, b)) - from - kept;
    c.font = Math.min(12, Math.max(9, view.high * 0.5)) + "px system-ui, sans-serif";
    const cut = short(c, text, room);
    if (cut.length < 3 && cut !== text) return;
    c.textAlign = "left"; c.textBaseline = "middle"; c.lineWidth = 2.4; c.lineJoin = "round";
    c.strokeStyle = "rgba(0,0,0,.45)"; c.strokeText(cut, from, at);
    c.fillStyle = "#fff"; c.fillText(cut, from, at);
  }
  const inside = function (one, t) { return t >= view.from && t <= view.to; };
  function drawMoves(one) {
    const c = one.context, a = view.top / view.high, b = (view.top + one.tall - AXIS) / view.high;
    const near = moves.filter(function (m) {
      const mine = shown.one < 0 || D.net[m.from] === shown.one || D.net[m.to] === shown.one;
      return mine && m.end >= view.from && m.begin <= view.to && Math.max(m.a, m.b) >= a && Math.min(m.a, m.b) <= b;
    });
    if (!near.length) return "";
    if (near.length > MOST_MOVES) return whole(near.length) + " transfers here: zoom in, or pick a network, to see them.";
    c.strokeStyle = ink; c.globalAlpha = 0.5; c.lineWidth = 0.8;
    c.beginPath();
    near.forEach(function (m) { c.moveTo(x(one, m.begin), y(m.a) + view.high / 2); c.lineTo(x(one, m.end), y(m.b) + view.high / 2); });
    c.stroke();
    c.fillStyle = ink;
    if (view.high >= 6) near.forEach(function (m) { c.beginPath(); c.arc(x(one, m.end), y(m.b) + view.high / 2, 1.7, 0, 7); c.fill(); });
    c.globalAlpha = 1;
    return whole(near.length) + (near.length === 1 ? " transfer here." : " transfers here.");
  }
  function drawMarks(one) {
    if (D.merged) return "";
    const c = one.context, near = D.marks.filter(function (m) { return places.has(m[0]) && (inside(one, m[1]) || inside(one, m[2])); });
    if (near.length > MOST_MARKS) return whole(near.length) + " deadlines here: zoom in to see them.";
    near.forEach(function (m) {
      const at = y(places.get(m[0])[0][0]), tall = Math.max(5, view.high - 1);
      [[m[1], ink, true], [m[2], late, false]].forEach(function (one_mark) {
        if (one_mark[0] < 0 || !inside(one, one_mark[0]) || at < AXIS - view.high) return;
        const px = x(one, one_mark[0]);
        c.strokeStyle = c.fillStyle = one_mark[1]; c.lineWidth = 1.2;
        c.beginPath(); c.moveTo(px, at); c.lineTo(px, at + tall); c.stroke();
        c.beginPath();
        if (one_mark[2]) { c.moveTo(px - 4, at); c.lineTo(px + 4, at); c.lineTo(px, at + 5); }
        else { c.moveTo(px, at); c.lineTo(px + 6, at + 2.5); c.lineTo(px, at + 5); }
        c.fill();
      });
    });
    return "";
  }
  function drawChain(one, low, gap) {
    if (D.merged || !D.chain.length) return;
    const c = one.context, tall = Math.max(1, view.high - gap - (low ? low + 1 : 0)), path = [];
    D.chain.forEach(function (link) {
      const at = places.get(link[0]);
      if (!at) return;
      const last = path.length ? path[path.length - 1].row : at[0][0];
      let best = at[0];
      at.forEach(function (place) {
        if (Math.abs(place[0] - last) < Math.abs(best[0] - last)) best = place;
        if (view.high >= 8) outline(one, bars[place[0]].begin[place[1]], bars[place[0]].end[place[1]], y(place[0]), tall);
      });
      const row = bars[best[0]];
      path.push({row: best[0], begin: /^(data|resource)/.test(link[2]) ? row.start[best[1]] : row.begin[best[1]], end: row.end[best[1]]});
    });
    [[paper, view.high < 8 ? 6 : 4], [ink, view.high < 8 ? 2.6 : 1.8]].forEach(function (pen) {
      c.strokeStyle = pen[0]; c.lineWidth = pen[1]; c.lineJoin = "round";
      c.beginPath();
      path.forEach(function (s, k) {
        const at = y(s.row) + (view.high >= 8 ? 1.5 : view.high / 2);
        if (k) c.lineTo(x(one, s.begin), at); else c.moveTo(x(one, s.begin), at);
        c.lineTo(x(one, s.end), at);
      });
      c.stroke();
    });
  }
  function outline(one, a, b, at, tall, colour, wide) {
    const c = one.context, from = x(one, a), to = x(one, b);
    if (to < one.gutter || from > one.wide) return;
    c.strokeStyle = colour || ink; c.lineWidth = wide || 1.6;
    c.strokeRect(from + 0.5, at + 0.5, Math.max(1, to - from - 1.4), tall - 1);
  }

  function occupancy(one) {
    const c = one.context;
    eachRow(one, function (r, at) {
      const m = memory[r], limit = D.limits[r] || top, tall = Math.max(1, view.high - (view.high >= 6 ? 2 : view.high >= 3 ? 1 : 0));
      c.fillStyle = shade;
      if (view.high >= 10) box2(one, view.from, view.to, at, tall);
      if (!m || !m.time.length) return;
      for (let k = Math.max(0, first(m.time, view.from) - 1); k < m.time.length && m.time[k] < view.to; k++) {
        if (!m.held[k]) continue;
        const part = m.held[k] / limit, until = k + 1 < m.time.length ? m.time[k + 1] : D.end;
        if (view.high >= 10) {
          c.fillStyle = part > 0.999 ? "#0072b2" : BYTES;
          box2(one, m.time[k], until, at + tall * (1 - part), tall * part);
        } else {
          c.fillStyle = "rgba(0,80,140," + (0.12 + 0.88 * Math.min(1, part)).toFixed(2) + ")";
          box2(one, m.time[k], until, at, tall);
        }
      }
    });
    return "";
  }
  function box2(one, a, b, at, tall) {
    const from = Math.round(Math.max(one.gutter, x(one, a))), to = Math.round(Math.min(one.wide - 8, x(one, b)));
    if (to >= from) one.context.fillRect(from, at, Math.max(0.5, to - from), tall);
  }

  // --- moving ---
  let waiting = false;
  function draw() {
    waiting = false;
    inks();
    panels.forEach(function (one) {
      one.context.clearRect(0, 0, one.wide, one.tall);
      const said = one.paint(one);
      axis(one);
      if (one.paint === schedule) document.getElementById("schedule-said").textContent = said;
    });
  }
  function soon() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }
  function settle() {
    const least = Math.min(D.end, 4), wide = Math.max(least, Math.min(D.end, view.to - view.from));
    view.from = Math.max(0, Math.min(view.from, D.end - wide));
    view.to = view.from + wide;
    const room = panels.length ? panels[0].tall - AXIS : 0;
    view.top = Math.max(0, Math.min(view.top, rows * view.high - room));
    soon();
  }
  function zoom(factor, at) {
    const middle = at === undefined ? (view.from + view.to) / 2 : at;
    view.from = middle - (middle - view.from) * factor;
    view.to = middle + (view.to - middle) * factor;
    settle();
  }
  function rowsHigh(factor) {
    const middle = panels[0] ? (view.top + (panels[0].tall - AXIS) / 2) / view.high : 0;
    view.high = Math.max(1, Math.min(60, factor ? view.high * factor : fit()));
    panels.forEach(measure);
    view.top = middle * view.high - (panels[0].tall - AXIS) / 2;
    settle();
  }
  const time = function (one, px) { return view.from + (px - one.gutter) / (one.wide - one.gutter - 8) * (view.to - view.from); };
  const tip = document.getElementById("schedule-tip");
  function listen(one) {
    let held = null;
    const box = function () { return one.canvas.getBoundingClientRect(); };
    one.canvas.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return;
      event.preventDefault();
      const by = event.deltaY || event.deltaX;
      if (event.shiftKey) { const far = (view.to - view.from) * by / 800; view.from += far; view.to += far; settle(); }
      else zoom(Math.exp(Math.max(-1, Math.min(1, by / 200))), time(one, event.clientX - box().left));
    }, {passive: false});
    one.canvas.addEventListener("pointerdown", function (event) {
      held = {x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: view.top};
      one.canvas.setPointerCapture(event.pointerId);
    });
    one.canvas.addEventListener("pointermove", function (event) {
      if (!held) { point(one, event); return; }
      tip.style.display = "none";
      const far = (event.clientX - held.x) / (one.wide - one.gutter - 8) * (held.to - held.from);
      view.from = held.from - far; view.to = held.to - far; view.top = held.top - (event.clientY - held.y);
      settle();
    });
    one.canvas.addEventListener("pointercancel", function () { held = null; });
    one.canvas.addEventListener("pointerup", function (event) {
      const still = held && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4;
      held = null;
      if (!still || one.paint !== schedule) return;
      const found = under(one, event);
      if (found.k >= 0) pick(netOf(bars[found.r].who[found.k]));
      else if (shown.one >= 0) pick(shown.one);
    });
    one.canvas.addEventListener("pointerleave", function () { tip.style.display = "none"; });
    one.canvas.addEventListener("dblclick", function (event) { zoom(0.4, time(one, event.clientX - box().left)); });
    one.canvas.addEventListener("keydown", function (event) {
      const far = (view.to - view.from) / 5, keys = {
        "+": function () { zoom(0.6); }, "=": function () { zoom(0.6); }, "-": function () { zoom(1.6); }, "0": all,
        ArrowLeft: function () { view.from -= far; view.to -= far; settle(); }, ArrowRight: function () { view.from += far; view.to += far; settle(); },
        ArrowUp: function () { view.top -= 60; settle(); }, ArrowDown: function () { view.top += 60; settle(); }
      };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
  }
  function under(one, event) {  // row, tick and bar below the pointer; -1 for none
    const area = one.canvas.getBoundingClientRect(), t = time(one, event.clientX - area.left);
    const r = Math.floor((event.clientY - area.top - AXIS + view.top) / view.high);
    if (r < 0 || r >= rows || t < view.from || event.clientY - area.top < AXIS) return {r: -1, t: t, k: -1};
    const row = bars[r], k = first(row.end, t);
    return {r: r, t: t, k: k < row.begin.length && row.begin[k] <= t ? k : -1};
  }
  function point(one, event) {
    const found = under(one, event), r = found.r, t = found.t, lines = [];
    tip.style.display = "none";
    if (r < 0) return;
    if (one.paint === occupancy) {
      const m = memory[r], k = m ? first(m.time, t) - 1 : -1;
      lines.push(D.rows[r] + " at " + whole(t), whole(k < 0 ? 0 : m.held[k]) + " bytes" + (D.limits[r] ? " of " + whole(D.limits[r]) : ""));
    } else {
      if (found.k >= 0) describe(bars[r], found.k, r, lines);
      else {
        const lit = (on[r] || []).some(function (s) { return s[0] <= t && t < s[1]; });
        lines.push(D.rows[r], D.on.length ? (lit ? "on without work" : "off") : "nothing");
      }
    }
    tip.textContent = lines.join("\n");
    tip.style.display = "block";
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
  }
  function describe(row, k, r, lines) {
    const p = row.who[k], mark = marks.get(p), link = chain.get(p);
    lines.push(label(p), D.rows[r] + ": " + whole(row.start[k]) + " to " + whole(row.end[k]) + " (" + whole(row.end[k] - row.start[k]) + " ticks)");
    if (D.merged) { lines.push("several runs, drawn as one"); return; }
    if (row.start[k] > row.begin[k]) lines.push("loads from " + whole(row.begin[k]) + " on");
    if (partner.has(p)) lines.push("interaction of " + D.networks[D.net[p]] + " and " + D.networks[partner.get(p)]);
    if (mark && mark.deadline >= 0) lines.push("deadline " + whole(mark.deadline));
    if (mark && mark.due >= 0) lines.push("due " + whole(mark.due) + (mark.late ? ", " + whole(mark.late) + " late" : ""));
    if (link) {
      const words = link.text.split(" ");
      lines.push("number " + (link.place + 1) + " of the critical path" + (link.source >= 0 ? ", after " + label(link.source) + " (" + words[0] + ")" : ""));
    }
  }
  function all() { view.from = 0; view.to = D.end; view.top = 0; rowsHigh(0); view.top = 0; settle(); }

  // --- controls ---
  const act = {in: function () { zoom(0.5); }, out: function () { zoom(2); }, all: all, taller: function () { rowsHigh(1.5); }, flatter: function () { rowsHigh(1 / 1.5); }};
  document.querySelectorAll("[data-do]").forEach(function (button) { button.addEventListener("click", act[button.dataset.do]); });
  document.querySelectorAll("[data-show]").forEach(function (tick) {
    tick.addEventListener("change", function () { shown[tick.dataset.show] = tick.checked; soon(); });
  });
  const legend = document.getElementById("schedule-networks");
  D.networks.slice(0, CHIPS).forEach(function (text, t) {
    const chip = document.createElement("button"), dot = document.createElement("i");
    chip.type = "button"; dot.style.background = colour(t);
    chip.append(dot, text);
    chip.addEventListener("click", function () { pick(t); });
    legend.append(chip);
  });
  if (D.networks.length > CHIPS) legend.append("and " + whole(D.networks.length - CHIPS) + " more: click a bar");
  if (D.networks.length > D.colours.length) legend.append(" (colours repeat)");
  function pick(t) {
    shown.one = shown.one === t ? -1 : t;
    legend.querySelectorAll("button").forEach(function (other, k) { other.classList.toggle("picked", k === shown.one); });
    soon();
  }

  // --- search ---
  const search = document.getElementById("schedule-search"), list = document.getElementById("schedule-matches"), told = document.getElementById("schedule-found");
  const drawn = D.merged ? [] : Array.from(new Set(bars.flatMap(function (row) { return Array.from(row.who); }))).sort(function (a, b) { return a - b; });
  function barsOf(p) {  // rows and bars of a process
    const out = [];
    bars.forEach(function (row, r) { row.who.forEach(function (q, k) { if (q === p) out.push([r, k]); }); });
    return out;
  }
  function find(text, most) {
    const nets = matches(D.networks.length, function (t) { return D.networks[t]; }, text, 4).map(function (t) { return [D.networks[t], function () { shown.one = -1; pick(t); told.textContent = "network " + D.networks[t]; }]; });
    const ones = matches(drawn.length, function (k) { return label(drawn[k]); }, text, most).map(function (k) { return [label(drawn[k]), function () { show(drawn[k]); }]; });
    return (D.networks.length > 1 || D.merged ? nets : []).concat(ones).slice(0, most);
  }
  function show(p) {  // brings a process into view and says what the pointer would
    const at = barsOf(p)[0], row = bars[at[0]], lines = [], long = Math.max(4, row.end[at[1]] - row.begin[at[1]]), wide = Math.min(view.to - view.from, 12 * long);
    shown.found = p;
    view.from = (row.begin[at[1]] + row.end[at[1]] - wide) / 2;
    view.to = view.from + wide;
    view.top = at[0] * view.high - (panels[0].tall - AXIS) / 2;
    describe(row, at[1], at[0], lines);
    told.textContent = lines.join("; ");
    settle();
  }
  function leave() {
    shown.found = -1; told.textContent = ""; list.replaceChildren();
    if (shown.one >= 0) pick(shown.one); else soon();
  }
  search.addEventListener("input", function () {
    const text = search.value.trim(), found = find(text, FOUND);
    told.textContent = text && !(found.length && isNamed(found[0][0], text)) ? noneNamed(text, found.length > 0) : "";
    list.replaceChildren(...found.map(function (one) { return el("button", {type: "button", click: function () { list.replaceChildren(); one[1](); }}, one[0]); }));
  });
  search.addEventListener("keydown", function (event) {
    const text = search.value.trim(), first = find(text, 1)[0];
    if (event.key === "Enter" && first && isNamed(first[0], text)) { list.replaceChildren(); first[1](); }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape") leave();
  });

  themed(document.getElementById("schedule-theme"), function () { hatch = null; soon(); });
  view.high = fit();
  panel("schedule-gantt", schedule);
  if (memory.length) panel("schedule-memory", occupancy);
  panels.forEach(measure);
  settle();
  document.getElementById("schedule-gantt").dataset.ready = "yes";
  window.schedule = {view: view, shown: shown, bars: bars, at: function (p) { const at = barsOf(p)[0], row = bars[at[0]]; return [x(panels[0], (row.start[at[1]] + row.end[at[1]]) / 2), y(at[0]) + view.high / 3]; }};
  window.addEventListener("resize", function () { panels.forEach(measure); settle(); });
})();
