// Ties a view to pointer, keys, search, colours and theme; the same for every task.
//   view: a Surface with under(x, y), show(focus), focusOf(thing), thingAt(focus), beside(focus, key)
//   about: words(thing), find(text, most) with [thing, name] pairs, kinds of colours, legend() with what explains them
function wire(place, view, state, panel, about) {
  const by = (name) => place.querySelector(`[data-is="${name}"]`), canvas = view.canvas, tip = by("tip");
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function choose(thing, show) {
    state.chosen = thing;
    if (thing && view.focusOf(thing) >= 0) {
      state.focus = view.focusOf(thing);
      if (show) view.show(state.focus);
    }
    panel.show(thing);
    by("said").textContent = thing ? by("panel").querySelector("h3").textContent : "";
    view.draw();
  }
  panel.choose = choose;

  canvas.addEventListener("pointermove", (event) => {
    const thing = view.under(event.offsetX, event.offsetY);
    if (!same(thing, state.hover)) { state.hover = thing; view.draw(); }
    tip.hidden = !thing;
    if (thing) {
      tip.textContent = about.words(thing);
      tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, canvas.clientWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${event.offsetY + 16}px`;
    }
  });
  canvas.addEventListener("pointerleave", () => { state.hover = null; tip.hidden = true; view.draw(); });
  canvas.addEventListener("click", (event) => choose(view.under(event.offsetX, event.offsetY), false));
  canvas.addEventListener("focus", () => { if (state.focus < 0) state.focus = 0; view.draw(); });
  canvas.addEventListener("blur", () => view.draw());
  canvas.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) {
      const next = view.beside(state.focus, event.key);
      if (next >= 0) choose(view.thingAt(next), true);
    } else if (event.key === "+" || event.key === "=") view.scaleBy(1.5);
    else if (event.key === "-") view.scaleBy(1 / 1.5);
    else if (event.key === "0") view.fit();
    else if (event.key === "Enter") choose(view.thingAt(state.focus), true);
    else return;
    event.preventDefault();
  });

  const search = by("search"), list = by("matches");
  search.addEventListener("input", () => {
    const text = search.value.trim(), found = about.find(text, 12);
    const none = text && !(found.length && isNamed(found[0][1], text)) ? [el("li", {class: "soft"}, noneNamed(text, found.length > 0))] : [];
    list.replaceChildren(...none, ...found.map(([thing, name]) => el("li", {}, panel.to(thing, name))));
  });
  search.addEventListener("keydown", (event) => {
    const text = search.value.trim(), [first] = about.find(text, 1);
    if (event.key === "Enter" && first && isNamed(first[1], text)) { choose(first[0], true); list.replaceChildren(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape") { list.replaceChildren(); choose(null, false); }
  });

  const colours = by("colours"), legend = () => by("legend").replaceChildren(...about.legend());
  colours.append(...about.kinds.map(([value, text]) => el("option", {value}, text)));
  colours.value = state.colour;
  colours.addEventListener("change", () => { state.colour = colours.value; legend(); view.draw(); });
  by("in").addEventListener("click", () => view.scaleBy(1.5));
  by("out").addEventListener("click", () => view.scaleBy(1 / 1.5));
  by("fit").addEventListener("click", () => view.fit());
  themed(by("theme"), () => view.draw());
  legend();
  choose(null, false);
  view.resize();
  place.dataset.ready = "yes";
  return choose;
}
