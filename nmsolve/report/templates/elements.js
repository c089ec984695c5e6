// Elements, figures and search by name. All text goes in as text, never as markup.
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

// A figure with its unit: times, energies and MACs in steps of a thousand, bytes in steps of 1024.
const SCALES = {ps: ["ps", "ns", "µs", "ms", "s"], pJ: ["pJ", "nJ", "µJ", "mJ", "J"], MACs: ["", "k", "M", "G", "T"], bytes: ["bytes", "KiB", "MiB", "GiB", "TiB"]};

function measured(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!(unit in SCALES)) return unit ? `${figure(value)} ${unit}` : figure(value);
  const step = unit === "bytes" ? 1024 : 1000;
  let k = 0;
  for (; Math.abs(value) >= step && k < SCALES[unit].length - 1; k++) value /= step;
  return `${value.toLocaleString("en", {maximumSignificantDigits: 4})} ${SCALES[unit][k]}`.trim();
}

// Numbers below count whose names hold the text: the text itself first, then those that begin with it.
function matches(count, name, text, most) {
  if (!text) return [];
  const exact = [], starts = [], within = [], wanted = text.toLowerCase();
  for (let k = 0; k < count; k++) {
    const own = name(k).toLowerCase(), at = own.indexOf(wanted);
    const into = own === wanted ? exact : at === 0 ? starts : at > 0 ? within : null;
    if (into && into.length < most) into.push(k);
  }
  return exact.concat(starts, within).slice(0, most);
}

// Whether a name is the text that was searched for; "core (0, 1)" is "(0, 1)" too.
function isNamed(name, text) {
  const own = name.toLowerCase(), wanted = text.toLowerCase();
  return own === wanted || own.endsWith(` ${wanted}`);
}

// What is said of a text that is no name, with names that hold it or not.
function noneNamed(text, any) {
  return `nothing is called “${text}”${any ? "; names that hold it:" : ""}`;
}
