// The data of the page: columns are unpacked once, routes and sums follow from them.
async function unpack(column) {
  if (!column) return null;
  const packed = Uint8Array.from(atob(column.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  if (column.kind === "text") return new TextDecoder().decode(bytes).split("\n");
  const kinds = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array};
  return new kinds[column.kind](bytes);
}

// Unpacks every column of nested data; plain values stay.
async function unpackAll(value) {
  if (Array.isArray(value)) return Promise.all(value.map(unpackAll));
  if (value === null || typeof value !== "object") return value;
  if ("kind" in value && "data" in value) return unpack(value);
  const out = {};
  for (const key of Object.keys(value)) out[key] = key === "events" ? value[key] : await unpackAll(value[key]);
  return out;
}

function starts(counts) {
  const out = new Uint32Array(counts.length + 1);
  for (let k = 0; k < counts.length; k++) out[k + 1] = out[k] + counts[k];
  return out;
}

// Nodes by core: those of core p are order[first[p]] to order[first[p + 1] - 1].
function byKey(keys, count) {
  const amount = new Uint32Array(count);
  for (const k of keys) amount[k]++;
  const first = starts(amount), at = first.slice(), order = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) order[at[keys[i]]++] = i;
  return {first, order};
}
