// Starts the explorer of the task: unpacks the data and hands them over.
(async function () {
  const place = document.getElementById("explorer");
  try {
    window.explorer = await explore(place, await unpackAll(JSON.parse(document.getElementById("explorer-data").textContent)));
  } catch (error) {
    place.querySelector("[data-is=said]").textContent = `The explorer did not start: ${error.message}. --plain writes the page without it.`;
    throw error;
  }
})();
