// What is said of the thing that is chosen; each task says it in its own words, by the kind of the thing.
class Panel {
  constructor(place, choose) { this.place = place; this.choose = choose; }

  to(what, text) { return el("button", {type: "button", class: "link", click: () => this.choose(what, true)}, text); }

  table(rows) {
    return el("table", {}, el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((cell, k) => el(k ? "td" : "th", k ? {class: "n"} : {scope: "row"}, cell))))));
  }

  // A table of at most `most` of the rows, under a heading; nothing without rows.
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
