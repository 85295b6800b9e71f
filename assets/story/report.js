/* Draws the figures, and presents the slides. Nothing is fetched: all is in this document. */
(() => {
  "use strict";
  const one = (id) => document.getElementById(id);
  const slides = [...document.querySelectorAll(".slide")];
  const drawn = [...document.querySelectorAll("[data-figure]")];
  const PAPER = { wide: 1031, high: 700, drawn: 590, figure: 460, least: 260 };
  const figures = JSON.parse(one("figures").textContent);
  // A browser keeps about 16 programs of WebGL, and of a figure that loses its own nothing is
  // seen: of those that need some, the first few can be turned, and the others are pictures.
  const LIVE = 6;
  const compiled = (trace) => /gl$|3d$/.test(trace.type);
  const stills = drawn.filter((place) => figures[place.dataset.figure].data.some(compiled))
    .slice(LIVE);
  const look = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: "#1b1f24", family: "system-ui, Arial, sans-serif" },
    template: {
      layout: { xaxis: { automargin: true }, yaxis: { automargin: true, title: { standoff: 8 } } },
    },
  };

  async function plotly() {
    const packed = Uint8Array.from(atob(one("plotly").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const source = await new Response(stream).arrayBuffer();
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    await new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
    URL.revokeObjectURL(address);
  }

  function layoutOf(figure, width, height) {
    const own = figure.layout;
    const layout = { ...own, ...look, font: { ...own.font, ...look.font }, autosize: true };
    delete layout.width;
    layout.height = height;
    if (width) layout.width = width;
    return layout;
  }

  function heightOf(figure) {
    return Math.min(Math.max(figure.layout.height || 420, 260), 600);
  }

  // A document without figures holds no program to draw them.
  async function draw() {
    if (!drawn.length) return;
    await plotly();
    for (const place of drawn) {
      try {
        await (stills.includes(place) ? still(place) : live(place));
      } catch {
        place.textContent = place.getAttribute("aria-label");  // the slide's words remain
      }
      if (isPresenting()) await fit();  // a slide may be seen before its figure is drawn
    }
  }

  async function live(place) {
    const figure = figures[place.dataset.figure];
    place.replaceChildren();
    await Plotly.newPlot(place, figure.data, layoutOf(figure, 0, heightOf(figure)), {
      displaylogo: false,
      displayModeBar: false,
      responsive: true,
      scrollZoom: false,
    });
  }

  function isPresenting() {
    return document.body.classList.contains("presenting");
  }

  async function still(place) {
    const figure = figures[place.dataset.figure];
    const picture = new Image();
    picture.alt = "";
    picture.title = `A picture: a browser turns ${LIVE} such figures at once, and no more.`;
    picture.src = await pictureOf(figure, 800, heightOf(figure), 2);
    place.replaceChildren(picture);
  }

  function pictureOf(figure, width, height, scale) {
    const layout = { ...layoutOf(figure, width, height), autosize: false, paper_bgcolor: "#fff" };
    const size = { format: "png", width, height, scale };
    return Plotly.toImage({ data: figure.data, layout }, size);
  }

  // What a slide says below its figure stays in sight: the figure gives way, to a third at most.
  function heightLeft(place) {
    const full = Math.round(innerHeight * 0.54);
    place.style.height = `${full}px`;
    const slide = place.closest(".slide");
    const over = slide.offsetHeight - parseFloat(getComputedStyle(slide).minHeight);
    return Math.max(full - Math.ceil(Math.max(over, 0)), Math.round(innerHeight * 0.36));
  }

  async function fit() {
    const tall = isPresenting() && innerWidth >= 960;
    for (const place of drawn) {
      if (place.offsetParent === null) continue;
      const figure = figures[place.dataset.figure];
      const height = tall ? heightLeft(place) : heightOf(figure);
      place.style.height = tall ? `${height}px` : "";
      if (!place.data) continue;  // a picture, or not drawn yet
      await Plotly.relayout(place, { autosize: true, width: null, height });
    }
  }

  // As on paper, to measure it: the rules for paper hold, and a line is as long as on A4.
  function onPaper() {
    const rules = [...document.styleSheets[0].cssRules].filter((rule) => rule.media);
    const own = rules.find((rule) => rule.media.mediaText === "print");
    const style = document.createElement("style");
    const told = [...own.cssRules].filter((rule) => rule.selectorText).map((rule) => rule.cssText);
    style.textContent = `${told.join("\n")} main { width: ${PAPER.wide}px; }`;
    document.head.append(style);
    return style;
  }

  // On A4, laid out beside the text: three fifths of the line, less the gap. A figure gives way
  // to what stands below it, so that a slide is a page.
  async function forPrint() {
    const style = onPaper();
    const heights = drawn.map((place) => {
      place.style.height = `${PAPER.figure}px`;
      const over = place.closest(".slide").offsetHeight - PAPER.high;
      return Math.max(PAPER.figure - Math.max(Math.ceil(over), 0), PAPER.least);
    });
    style.remove();
    for (const [i, place] of drawn.entries()) {
      place.style.height = `${heights[i]}px`;
      if (!place.data) continue;
      const size = { width: PAPER.drawn, height: heights[i], autosize: false };
      await Plotly.relayout(place, size);
    }
  }

  async function pictures(width, height, scale) {
    const found = {};
    for (const place of drawn) {
      const figure = figures[place.dataset.figure];
      try {
        found[place.dataset.figure] = await pictureOf(figure, width, height, scale);
      } catch {
        // the slide is written without it
      }
    }
    return found;
  }

  let at = 0;
  let begun = 0;
  let beside = null;
  let staying = false;

  function show(n) {
    at = Math.min(Math.max(n, 0), slides.length - 1);
    slides.forEach((slide, i) => slide.classList.toggle("now", i === at));
    one("place").textContent = `${at + 1} of ${slides.length}`;
    slides[at].querySelector("h1, h2").focus({ preventScroll: true });
    scrollTo(0, 0);
    if (window.Plotly) fit();
    tell();
  }

  // The slide that is seen is the page: its heading counts as the first.
  function level() {
    for (const heading of document.querySelectorAll(".slide h2")) {
      if (isPresenting()) heading.setAttribute("aria-level", "1");
      else heading.removeAttribute("aria-level");
    }
  }

  function present() {
    if (isPresenting()) return;
    document.body.classList.add("presenting");
    begun = begun || Date.now();
    level();
    show(at);
    tick();
  }

  function leave() {
    if (!isPresenting()) return;
    document.body.classList.remove("presenting");
    // Loaded anew, it would be presented again.
    if (location.hash === "#present") history.replaceState(null, "", location.href.split("#")[0]);
    level();
    if (document.fullscreenElement) document.exitFullscreen();
    if (window.Plotly) fit();
    slides[at].querySelector("h1, h2").focus();
  }

  // Left by its own button or key, the full screen is left alone: by Escape, the presentation too.
  async function wide() {
    present();
    staying = document.fullscreenElement !== null;
    if (staying) await document.exitFullscreen();
    else await document.documentElement.requestFullscreen();
  }

  function tick() {
    const gone = Math.floor((Date.now() - begun) / 1000);
    const told = `${Math.floor(gone / 60)}:${String(gone % 60).padStart(2, "0")}`;
    one("clock").textContent = told;
    if (beside && !beside.closed) beside.document.getElementById("gone").textContent = told;
  }

  function headingOf(slide) {
    return slide ? slide.querySelector("h1, h2").textContent : "the end";
  }

  function tell() {
    if (!beside || beside.closed) return;
    const page = beside.document;
    page.getElementById("slide").textContent = headingOf(slides[at]);
    page.getElementById("text").textContent = slides[at].dataset.notes || "No notes.";
    page.getElementById("after").textContent = `Next: ${headingOf(slides[at + 1])}`;
  }

  function notes() {
    if (beside && !beside.closed) return beside.focus();
    beside = window.open("", "", "popup,width=560,height=640");
    if (!beside) {
      one("place").textContent = "The browser kept the window with the notes from opening.";
      return;
    }
    const page = beside.document;
    page.title = "Notes";
    page.documentElement.lang = "en";
    page.body.style.cssText = "font:1.25rem/1.5 system-ui,sans-serif;margin:1.2rem";
    for (const [kind, id] of [["p", "gone"], ["h1", "slide"], ["p", "text"], ["p", "after"]]) {
      const part = page.createElement(kind);
      part.id = id;
      page.body.append(part);
    }
    page.getElementById("text").style.whiteSpace = "pre-wrap";
    page.getElementById("after").style.color = "#555b64";
    beside.addEventListener("keydown", key);
    tell();
    tick();
  }

  function openLive() {
    const link = slides[at].querySelector(".live a");
    if (link) link.click();
  }

  const STEPS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };

  // What a slide hides below the window, or behind the bar, in pixels.
  function hidden() {
    const bottoms = [...slides[at].children].map((part) => part.getBoundingClientRect().bottom);
    return Math.max(...bottoms) - (innerHeight - document.querySelector(".bar").offsetHeight);
  }

  // A slide that is longer than the window is read to its end before the next one comes.
  function turn(step) {
    const page = innerHeight - document.querySelector(".bar").offsetHeight;
    const left = step > 0 ? hidden() : scrollY;
    if (left <= 4) return false;
    scrollBy(0, step * Math.min(page * 0.85, left + 8));
    return true;
  }

  // Within a table that is wider than the window, arrows move the table as long as they can.
  function isMoved(event) {
    const wide = event.target instanceof Element ? event.target.closest(".wide") : null;
    if (!wide || !event.key.startsWith("Arrow")) return false;
    const across = ["ArrowLeft", "ArrowRight"].includes(event.key);
    return across ? wide.scrollWidth > wide.clientWidth : wide.scrollHeight > wide.clientHeight;
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const presenting = isPresenting();
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (presenting && isMoved(event)) return;
    if (presenting && event.key.startsWith("Page") && turn(STEPS[event.key])) {
      event.preventDefault();
      return;
    }
    if (presenting && event.key in STEPS) show(at + STEPS[event.key]);
    else if (presenting && name === "Home") show(0);
    else if (presenting && name === "End") show(slides.length - 1);
    else if (presenting && name === "Escape") leave();
    else if (name === "f") wide();
    else if (name === "p") present();
    else if (presenting && name === "n") notes();
    else if (presenting && name === "o") openLive();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", key);
  document.addEventListener("fullscreenchange", () => {
    one("fill").setAttribute("aria-pressed", String(document.fullscreenElement !== null));
    if (!document.fullscreenElement && !staying) leave();
    else if (window.Plotly) fit();
  });
  addEventListener("resize", () => window.Plotly && fit());
  addEventListener("beforeprint", () => window.Plotly && forPrint());
  addEventListener("afterprint", () => window.Plotly && fit());
  one("present").addEventListener("click", present);
  for (const name of ["wide", "fill"]) {
    one(name).addEventListener("click", wide);
    one(name).hidden = !document.fullscreenEnabled;
  }
  one("back").addEventListener("click", () => show(at - 1));
  one("next").addEventListener("click", () => show(at + 1));
  one("notes").addEventListener("click", notes);
  one("leave").addEventListener("click", leave);
  setInterval(() => begun && tick(), 1000);
  if (location.hash === "#present") {
    present();
    // The browser looks for the place that the address names, and takes the focus along.
    addEventListener("load", () => isPresenting() && show(at));
  }
  window.leakscope = { ready: draw(), forPrint, pictures };
})();
