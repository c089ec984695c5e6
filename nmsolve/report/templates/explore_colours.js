// Colours of groups and of amounts; PALETTE stands above.
const LEVELS = [0, 0.35, -0.3, 0.6];

function groupColour(k) {
  const base = d3.hsl(PALETTE[k % PALETTE.length]), level = LEVELS[Math.floor(k / PALETTE.length) % LEVELS.length];
  base.l = level > 0 ? base.l + (1 - base.l) * level : base.l * (1 + level);
  return base.formatHex();
}

// Dark to light in either theme, told apart with any colour vision.
function heat(share) { return d3.interpolateCividis(0.05 + 0.95 * Math.min(1, share)); }
