// Asks the server every second what happened since, and draws it; when the run has ended its own page is loaded.
(function () {
  const by = (name) => document.querySelector(`#explorer [data-is="${name}"]`);
  let at = 0, seen = false, data = {events: [], seconds: 0}, bound = null, best = null;

  function take(event) {
    data.seconds = Math.max(data.seconds, event.seconds || 0);
    if (event.type === "incumbent") { best = event.objective; data.events.push([event.seconds, event.engine, best, 0, event.move || ""]); }
    if (event.type === "bound") { bound = event.bound; data.events.push([event.seconds, event.engine, bound, 1, ""]); }
    const row = el("tr", {}, ...[`${figure(event.seconds || 0)} s`, event.type, event.engine, figure(event.objective), figure(event.bound), event.text || event.move || ""].map((cell) => el("td", {}, cell)));
    by("last").prepend(row);
    while (by("last").children.length > 30) by("last").lastChild.remove();
  }

  async function ask() {
    try {
      const told = await (await fetch(`events?from=${at}`)).json();
      if (told.state === "finished" || (told.state === "ends" && seen)) {
        by("said").textContent = told.state === "finished" ? "the run has ended" : "the search has ended; its files are being written";
        if (told.state === "finished") return location.reload();
      } else if (told.state === "runs") {
        seen = true;
        if (told.again) { data = {events: [], seconds: 0}; best = bound = null; }
        at = told.next;
        told.events.forEach(take);
        by("said").textContent = "the search is running";
        by("best").textContent = figure(best); by("bound").textContent = figure(bound); by("clock").textContent = figure(data.seconds);
        by("gap").textContent = best === null || bound === null || best === 0 ? "–" : `${figure(100 * Math.abs(best - bound) / Math.abs(best))} %`;
        if (data.events.length) timeline(by("time"), data, by("time-said"));
      }
    } catch (error) {
      by("said").textContent = "the server does not answer: nmsolve watch has ended";
    }
    setTimeout(ask, 1000);
  }
  ask();
})();
