// Charts: lines with intervals, stacked bars, dots with intervals, matrices, tables.

// spec: lines [{name, hue, x, y, low, high, faint, dots}], xLabel, unit, marks [[x, label]], log, whole, alt, height
function lineChart(mount, spec) {
  const width = Math.max(mount.clientWidth, 220), height = spec.height || 240;
  const box = { left: 46, right: 14, top: 10, bottom: 36 };
  const hidden = (mount.hiddenLines ||= new Set());
  const lines = spec.lines.filter((line) => !hidden.has(line.name));
  if (!spec.lines.length) return empty(mount, "Nothing was recorded for this choice.");
  const xs = lines.flatMap((line) => line.x);
  const [x0, x1] = xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
  const [y0, y1] = extent(lines.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]), spec.log);
  const inner = width - box.left - box.right, tall = height - box.top - box.bottom;
  const px = (x) => box.left + (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5) * inner;
  const share = spec.log ? (y) => (Math.log(y) - Math.log(y0)) / (Math.log(y1) - Math.log(y0)) : (y) => (y - y0) / (y1 - y0);
  const py = (y) => box.top + (1 - share(y)) * tall;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0, "aria-label": spec.alt });
  axes(chart, { spec, box, width, height, x0, x1, y0, y1, px, py, xs });
  if (lines.filter((line) => !line.faint).length > 4) chart.classList.add("many");
  for (const line of lines) drawLine(chart, line, px, py, spec.log);
  mount.append(chart);
  follow(mount, chart, { lines, spec, px, py, box, height, x0, x1, inner });
  legend(mount, spec, hidden);
}

function axes(chart, { spec, box, width, height, x0, x1, y0, y1, px, py, xs }) {
  let rows = spec.log ? powers(y0, y1) : ticks(y0, y1, Math.round(height / 46));
  if (spec.log && rows.length < 2) rows = [y0, Math.sqrt(y0 * y1), y1];
  for (const value of rows) {
    chart.append(svg("line", { class: "gridline", x1: box.left, x2: width - box.right, y1: py(value), y2: py(value) }));
    chart.append(svg("text", { x: box.left - 7, y: py(value) + 4, "text-anchor": "end" }, format(Number(value.toPrecision(3))) + (spec.unit ? ` ${spec.unit}` : "")));
  }
  let columns = spec.whole ? [...new Set(xs)].sort((a, b) => a - b) : ticks(x0, x1, Math.max(2, width / 110));
  const every = Math.ceil(columns.length / Math.max(2, Math.floor(width / 44)));
  columns = columns.filter((_, i) => i % every === 0);
  for (const value of columns)
    chart.append(svg("text", { x: px(value), y: height - box.bottom + 17, "text-anchor": "middle" }, format(value)));
  chart.append(svg("line", { class: "axisline", x1: box.left, x2: width - box.right, y1: height - box.bottom, y2: height - box.bottom }));
  chart.append(svg("text", { x: width - box.right, y: height - 3, "text-anchor": "end" }, spec.xLabel));
  for (const [x] of spec.marks || [])
    chart.append(svg("line", { class: "mark", x1: px(x), x2: px(x), y1: box.top, y2: height - box.bottom }));
}

function drawLine(chart, line, px, py, log) {
  const ok = (v) => v !== null && v !== undefined && (!log || v > 0);
  const group = svg("g", { class: "tone", hue: line.hue });
  if (line.low) {
    const where = line.x.map((_, i) => i).filter((i) => ok(line.low[i]) && ok(line.high[i]));
    const ring = [...where.map((i) => [i, line.high[i]]), ...where.reverse().map((i) => [i, line.low[i]])];
    group.append(svg("path", { class: "band", d: ring.map(([i, v], n) => `${n ? "L" : "M"}${px(line.x[i]).toFixed(1)} ${py(v).toFixed(1)}`).join("") + (ring.length ? "Z" : "") }));
  }
  let path = "", pen = "M";
  line.x.forEach((x, i) => {
    if (!ok(line.y[i])) { pen = "M"; return; }
    path += `${pen}${px(x).toFixed(1)} ${py(line.y[i]).toFixed(1)}`;
    pen = "L";
  });
  group.append(svg("path", { class: line.faint ? "line faint" : "line", d: path }));
  if (line.dots) line.x.forEach((x, i) => ok(line.y[i]) && group.append(svg("circle", { class: "dot", cx: px(x), cy: py(line.y[i]), r: 4 })));
  chart.append(group);
}

// The pointer, or the arrow keys once the chart has the focus, read off values.
function follow(mount, chart, { lines, spec, px, py, box, height, x0, x1, inner }) {
  const stops = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const tip = tooltip(mount);
  const rule = svg("line", { class: "rule", y1: box.top, y2: height - box.bottom, visibility: "hidden" });
  chart.append(rule);
  let at = -1;
  const show = (index) => {
    at = Math.max(0, Math.min(stops.length - 1, index));
    const x = stops[at];
    const rows = [];
    for (const line of lines) {
      const i = line.faint === "quiet" ? -1 : nearest(line.x, x);
      if (i < 0 || line.y[i] === null) continue;
      const ends = line.low && line.low[i] !== null && line.low[i] !== line.high[i] ? ` [${format(line.low[i])}, ${format(line.high[i])}]` : "";
      rows.push([line.hue, line.name, format(line.y[i], spec.unit) + ends]);
    }
    rule.setAttribute("x1", px(x)); rule.setAttribute("x2", px(x)); rule.setAttribute("visibility", "visible");
    tip.show(px(x), box.top, `${spec.xLabel} ${format(Math.round(x * 10) / 10)}`, rows.slice(0, 14));
  };
  const hide = () => { tip.hide(); rule.setAttribute("visibility", "hidden"); };
  if (!stops.length) return;
  chart.addEventListener("pointermove", (event) => {
    const scale = chart.clientWidth / chart.viewBox.baseVal.width || 1;
    const x = x0 + ((event.clientX - chart.getBoundingClientRect().left) / scale - box.left) / inner * (x1 - x0);
    show(nearest(stops, x));
  });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const jump = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") show(at + jump);
    else if (event.key === "ArrowLeft") show(at < 0 ? stops.length - 1 : at - jump);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(stops.length - 1);
    else if (event.key === "Escape") return hide();
    else return;
    event.preventDefault();
  });
}
function nearest(xs, x) {
  let best = -1;
  xs.forEach((value, i) => { if (best < 0 || Math.abs(value - x) < Math.abs(xs[best] - x)) best = i; });
  return best;
}

function legend(mount, spec, hidden) {
  const named = spec.lines.filter((line) => line.name && line.faint !== "quiet");
  if (named.length < 2) return;
  mount.append(el("div", { class: "legend", role: "group", "aria-label": "Lines shown" }, named.map((line) =>
    el("button", {
      type: "button", class: "tone", hue: line.hue, "aria-pressed": String(!hidden.has(line.name)), "data-line": line.name,
      onclick() {
        hidden.has(line.name) ? hidden.delete(line.name) : hidden.add(line.name);
        draw(mount);
        [...mount.querySelectorAll("[data-line]")].find((b) => b.dataset.line === line.name).focus();
      },
    }, el("i", { class: "swatch" }), line.name))));
}

function forest(mount, items, { unit, low, high, half }) {
  const [a, b] = low === undefined ? extent(items.flatMap((item) => item.ends)) : [low, high];
  const at = (v) => `${Math.max(0, Math.min(100, (100 * (v - a)) / (b - a)))}%`;
  const place = (name, style) => { const node = el("i", { class: name }); Object.assign(node.style, style); return node; };
  const rows = items.flatMap((item) => {
    const [value, from, to] = item.ends;
    const track = el("div", { class: "track tone", hue: item.hue });
    if (half !== undefined) track.append(place("half", { left: at(half) }));
    track.append(place("range", { left: at(from), width: `calc(${at(to)} - ${at(from)})` }), place("point", { left: at(value) }));
    const spread = from === to ? (item.count > 1 ? "" : " one seed") : ` [${format(from)}, ${format(to)}]`;
    return [el("div", { class: "name" }, item.name), track, el("div", { class: "value" }, el("b", {}, format(value, unit)), spread)];
  });
  const scale = el("div", { class: "ticks" }, ticks(a, b, 4).map((v) => { const s = el("span", {}, format(v)); s.style.left = at(v); return s; }));
  mount.append(el("div", { class: "forest", role: "img", "aria-label": mount.dataset.alt }, rows, el("div", { class: "name" }), scale, el("div")));
}

drawers.stack = (mount, data) => {
  const total = (row) => row.parts.reduce((sum, v) => sum + v, 0);
  const longest = Math.max(...data.rows.map(total), 1e-9);
  const rows = data.rows.flatMap((row) => {
    const track = el("div", { class: "track" }, row.parts.map((v, i) => {
      const part = el("i", { class: "tone", hue: data.parts[i].color, title: `${data.parts[i].name}: ${duration(v)}` });
      part.style.width = `${(100 * v) / longest}%`;
      return part;
    }));
    return [el("div", { class: "name" }, row.name), track, el("div", { class: "total" }, duration(total(row)))];
  });
  mount.append(el("div", { class: "bars", role: "img", "aria-label": mount.dataset.alt }, rows));
  mount.append(el("div", { class: "legend" }, data.parts.map((part) => el("span", { class: "item tone", hue: part.color }, el("i", { class: "swatch" }), part.name))));
};

function matrix(mount, values, names, { top, label }) {
  const size = values.length, side = 40, k = Math.max(1, size / 5), left = 34 * k; // words keep their size as the matrix grows
  const chart = svg("svg", { viewBox: `0 0 ${left + side * size} ${left + side * size}`, class: "matrix map", role: "img", "aria-label": label });
  const tip = tooltip(mount);
  names.forEach((name, i) => {
    const middle = left + side * (i + 0.5), hue = DATA.colors[i % DATA.colors.length];
    const words = { "text-anchor": "middle", style: `font-size:${11.5 * k}px` };
    chart.append(svg("text", { x: middle, y: 25 * k, ...words }, name), svg("text", { x: 20 * k, y: middle + 4 * k, ...words }, name));
    chart.append(svg("g", { class: "tone", hue }, svg("circle", { class: "dot", cx: middle, cy: 8 * k, r: 4 * k }), svg("circle", { class: "dot", cx: 6 * k, cy: middle, r: 4 * k })));
  });
  values.forEach((row, i) => row.forEach((v, j) => {
    const share = top > 0 && v !== null ? v / top : 0;
    const where = { x: left + side * j, y: left + side * i, width: side, height: side, rx: 4 };
    const show = () => { const scale = chart.clientWidth / (left + side * size); tip.show(where.x * scale + chart.offsetLeft, where.y * scale, `${names[i]} and ${names[j]}`, [[null, "distance", format(v)]]); };
    chart.append(svg("rect", { ...where, class: "floor" }));
    chart.append(svg("rect", { ...where, class: "cell value", "fill-opacity": 0.06 + 0.9 * share, onpointerenter: show, onpointerleave: tip.hide }));
    if (size <= 8) chart.append(svg("text", { x: where.x + side / 2, y: where.y + side / 2 + 4, "text-anchor": "middle", style: `pointer-events:none;font-size:10.5px;fill:${share > 0.55 ? "var(--card)" : "var(--ink)"}` }, v === null ? "–" : v.toFixed(2)));
  }));
  mount.prepend(chart);
}

// Tables: sorted by the buttons in their heads.
function makeTable(header, rows, caption) {
  const head = header.map((name, i) => el("th", { scope: "col", class: i ? "number" : null }, el("button", { type: "button" }, name)));
  const body = rows.map((row) => el("tr", {}, row.map((cell, i) => el(i ? "td" : "th", { class: i ? "number" : null, scope: i ? null : "row" }, cell))));
  const table = el("table", { class: "sortable" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
}
document.addEventListener("click", (event) => {
  const head = event.target.closest(".sortable thead th");
  if (!head) return;
  const table = head.closest("table"), column = [...head.parentNode.children].indexOf(head);
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.children[column].textContent.trim();
  const number = (words) => parseFloat(words.replaceAll(",", ""));
  const order = (a, b) => {
    const [x, y] = [number(key(a)), number(key(b))];
    return Number.isNaN(x) || Number.isNaN(y) ? key(a).localeCompare(key(b)) : x - y;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * order(a, b)));
});
