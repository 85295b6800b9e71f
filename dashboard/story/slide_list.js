// The slides of a story in order. A handle moves a slide, by pointer or by the arrow keys; a heading
// is edited where it stands.

class SlideList {
  constructor(root) {
    this.list = root.querySelector("ol");
    this.spoken = root.querySelector(".spoken");
    this.rows = new Map();
    // What the server has not yet confirmed: of two values sent in short order, it gets the second.
    this.pending = [];
    this.last = 0;
    // Widths are known once the page is laid out, and change with the window.
    new ResizeObserver(() => this.rows.forEach(({ text }) => fit(text))).observe(this.list);
  }

  update({ slides, shown, done }, trigger) {
    this.trigger = trigger;
    this.pending = this.pending.filter(({ id }) => id > done);
    const active = this.list.getRootNode().activeElement;
    const kept = new Map();
    for (const slide of slides) {
      kept.set(slide.number, this.rows.get(slide.number) ?? this.rowOf(slide.number));
    }
    for (const [number, { row }] of this.rows) if (!kept.has(number)) row.remove();
    this.rows = kept;
    [...kept.values()].forEach(({ row, handle, text }, i) => {
      const slide = slides[i];
      // Only a row out of place is moved: moving one that is edited would end the editing.
      if (this.list.children[i] !== row) this.list.insertBefore(row, this.list.children[i] ?? null);
      row.classList.toggle("shown", slide.number === shown);
      handle.textContent = `⠿ ${i + 1}`;
      handle.setAttribute("aria-label", `Move slide ${i + 1} of ${slides.length}, arrow keys`);
      text.setAttribute("aria-label", `Heading of slide ${i + 1}`);
      text.placeholder = slide.finding;
      text.maxLength = slide.most;
      if (text !== active) text.value = slide.heading;
      fit(text);
    });
    if (active && active !== this.list.getRootNode().activeElement) active.focus();
  }

  send(kind, detail) {
    this.last = Math.max(this.last + 1, Date.now()); // greater than those before a reload, too
    this.pending.push({ id: this.last, kind, ...detail });
    this.trigger("events", this.pending);
  }

  rowOf(number) {
    const row = document.createElement("li");
    const handle = document.createElement("button");
    const text = document.createElement("textarea");
    handle.type = "button";
    handle.title = "Drag to move this slide, or press the arrow keys";
    text.rows = 1;
    row.append(handle, text);
    row.addEventListener("click", () => this.show(number));
    text.addEventListener("focus", () => this.show(number));
    text.addEventListener("input", () => fit(text));
    text.addEventListener("change", () => {
      const isFinding = text.value.trim() === text.placeholder;
      this.send("edited", { number, heading: isFinding ? "" : text.value });
    });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        text.blur();
      }
    });
    handle.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.move(number, this.placeOf(row) + by);
    });
    handle.addEventListener("pointerdown", (event) => this.drag(event, number, row, handle));
    return { row, handle, text };
  }

  show(number) {
    if (!this.rows.get(number).row.classList.contains("shown")) this.send("chosen", { number });
  }

  placeOf(row) {
    return [...this.list.children].indexOf(row);
  }

  move(number, to) {
    const { row } = this.rows.get(number);
    if (to === this.placeOf(row) || to < 0 || to >= this.rows.size) return;
    this.spoken.textContent = `Moved to place ${to + 1} of ${this.rows.size}`;
    this.send("moved", { number, to });
  }

  drag(event, number, row, handle) {
    if (event.button !== 0) return;
    handle.setPointerCapture(event.pointerId);
    let to = null;
    const clear = () => {
      row.classList.remove("moving");
      for (const { row: other } of this.rows.values()) other.classList.remove("before", "after");
    };
    const follow = ({ clientY }) => {
      clear();
      row.classList.add("moving");
      const here = this.placeOf(row);
      const others = [...this.list.children].filter((other) => other !== row);
      to = others.filter((other) => {
        const { top, height } = other.getBoundingClientRect();
        return clientY > top + height / 2;
      }).length;
      if (to === here) return;
      const [beside, side] = to < others.length ? [others[to], "before"] : [others.at(-1), "after"];
      beside.classList.add(side);
    };
    const stop = ({ type }) => {
      handle.removeEventListener("pointermove", follow);
      handle.removeEventListener("pointerup", stop);
      handle.removeEventListener("pointercancel", stop);
      clear();
      if (type === "pointerup" && to !== null) this.move(number, to);
    };
    handle.addEventListener("pointermove", follow);
    handle.addEventListener("pointerup", stop);
    handle.addEventListener("pointercancel", stop);
  }
}

function fit(text) {
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

export default function (component) {
  const root = component.parentElement.querySelector(".slide-list");
  root.slides ??= new SlideList(root);
  root.slides.update(component.data, component.setTriggerValue);
}
