// A colour of the theme, by its name in page.css.
function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// The theme follows the system until the button is pressed; what is drawn by a script is drawn again.
function themed(button, draw) {
  const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    root.dataset.theme = dark ? "light" : "dark";
    draw();
  });
  system.addEventListener("change", draw);
}
