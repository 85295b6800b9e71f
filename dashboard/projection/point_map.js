// A map of many points. They are drawn into the pixels of a canvas by the processor, which is
// faster than WebGL where no graphics card helps, and fast enough where one would.
// Texts reach the page through `textContent` alone.

const SHAPES = {
  circle: (x, y) => x * x + y * y <= 1,
  diamond: (x, y) => Math.abs(x) + Math.abs(y) <= 1.15,
  square: (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.84,
  cross: (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.36 && x * x + y * y <= 1.3,
  "triangle-up": (x, y) => y <= 0.75 && Math.abs(x) <= (y + 1.05) * 0.62,
  "triangle-down": (x, y) => y >= -0.75 && Math.abs(x) <= (1.05 - y) * 0.62,
  pentagon: (x, y) => insidePentagon(x, y),
};
const MARK = "#D55E00";
const CLICK_DISTANCE = 10;
const MOST_RINGS = 3000;

function insidePentagon(x, y) {
  for (let k = 0; k < 5; k++) {
    const angle = (Math.PI * 2 * (k + 0.5)) / 5 - Math.PI / 2;
    if (x * Math.cos(angle) + y * Math.sin(angle) > 0.85) return false;
  }
  return true;
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

function base64Of(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return btoa(text);
}

function hasBit(bits, i) {
  return (bits[i >> 3] >> (i & 7)) & 1;
}

function rgb(colour) {
  const value = parseInt(colour.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

// How much of each pixel around a point its shape covers, with the pixel's offset.
function stampOf(shape, radius) {
  const covers = SHAPES[shape] ?? SHAPES.circle;
  const reach = Math.ceil(radius * 1.2);
  const cells = [];
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      let n = 0;
      for (let k = 0; k < 16; k++) {
        const dx = ((k & 3) + 0.5) / 4 - 0.5;
        const dy = ((k >> 2) + 0.5) / 4 - 0.5;
        n += covers((x + dx) / radius, (y + dy) / radius) ? 1 : 0;
      }
      if (n) cells.push([x, y, n / 16]);
    }
  }
  return { cells, reach };
}

class PointMap {
  constructor(root) {
    this.root = root;
    this.points = root.querySelector("canvas");
    this.marks = root.querySelectorAll("canvas")[1];
    this.tip = root.querySelector(".tip");
    this.legend = root.querySelector(".legend");
    this.n = 0;
    this.hidden = new Set();
    this.pointers = new Map();
    this.path = null;
    this.mode = matchMedia("(pointer: coarse)").matches ? "page" : "select";
    this.listen();
    this.setMode(this.mode);
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(root.querySelector(".frame"));
    // The frame's background takes the theme's colour by a transition, whose end tells of a change.
    root.addEventListener("transitionend", () => this.n && this.draw(false));
  }

  update(data, send) {
    this.send = send;
    const { key } = data.points;
    if (key !== this.key) {
      this.key = key;
      this.x = new Uint16Array(bytesOf(data.points.x).buffer);
      this.y = new Uint16Array(bytesOf(data.points.y).buffer);
      this.n = this.x.length;
      this.extent = data.points.extent;
      this.radius = data.points.radius;
      this.view = null;
    }
    this.texts = data.texts;
    this.groups = data.groups;
    this.group = bytesOf(data.group);
    this.found = bytesOf(data.found);
    this.selected = bytesOf(data.selected);
    this.n_selected = data.n_selected;
    this.typed = data.typed;
    this.moves = data.moves;
    this.labels = data.labels;
    this.name = data.name;
    this.points.setAttribute("aria-label", data.alt);
    this.hidden.clear();
    this.drawLegend(data.legend);
    this.resize();
  }

  resize() {
    const frame = this.root.querySelector(".frame").getBoundingClientRect();
    if (!this.n || !frame.width) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [Math.round(frame.width * ratio), Math.round(frame.height * ratio)];
    if (width !== this.width || height !== this.height) {
      const before = this.view && [this.centre(), this.view.scale / this.width];
      Object.assign(this, { width, height, ratio });
      for (const canvas of [this.points, this.marks]) {
        canvas.width = width;
        canvas.height = height;
      }
      this.context = this.points.getContext("2d", { alpha: false });
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      if (before) {
        this.view.scale = before[1] * width;
        this.view.x = width / 2 - before[0][0] * this.view.scale;
        this.view.y = height / 2 - before[0][1] * this.view.scale;
      }
    }
    if (!this.view) this.fit();
    this.draw(false);
  }

  fit() {
    const [right, bottom] = this.extent;
    const pad = 26 * this.ratio;
    const scale = Math.min((this.width - 2 * pad) / right, (this.height - 2 * pad) / bottom);
    this.home = scale;
    this.view = {
      scale,
      x: (this.width - right * scale) / 2,
      y: (this.height - bottom * scale) / 2,
    };
  }

  centre() {
    return [
      (this.width / 2 - this.view.x) / this.view.scale,
      (this.height / 2 - this.view.y) / this.view.scale,
    ];
  }

  // Drawn without smooth edges while it moves, and with them once it rests.
  ask(isMoving) {
    clearTimeout(this.resting);
    if (isMoving) this.resting = setTimeout(() => this.draw(false), 160);
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw(isMoving);
    });
  }

  draw(isMoving) {
    if (!this.n || !this.view) return;
    const style = getComputedStyle(this.root);
    const background = hex(style.getPropertyValue("--st-background-color"), "#ffffff");
    this.ink = hex(style.getPropertyValue("--st-text-color"), "#222222");
    const [r, g, b] = rgb(background);
    this.background = background;
    this.pixels.fill(0xff000000 | (b << 16) | (g << 8) | r);
    const grown = Math.min(2.2, Math.max(1, (this.view.scale / this.home) ** 0.4));
    const radius = this.radius * this.ratio * grown;
    if (this.n_selected) {
      this.stampAll(radius, isMoving, 0, 0.22);
      this.stampAll(radius * 1.15, isMoving, 1, 1);
    } else {
      this.stampAll(radius, isMoving, -1, 1);
    }
    this.context.putImageData(this.image, 0, 0);
    this.drawMarks();
  }

  // `which`: -1 draws all points, 1 the selected ones, 0 the others.
  stampAll(radius, isMoving, which, strength) {
    const { width, height, pixels, x, y, group, selected } = this;
    const { scale, x: left, y: top } = this.view;
    const ground = rgb(this.background);
    const looks = this.groups.map((one) => {
      const { cells, reach } = stampOf(one.shape, radius);
      const [r, g, b] = rgb(one.colour).map((v, i) => v * strength + ground[i] * (1 - strength));
      const solid = cells.filter((cell) => cell[2] >= 0.5);
      const used = solid.length ? solid : cells;
      const edge = isMoving ? [] : cells.filter((cell) => cell[2] < 0.94);
      const inner = isMoving ? used : cells.filter((cell) => cell[2] >= 0.94);
      return {
        reach,
        colour: 0xff000000 | (b << 16) | (g << 8) | r,
        r,
        g,
        b,
        inner: Int32Array.from(inner, (cell) => cell[1] * width + cell[0]),
        edge: Int32Array.from(edge, (cell) => cell[1] * width + cell[0]),
        cover: Float32Array.from(edge, (cell) => cell[2]),
      };
    });
    const isShown = this.groups.map((_, i) => !this.hidden.has(i));
    for (let i = 0; i < this.n; i++) {
      const k = group[i];
      if (!isShown[k] || (which >= 0 && hasBit(selected, i) !== which)) continue;
      const look = looks[k];
      const px = (x[i] * scale + left) | 0;
      const py = (y[i] * scale + top) | 0;
      const { reach } = look;
      if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
      const at = py * width + px;
      const { inner, edge, colour } = look;
      for (let j = 0; j < inner.length; j++) pixels[at + inner[j]] = colour;
      for (let j = 0; j < edge.length; j++) {
        const here = at + edge[j];
        const old = pixels[here];
        const share = look.cover[j];
        const rest = 1 - share;
        pixels[here] =
          0xff000000 |
          ((look.b * share + ((old >> 16) & 255) * rest) << 16) |
          ((look.g * share + ((old >> 8) & 255) * rest) << 8) |
          (look.r * share + (old & 255) * rest);
      }
    }
  }

  place(x, y) {
    return [x * this.view.scale + this.view.x, y * this.view.scale + this.view.y];
  }

  drawMarks() {
    const context = this.marks.getContext("2d");
    const unit = this.ratio;
    context.clearRect(0, 0, this.width, this.height);
    this.drawMoves(context, unit);
    this.drawFound(context, unit);
    this.drawLabels(context, unit);
    if (this.typed) this.drawStar(context, this.place(...this.typed), 10 * unit);
    if (this.path) {
      context.beginPath();
      for (const [x, y] of this.path) context.lineTo(x, y);
      context.closePath();
      context.fillStyle = MARK + "22";
      context.fill();
      context.strokeStyle = MARK;
      context.lineWidth = 1.5 * unit;
      context.stroke();
    }
  }

  drawMoves(context, unit) {
    if (!this.moves) return;
    context.strokeStyle = MARK + "8c";
    context.lineWidth = 1.2 * unit;
    context.beginPath();
    for (const [before, after] of this.moves) {
      context.moveTo(...this.place(...before));
      context.lineTo(...this.place(...after));
    }
    context.stroke();
    context.strokeStyle = MARK;
    context.lineWidth = 1.8 * unit;
    context.beginPath();
    const arm = 3.2 * unit;
    for (const [, after] of this.moves) {
      const [x, y] = this.place(...after);
      context.moveTo(x - arm, y - arm);
      context.lineTo(x + arm, y + arm);
      context.moveTo(x - arm, y + arm);
      context.lineTo(x + arm, y - arm);
    }
    context.stroke();
  }

  drawFound(context, unit) {
    let n = 0;
    context.strokeStyle = MARK;
    context.lineWidth = 2 * unit;
    context.beginPath();
    for (let i = 0; i < this.n && n < MOST_RINGS; i++) {
      if (!hasBit(this.found, i)) continue;
      n += 1;
      const [x, y] = this.place(this.x[i], this.y[i]);
      if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
      context.moveTo(x + 6.5 * unit, y);
      context.arc(x, y, 6.5 * unit, 0, 2 * Math.PI);
    }
    context.stroke();
  }

  // Each label is above its cluster; one that would cover another is left out.
  drawLabels(context, unit) {
    context.font = `600 ${13 * unit}px ${getComputedStyle(this.root).fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken = [];
    for (const label of this.labels) {
      const [x, y] = this.place(label.x, label.y);
      const width = context.measureText(label.text).width / 2 + 5 * unit;
      const box = [x - width, y - 10 * unit, x + width, y + 10 * unit];
      const isOutside = box[0] < 0 || box[1] < 0 || box[2] > this.width || box[3] > this.height;
      const isCovered = taken.some(
        (other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3],
      );
      if (isOutside || isCovered) continue;
      taken.push(box);
      context.strokeStyle = this.background;
      context.lineWidth = 4 * unit;
      context.strokeText(label.text, x, y);
      context.fillStyle = this.ink;
      context.fillText(label.text, x, y);
    }
  }

  drawStar(context, [x, y], size) {
    context.beginPath();
    for (let k = 0; k < 10; k++) {
      const angle = (Math.PI * k) / 5 - Math.PI / 2;
      const reach = k % 2 ? size * 0.45 : size;
      context.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    }
    context.closePath();
    context.fillStyle = MARK;
    context.fill();
    context.strokeStyle = this.background;
    context.lineWidth = 1.5 * this.ratio;
    context.stroke();
  }

  drawLegend(lines) {
    this.legend.replaceChildren();
    this.groups.forEach((group, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide these points";
      button.append(swatch(group), document.createTextNode(group.name));
      button.onclick = () => {
        const isHidden = !this.hidden.delete(i);
        if (isHidden) this.hidden.add(i);
        button.setAttribute("aria-pressed", String(!isHidden));
        this.draw(false);
      };
      this.legend.append(button);
    });
    for (const line of lines) {
      const text = document.createElement("span");
      text.textContent = line;
      this.legend.append(text);
    }
  }

  listen() {
    const { marks } = this;
    marks.onpointerdown = (event) => this.down(event);
    marks.onpointermove = (event) => this.move(event);
    marks.onpointerup = (event) => this.up(event, true);
    marks.onpointercancel = (event) => this.up(event, false);
    marks.onpointerleave = () => this.hideTip();
    marks.ondblclick = (event) => this.zoom(1.8, this.at(event));
    marks.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * 0.004), this.at(event));
      },
      { passive: false },
    );
    this.root.onkeydown = (event) => this.key_pressed(event);
    const actions = {
      select: () => this.setMode("select"),
      move: () => this.setMode("move"),
      in: () => this.zoom(1.5),
      out: () => this.zoom(1 / 1.5),
      home: () => this.reset(),
      view: () => this.selectView(),
      save: () => this.save(),
    };
    for (const button of this.root.querySelectorAll("[data-action]")) {
      button.onclick = () => actions[button.dataset.action]();
    }
  }

  setMode(mode) {
    this.mode = mode;
    this.marks.style.touchAction = mode === "page" ? "pan-y" : "none";
    this.marks.style.cursor = mode === "move" ? "grab" : "crosshair";
    for (const button of this.root.querySelectorAll("[data-action=select],[data-action=move]")) {
      button.setAttribute("aria-pressed", String(button.dataset.action === mode));
    }
  }

  at(event) {
    const box = this.marks.getBoundingClientRect();
    return [(event.clientX - box.left) * this.ratio, (event.clientY - box.top) * this.ratio];
  }

  down(event) {
    this.marks.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.at(event));
    this.hideTip();
    this.start = this.at(event);
    this.isDragged = false;
    if (this.pointers.size === 1 && this.mode === "select" && !event.shiftKey) {
      this.path = [this.start];
    } else {
      this.path = null;
    }
  }

  move(event) {
    const here = this.at(event);
    const last = this.pointers.get(event.pointerId);
    if (!last) {
      this.showTip(here);
      return;
    }
    if (this.pointers.size === 2) {
      this.pinch(event.pointerId, last, here);
    } else if (this.path) {
      this.path.push(here);
      this.isDragged ||= distance(here, this.start) > 6 * this.ratio;
      if (this.isDragged) this.drawMarks();
    } else if (this.mode !== "page") {
      this.view.x += here[0] - last[0];
      this.view.y += here[1] - last[1];
      this.isDragged ||= distance(here, this.start) > 6 * this.ratio;
      this.ask(true);
    }
    this.pointers.set(event.pointerId, here);
  }

  pinch(id, last, here) {
    const other = [...this.pointers].find(([pointer]) => pointer !== id)[1];
    const [before, after] = [distance(last, other), distance(here, other)];
    this.path = null;
    this.isDragged = true;
    this.view.x += (here[0] - last[0]) / 2;
    this.view.y += (here[1] - last[1]) / 2;
    if (before > 0) this.zoom(after / before, [(here[0] + other[0]) / 2, (here[1] + other[1]) / 2]);
  }

  up(event, isDone) {
    const path = this.path;
    this.pointers.delete(event.pointerId);
    if (this.pointers.size) return;
    this.path = null;
    if (isDone && !this.isDragged) {
      const point = this.nearest(this.at(event));
      this.pick(point === null ? [] : [point]);
    } else if (isDone && path) {
      this.pick(this.inside(path));
    }
    if (path) this.drawMarks();
  }

  nearest(here) {
    const reach = CLICK_DISTANCE * this.ratio;
    let [best, found] = [reach * reach, null];
    for (let i = 0; i < this.n; i++) {
      if (this.hidden.has(this.group[i])) continue;
      const dx = this.x[i] * this.view.scale + this.view.x - here[0];
      const dy = this.y[i] * this.view.scale + this.view.y - here[1];
      const d = dx * dx + dy * dy;
      if (d < best) [best, found] = [d, i];
    }
    return found;
  }

  inside(path) {
    const rows = [];
    const [xs, ys] = [path.map((p) => p[0]), path.map((p) => p[1])];
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    for (let i = 0; i < this.n; i++) {
      const [x, y] = this.place(this.x[i], this.y[i]);
      if (x < left || x > right || y < top || y > bottom) continue;
      if (!this.hidden.has(this.group[i]) && isWithin(path, x, y)) rows.push(i);
    }
    return rows;
  }

  selectView() {
    const rows = [];
    for (let i = 0; i < this.n; i++) {
      const [x, y] = this.place(this.x[i], this.y[i]);
      const isInView = x >= 0 && y >= 0 && x <= this.width && y <= this.height;
      if (isInView && !this.hidden.has(this.group[i])) rows.push(i);
    }
    this.pick(rows);
  }

  pick(rows) {
    if (!rows.length && !this.n_selected) return;
    const bits = new Uint8Array((this.n + 7) >> 3);
    for (const i of rows) bits[i >> 3] |= 1 << (i & 7);
    this.selected = bits;
    this.n_selected = rows.length;
    this.draw(false);
    this.send("picked", { key: this.key, bits: base64Of(bits) });
  }

  zoom(factor, here = [this.width / 2, this.height / 2]) {
    const least = this.home * 0.6;
    const scale = Math.min(this.home * 200, Math.max(least, this.view.scale * factor));
    const change = scale / this.view.scale;
    this.view.x = here[0] - (here[0] - this.view.x) * change;
    this.view.y = here[1] - (here[1] - this.view.y) * change;
    this.view.scale = scale;
    this.ask(true);
  }

  reset() {
    this.fit();
    this.draw(false);
  }

  key_pressed(event) {
    if (event.target.closest("button") && event.key !== "Escape") return;
    const step = 60 * this.ratio;
    const moves = {
      ArrowLeft: [step, 0],
      ArrowRight: [-step, 0],
      ArrowUp: [0, step],
      ArrowDown: [0, -step],
    };
    if (moves[event.key]) {
      this.view.x += moves[event.key][0];
      this.view.y += moves[event.key][1];
      this.ask(true);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.reset();
    else if (event.key === "Escape") this.pick([]);
    else return;
    event.preventDefault();
  }

  showTip(here) {
    if (!this.texts || !this.view) return;
    const point = this.nearest(here);
    if (point === null) {
      this.hideTip();
      return;
    }
    const [x, y] = this.place(this.x[point], this.y[point]).map((v) => v / this.ratio);
    this.tip.textContent = this.texts[point];
    this.tip.hidden = false;
    const frame = this.root.querySelector(".frame");
    const isRight = x > frame.clientWidth / 2;
    this.tip.style.left = isRight ? "" : `${x + 12}px`;
    this.tip.style.right = isRight ? `${frame.clientWidth - x + 12}px` : "";
    this.tip.style.top = `${Math.min(y + 8, frame.clientHeight - this.tip.offsetHeight - 4)}px`;
  }

  hideTip() {
    this.tip.hidden = true;
  }

  save() {
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [this.width, this.height];
    const context = sheet.getContext("2d");
    context.drawImage(this.points, 0, 0);
    context.drawImage(this.marks, 0, 0);
    const link = document.createElement("a");
    link.download = `${this.name}.png`;
    link.href = sheet.toDataURL("image/png");
    link.click();
  }
}

function distance(one, other) {
  return Math.hypot(one[0] - other[0], one[1] - other[1]);
}

function isWithin(path, x, y) {
  let isInside = false;
  for (let i = 0, j = path.length - 1; i < path.length; j = i++) {
    const [ax, ay] = path[i];
    const [bx, by] = path[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) isInside = !isInside;
  }
  return isInside;
}

// A colour of the theme as #rrggbb; the browser may give it as rgb().
function hex(colour, otherwise) {
  const text = colour.trim();
  if (/^#[0-9a-f]{6}$/i.test(text)) return text;
  if (/^#[0-9a-f]{3}$/i.test(text)) return `#${[...text.slice(1)].map((c) => c + c).join("")}`;
  const parts = text.match(/\d+(\.\d+)?/g);
  if (!parts || parts.length < 3) return otherwise;
  return `#${parts.slice(0, 3).map((p) => Math.round(+p).toString(16).padStart(2, "0")).join("")}`;
}

function swatch(group) {
  const canvas = document.createElement("canvas");
  const ratio = 2;
  canvas.width = canvas.height = 14 * ratio;
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  context.fillStyle = group.colour;
  for (const [x, y, cover] of stampOf(group.shape, 5 * ratio).cells) {
    context.globalAlpha = cover;
    context.fillRect(x + 7 * ratio, y + 7 * ratio, 1, 1);
  }
  return canvas;
}

export default function (component) {
  const root = component.parentElement.querySelector(".point-map");
  root.map ??= new PointMap(root);
  root.map.update(component.data, component.setTriggerValue);
}
