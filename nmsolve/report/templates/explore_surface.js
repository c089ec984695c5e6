// A canvas that zooms and pans. What is drawn on it says how large it is (size) and draws itself (paint).
class Surface {
  constructor(canvas, state) {
    this.canvas = canvas; this.state = state;
    this.context = canvas.getContext("2d");
    this.at = d3.zoomIdentity;
    this.zoom = d3.zoom().scaleExtent([0.02, 60]).on("zoom", (event) => { this.at = event.transform; this.draw(); });
    d3.select(canvas).call(this.zoom).on("dblclick.zoom", null);
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, first = !this.wide;
    this.wide = this.canvas.clientWidth; this.tall = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.wide * ratio); this.canvas.height = Math.round(this.tall * ratio);
    this.ratio = ratio;
    if (first) this.fit(); else this.draw();
  }

  fit() {
    const [wide, tall] = this.size(), k = Math.min(this.wide / (wide + 8), this.tall / (tall + 8));
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity.translate((this.wide - k * wide) / 2, (this.tall - k * tall) / 2).scale(k));
  }

  scaleBy(factor) { d3.select(this.canvas).call(this.zoom.scaleBy, factor); }

  // Brings a place into view.
  bring(x, y) {
    const px = this.at.applyX(x), py = this.at.applyY(y);
    if (px < 0 || py < 0 || px > this.wide || py > this.tall) d3.select(this.canvas).call(this.zoom.translateTo, x, y);
  }

  draw() {
    if (!this.wide) return;
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.clearRect(0, 0, this.wide, this.tall);
    this.paintAll(this.context);
  }

  paintAll(c) { this.moved(c); this.paint(c); }

  // What is drawn next stands where zoom and pan put it.
  moved(c) { c.translate(this.at.x, this.at.y); c.scale(this.at.k, this.at.k); }
}
