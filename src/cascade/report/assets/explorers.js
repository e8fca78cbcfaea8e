// What the explorers did: maps, trajectories, matrices, films, imagination. All follow one row of controls.

const unpacked = new WeakMap();
// Whole numbers from compressed little-endian int16.
function unpack(packed) {
  if (!unpacked.has(packed)) {
    const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    unpacked.set(packed, new Response(stream).arrayBuffer().then((raw) => {
      const view = new DataView(raw), values = new Int16Array(raw.byteLength / 2);
      for (let i = 0; i < values.length; i++) values[i] = view.getInt16(2 * i, true);
      return { shape: packed.shape, values };
    }));
  }
  return unpacked.get(packed);
}
const hueOf = (explorer) => DATA.colors[explorer % DATA.colors.length];
const chosen = (data, choice) => DATA.figures[data.link].measures.find((m) => m.seed === Number(choice.seed) && m.deployment === Number(choice.deployment));
const pictureOf = (data, number) => DATA.figures[data.link].pictures[number];
function setChoice(data, name, value) {
  const field = document.querySelector(`form[data-link="${data.link}"]`).elements[name];
  if (!field) return;
  field.value = value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

// Visits of one explorer, or of all, on one level; null where the level does not exist.
function countsOf(visits, level, explorer) {
  const [population, levels, w, h] = visits.shape;
  if (level >= levels) return null;
  const counts = new Int32Array(w * h);
  for (let p = 0; p < population; p++)
    if (explorer === "all" || Number(explorer) === p)
      for (let i = 0; i < w * h; i++) counts[i] += visits.values[(p * levels + level) * w * h + i];
  return counts;
}
function mapOf(counts, floor, w, h, top, attributes) {
  const map = svg("svg", { viewBox: `0 0 ${w} ${h}`, "shape-rendering": "crispEdges", ...attributes });
  map.append(svg("rect", { class: floor ? "wall" : "floor", width: w, height: h }));
  for (let x = 0; x < w; x++) for (let y = 0; y < h; y++) {
    const i = x * h + y;
    if (floor && floor[i]) map.append(svg("rect", { class: "floor", x, y, width: 1, height: 1 }));
    if (counts[i]) map.append(svg("rect", { class: "cell", x, y, width: 1, height: 1, "fill-opacity": (0.16 + 0.84 * Math.log1p(counts[i]) / Math.log1p(top)).toFixed(3) }));
  }
  return map;
}

drawers.visits = async (mount, data, choice, still) => {
  const measure = chosen(data, choice);
  if (!measure || !measure.visits) return empty(mount, "No visits were recorded for this choice.");
  const visits = await unpack(measure.visits), reachable = measure.reachable && (await unpack(measure.reachable));
  if (!still()) return;
  const [population, levels, w, h] = visits.shape, level = Math.min(Number(choice.level || 0), levels - 1);
  const floor = reachable && reachable.values.subarray(level * w * h, (level + 1) * w * h);
  const explorer = choice.explorer || "all";
  const counts = countsOf(visits, level, explorer), everyone = countsOf(visits, level, "all");
  const top = Math.max(1, ...everyone);
  const map = mapOf(counts, floor, w, h, top, { class: "map", role: "img", "aria-label": mount.dataset.alt });
  mount.append(map);
  const tip = tooltip(mount);
  map.addEventListener("pointermove", (event) => {
    const box = map.getBoundingClientRect(), outer = mount.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * w), y = Math.floor(((event.clientY - box.top) / box.height) * h);
    if (x < 0 || y < 0 || x >= w || y >= h) return tip.hide();
    tip.show(event.clientX - outer.left, event.clientY - outer.top, `cell ${x}, ${y}`, [[null, "visits", format(counts[x * h + y])]]);
  });
  map.addEventListener("pointerleave", tip.hide);
  if (floor) {
    const cells = floor.reduce((sum, v) => sum + v, 0), seen = counts.reduce((sum, v, i) => sum + (v > 0 && floor[i] ? 1 : 0), 0);
    mount.append(el("p", { class: "says", "aria-live": "polite" }, `${explorer === "all" ? "All explorers" : "Explorer " + (Number(explorer) + 1)}: ${seen} of ${cells} reachable cells, ${format((100 * seen) / Math.max(cells, 1), "%")}`));
  }
  if (population < 2) return;
  mount.append(el("div", { class: "thumbs" }, ["all", ...Array(population).keys()].map((p) =>
    el("button", {
      type: "button", class: "tone", hue: p === "all" ? null : hueOf(p), "aria-pressed": String(String(p) === explorer), "data-explorer": p,
      onclick() { setChoice(data, "explorer", String(p)); },
    }, mapOf(countsOf(visits, level, p), floor, w, h, top, { "aria-hidden": "true" }), p === "all" ? "all" : el("span", {}, el("i", { class: "swatch" }), String(p + 1))))));
};

drawers.paths = async (mount, data, choice, still) => {
  const measure = chosen(data, choice);
  if (!measure || !measure.paths) return empty(mount, "No trajectories were recorded for this choice.");
  const paths = await unpack(measure.paths), reachable = measure.reachable && (await unpack(measure.reachable));
  if (!still()) return;
  const [population, levels, length] = paths.shape, level = Math.min(Number(choice.level || 0), levels - 1);
  let [w, h] = reachable ? reachable.shape.slice(1) : [1 + Math.max(...paths.values), 1 + Math.max(...paths.values)];
  const map = svg("svg", { viewBox: `0 0 ${w} ${h}`, class: "map", role: "img", "aria-label": mount.dataset.alt });
  const picture = measure.pictures && measure.pictures[level];
  if (picture !== undefined) map.append(svg("image", { href: pictureOf(data, picture), width: w, height: h, preserveAspectRatio: "none" }));
  else if (reachable) map.append(...mapOf(new Int32Array(w * h), reachable.values.subarray(level * w * h, (level + 1) * w * h), w, h, 1, {}).childNodes);
  else map.append(svg("rect", { class: "floor", width: w, height: h }));
  for (let p = 0; p < population; p++) {
    const angle = (2 * Math.PI * p) / population, apart = population > 1 ? 0.24 : 0;
    const dx = 0.5 + apart * Math.cos(angle), dy = 0.5 + apart * Math.sin(angle), points = [];
    for (let t = 0; t < length; t++) {
      const i = ((p * levels + level) * length + t) * 2;
      if (paths.values[i] >= 0) points.push([paths.values[i] + dx, paths.values[i + 1] + dy]);
    }
    if (!points.length) continue;
    const away = choice.explorer && choice.explorer !== "all" && Number(choice.explorer) !== p;
    const line = points.map((q) => q.map((v) => v.toFixed(2)).join(",")).join(" ");
    const [start, end] = [points[0], points[points.length - 1]];
    map.append(svg("g", { class: `tone${away ? " away" : ""}`, hue: hueOf(p), "data-explorer": p },
      svg("polyline", { class: "halo", points: line }), svg("polyline", { class: "path", points: line }),
      svg("circle", { class: "path", cx: start[0], cy: start[1], r: 0.36 }),
      svg("circle", { cx: end[0], cy: end[1], r: 0.3, fill: "var(--tone)" })));
  }
  mount.append(map);
  mount.append(el("div", { class: "legend" }, [...Array(population).keys()].map((p) => el("span", { class: "item tone", hue: hueOf(p) }, el("i", { class: "swatch" }), `explorer ${p + 1}`))));
};

drawers.matrix = (mount, data, choice) => {
  const measure = chosen(data, choice);
  if (!measure || !measure.distance) return empty(mount, "No distances were recorded for this choice.");
  const all = DATA.figures[data.link].measures.flatMap((m) => (m.distance || []).flat());
  const names = measure.distance.map((_, i) => String(i + 1)), top = Math.max(...all);
  const pairs = measure.distance.flatMap((row, i) => row.filter((_, j) => j > i));
  const mean = pairs.reduce((a, b) => a + b, 0) / Math.max(pairs.length, 1);
  matrix(mount, measure.distance, names, { top, label: `${mount.dataset.alt} Mean over pairs: ${format(mean)}.` });
  mount.append(el("p", { class: "says", "aria-live": "polite" }, `Mean over pairs of explorers: ${format(mean)}`));
};

drawers.films = (mount, data, choice) => {
  const measure = chosen(data, choice);
  if (!measure || !measure.films) return empty(mount, "No films were recorded for this choice.");
  const { frames, strips, size } = measure.films;
  const across = Math.max(48, Math.min(150, (mount.clientWidth - 44) / frames)); // a strip fills the width where it can
  const shown = [...strips.keys()].filter((p) => !choice.explorer || choice.explorer === "all" || Number(choice.explorer) === p);
  const screens = shown.map((p) => {
    const screen = el("div", { role: "img", "aria-label": `Explorer ${p + 1}` });
    Object.assign(screen.style, { aspectRatio: `${size[0]} / ${size[1]}`, backgroundImage: `url(${pictureOf(data, strips[p])})`, backgroundSize: `${frames * 100}% 100%` });
    return screen;
  });
  const slider = el("input", { type: "range", min: 0, max: frames - 1, value: 0, "aria-label": "Frame" });
  const words = el("output", {}), play = el("button", { type: "button" }, "Play");
  const show = () => {
    for (const screen of screens) screen.style.backgroundPosition = `${frames > 1 ? (100 * slider.value) / (frames - 1) : 0}% 0`;
    words.textContent = `${Number(slider.value) + 1} of ${frames}`;
  };
  const stop = () => { clearInterval(mount.timer); mount.timer = null; play.textContent = "Play"; };
  clearInterval(mount.timer);
  play.addEventListener("click", () => {
    if (mount.timer) return stop();
    play.textContent = "Pause";
    mount.timer = setInterval(() => { slider.value = (Number(slider.value) + 1) % frames; show(); }, 220);
  });
  slider.addEventListener("input", () => { stop(); show(); });
  show();
  mount.append(el("div", { class: "filmbar" }, play, slider, words));
  mount.append(el("div", { class: "players" }, shown.map((p, i) => el("div", { class: "player tone", hue: hueOf(p) }, screens[i], el("i", { class: "swatch" }), `explorer ${p + 1}`))));
  mount.append(el("div", { class: "strips", tabindex: 0, role: "region", "aria-label": "Filmstrips, frame by frame" }, shown.map((p) =>
    el("div", { class: "strip tone", hue: hueOf(p) }, el("b", {}, el("i", { class: "swatch" }), String(p + 1)), el("img", { src: pictureOf(data, strips[p]), style: `width:${Math.floor(across * frames)}px`, alt: `Explorer ${p + 1}: ${frames} frames from left to right` })))));
};

drawers.open_loop = (mount, data, choice) => {
  const measure = chosen(data, choice);
  if (!measure || measure.open_loop === undefined) return empty(mount, "No predictions were recorded for this choice.");
  const [w, h] = measure.open_loop_size, image = el("img", { src: pictureOf(data, measure.open_loop), alt: mount.dataset.alt, width: w, height: h });
  image.style.width = `${Math.max(w, Math.min(mount.clientWidth, w * 3))}px`;
  mount.append(el("div", { class: "strips", tabindex: 0, role: "region", "aria-label": "Open-loop predictions" }, image));
};
