// The page: what each figure draws, who follows which controls, views, theme.

drawers.metric = (mount, data) => {
  const seeds = data.seeds.map((seed, i) => ({ name: `seed ${seed}`, hue: data.color, x: data.deployments, y: data.values[i], faint: "quiet" }));
  const mean = { name: data.seeds.length > 1 ? "mean" : `seed ${data.seeds[0]}`, hue: data.color, x: data.deployments, y: data.mean, low: data.low, high: data.high, dots: true };
  lineChart(mount, { lines: [...(data.seeds.length > 1 ? seeds : []), mean], xLabel: "deployment", unit: data.unit, whole: true, height: 200, alt: mount.dataset.alt });
};

drawers.curves = (mount, data, choice) => {
  const found = data.curves[choice.value], lines = [];
  for (const [seed, curve] of Object.entries(found)) {
    if (choice.seed !== "all" && choice.seed !== seed) continue;
    const order = lines.length;
    if (choice.seed === "all") {
      const mean = curve.x.map((_, i) => curve.y.reduce((sum, line) => sum + line[i], 0) / curve.y.length);
      lines.push({ name: `seed ${seed}`, hue: hueOf(order), x: curve.x, y: mean });
    } else curve.y.forEach((y, p) => lines.push({ name: curve.y.length > 1 ? `explorer ${p + 1}` : `seed ${seed}`, hue: hueOf(p), x: curve.x, y }));
  }
  lineChart(mount, { lines, xLabel: "step", marks: data.starts.slice(1).map(([, x]) => [x]), log: choice.log === "on", height: 300, alt: `${mount.dataset.alt} Shown: ${choice.value}.` });
};

drawers.sets = (mount, data, choice) => {
  const found = data.sets[choice.set], y = found[choice.value] || [];
  const several = Array.isArray(y[0]);
  const lines = several ? y[0].map((_, i) => ({ name: `line ${i + 1}`, hue: hueOf(i), x: found.x, y: y.map((row) => row[i]) })) : y.length ? [{ name: choice.value, hue: hueOf(0), x: found.x, y }] : [];
  lineChart(mount, { lines, xLabel: "step", height: 220, alt: mount.dataset.alt });
};

const metricOf = (data, choice) => (data.metrics || DATA.figures[data.link].metrics)[Number(choice.metric)];
drawers["compare-curves"] = (mount, data, choice) => {
  const metric = metricOf(data, choice), part = (i) => (g) => g.iqm.map((ends) => ends && ends[i]);
  lineChart(mount, {
    lines: metric.groups.map((g) => ({ name: g.name, hue: g.color, x: g.deployments, y: part(0)(g), low: part(1)(g), high: part(2)(g), dots: true })),
    xLabel: "deployment", unit: metric.unit, whole: true, height: 340, alt: `${metric.label}. ${mount.dataset.alt}`,
  });
  mount.append(el("p", { class: "says" }, metric.says + (metric.lower ? " Lower is better." : "")));
};
drawers["compare-iqm"] = (mount, data, choice) => {
  const metric = metricOf(data, choice);
  forest(mount, metric.groups.map((g) => ({ name: g.name, hue: g.color, ends: g.final, count: g.seeds.length })), { unit: metric.unit });
  mount.append(el("p", { class: "says" }, `${metric.label} after deployment ${metric.deployment}`));
};
drawers["compare-improvement"] = (mount, data, choice) => {
  const metric = metricOf(data, choice), color = Object.fromEntries(metric.groups.map((g) => [g.name, g.color]));
  forest(mount, metric.pairs.map((p) => ({ name: `${p.first} over ${p.second}`, hue: color[p.first], ends: p.improvement, count: 2 })), { unit: "%", low: 0, high: 100, half: 50 });
  if (metric.lower) mount.append(el("p", { class: "says" }, "Lower is better here: below 50 % the first of a pair is the better one."));
};
drawers.tests = (mount, data, choice) => {
  const metric = metricOf(data, choice);
  const rows = metric.pairs.map((p) => [
    `${p.first} – ${p.second}`, p.difference ? format(p.difference[0]) + (metric.unit ? " points" : "") : "–",
    p.difference && p.shared > 1 ? `${format(p.difference[1])} to ${format(p.difference[2])}` : "–", String(p.shared), format(p.u), p.p < 0.001 ? "< 0.001" : format(p.p),
  ]);
  mount.append(makeTable(["pair", "mean difference", "95 % interval", "shared seeds", "U", "p"], rows, `${metric.label}, after deployment ${metric.deployment}`));
};
drawers.seeds = (mount, data, choice) => {
  const metric = metricOf(data, choice);
  const seeds = [...new Set(metric.groups.flatMap((g) => g.seeds.map(([seed]) => seed)))].sort((a, b) => a - b);
  const rows = seeds.map((seed) => [String(seed), ...metric.groups.map((g) => { const found = g.seeds.find(([s]) => s === seed); return found ? format(found[1], metric.unit) : "–"; })]);
  mount.append(makeTable(["seed", ...metric.groups.map((g) => g.name)], rows, `${metric.label}, after deployment ${metric.deployment}`));
};

// A plot follows the controls in its own figure, or those it is linked to.
function choiceOf(mount, data) {
  const own = mount.closest("figure")?.querySelector("form.controls");
  const form = own || document.querySelector(`form[data-link="${data.link || mount.dataset.key}"]`);
  return form ? Object.fromEntries([...form.elements].filter((f) => f.name && (f.type !== "checkbox" || f.checked)).map((f) => [f.name, f.value])) : {};
}
function draw(mount) {
  const data = DATA.figures[mount.dataset.key], turn = (mount.turn = (mount.turn || 0) + 1);
  const tall = mount.offsetHeight;
  mount.style.minHeight = `${tall}px`; // nothing jumps while a figure is redrawn
  mount.replaceChildren();
  mount.drawnWidth = mount.clientWidth;
  const done = () => { if (mount.turn === turn) { mount.style.minHeight = ""; mount.dataset.drawn = ""; } };
  const result = drawers[mount.dataset.kind](mount, data, choiceOf(mount, data), () => mount.turn === turn);
  result ? result.then(done) : done();
}
const plots = (root) => [...root.querySelectorAll(".plot")].filter((mount) => mount.offsetParent !== null);

document.addEventListener("change", (event) => {
  const form = event.target.closest("form.controls");
  if (!form) return;
  if (event.target.name === "view") { location.hash = event.target.value; return; }
  const figure = form.closest("figure");
  const followers = figure ? plots(figure) : plots(document).filter((m) => (DATA.figures[m.dataset.key].link || m.dataset.key) === form.dataset.link);
  followers.forEach(draw);
});
document.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("input", (event) => {
  if (!event.target.matches(".filter")) return;
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const row of event.target.closest("details").querySelectorAll("tbody tr"))
    row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
});

// One view at a time; its name is the address, so that a link leads to it.
function showView() {
  const views = [...document.querySelectorAll(".view")], target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const view = (target && target.closest(".view")) || (target ? null : views[0]);
  if (!view) return;
  for (const other of views) other.hidden = other !== view;
  const choice = document.querySelector("select[name=view]");
  if (choice) choice.value = view.id;
  plots(view).filter((mount) => mount.drawnWidth !== mount.clientWidth).forEach(draw);
  if (target && target !== view) target.scrollIntoView();
  else if (location.hash) scrollTo(0, 0);
}
addEventListener("hashchange", showView);
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => plots(document).filter((mount) => mount.drawnWidth !== mount.clientWidth).forEach(draw), 120);
});

const root = document.documentElement, button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
const remembered = (() => { try { return localStorage.getItem("cascade-theme"); } catch { return null; } })();
function setTheme(theme) {
  if (theme) root.dataset.theme = theme;
  const dark = (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  button.setAttribute("aria-pressed", String(dark));
  button.textContent = dark ? "Light page" : "Dark page";
}
button.addEventListener("click", () => {
  const theme = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
  setTheme(theme);
  try { localStorage.setItem("cascade-theme", theme); } catch { /* a page opened from a file may not remember */ }
});
system.addEventListener("change", () => setTheme());
setTheme(remembered);
showView();
