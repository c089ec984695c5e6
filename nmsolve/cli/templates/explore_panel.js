// Elements, figures, and what all panels share. All text goes in as text, never as markup.
function el(tag, values, ...inside) {
  const out = document.createElement(tag);
  for (const [key, value] of Object.entries(values || {})) if (key === "click") out.addEventListener("click", value); else out.setAttribute(key, value);
  for (const part of inside) if (part !== null) out.append(part);
  return out;
}

function figure(value) {
  if (value === null || value === undefined) return "–";
  const large = Math.abs(value) >= 1e7 || (value !== 0 && Math.abs(value) < 1e-3);
  return large ? value.toExponential(3) : value.toLocaleString("en", {maximumFractionDigits: 2});
}

// A figure with its unit: times and energies in steps of a thousand, bytes in steps of 1024.
const SCALES = {ps: ["ps", "ns", "µs", "ms", "s"], pJ: ["pJ", "nJ", "µJ", "mJ", "J"], bytes: ["bytes", "KiB", "MiB", "GiB", "TiB"]};

function measured(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!(unit in SCALES)) return unit ? `${figure(value)} ${unit}` : figure(value);
  const step = unit === "bytes" ? 1024 : 1000;
  let k = 0;
  for (; Math.abs(value) >= step && k < SCALES[unit].length - 1; k++) value /= step;
  return `${value.toLocaleString("en", {maximumSignificantDigits: 4})} ${SCALES[unit][k]}`;
}

// What is said of the thing that is chosen; each task says it in its own words, by the kind of the thing.
class Panel {
  constructor(place, choose) { this.place = place; this.choose = choose; }

  to(what, text) { return el("button", {type: "button", class: "link", click: () => this.choose(what, true)}, text); }

  table(rows) {
    return el("table", {}, el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((cell, k) => el(k ? "td" : "th", k ? {class: "n"} : {scope: "row"}, cell))))));
  }

  // A table of at most so many of the rows, under a heading; nothing where there are none.
  listed(title, rows, most) {
    if (!rows.length) return [];
    return [el("h4", {}, title), this.table(rows.slice(0, most)), rows.length > most ? el("p", {class: "soft"}, `and ${figure(rows.length - most)} more`) : null];
  }

  show(what) {
    this.place.replaceChildren(...(what ? this[what.kind](what[what.kind]) : this.whole()).filter((part) => part !== null));
  }
}

function swatch(colour, text) { return el("span", {}, el("i", {class: "swatch", style: `background:${colour}`}), text); }

function ramp() { return el("i", {class: "ramp", style: `background:linear-gradient(90deg,${d3.range(0, 1.01, 0.1).map(heat).join(",")})`}); }

function heatKey(values) { return el("span", {}, "0 ", ramp(), ` ${values.top === 1 && values.text.includes("share") ? "100 %" : measured(values.top, values.unit || "")}: ${values.text}`); }

// Numbers below count whose names hold the text: those that begin with it first.
function matches(count, name, text, most) {
  if (!text) return [];
  const starts = [], within = [], wanted = text.toLowerCase();
  for (let k = 0; k < count && starts.length < most; k++) {
    const at = name(k).toLowerCase().indexOf(wanted);
    if (at === 0) starts.push(k); else if (at > 0 && within.length < most) within.push(k);
  }
  return starts.concat(within).slice(0, most);
}
