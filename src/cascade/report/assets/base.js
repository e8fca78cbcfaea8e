"use strict";
// Small helpers: elements, numbers, ticks, the tooltip. Every word of data enters the page as text, never as HTML.

const DATA = JSON.parse(document.getElementById("data").textContent);
const drawers = {};

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "hue") node.style.setProperty("--hue", value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function format(value, unit) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  let words;
  if (unit === "%") words = value.toFixed(1);
  else if (Number.isInteger(value) || size >= 1000) words = Math.round(value).toLocaleString("en");
  else if (size >= 100) words = value.toFixed(0);
  else if (size >= 0.001 || size === 0) words = String(Number(value.toPrecision(3)));
  else words = value.toExponential(1);
  return unit === "%" ? words + "\u00a0%" : words;
}
const duration = (s) => (s < 90 ? `${s < 10 ? s.toFixed(1) : s.toFixed(0)} s` : s < 5400 ? `${(s / 60).toFixed(1)} min` : `${(s / 3600).toFixed(1)} h`);

// Round numbers between low and high, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.85);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}
function powers(low, high) {
  const found = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) found.push(10 ** p);
  return found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
}
// From 0 where that costs little room, otherwise with a little air.
function extent(values, log) {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== null && v !== undefined && (!log || v > 0)) { if (v < low) low = v; if (v > high) high = v; }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (log) return low === high ? [low / 2, high * 2] : [low, high];
  if (low >= 0 && low < 0.6 * high) low = 0;
  if (low === high) { const air = Math.abs(low) * 0.1 || 1; return [low - air, high + air]; }
  const air = (high - low) * 0.06;
  return [low === 0 ? 0 : low - air, high + air];
}

// A tooltip in a plot. Screen readers hear it, so that the keyboard tells as much as the pointer.
function tooltip(mount) {
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  mount.append(tip);
  return {
    show(x, y, head, rows) {
      tip.replaceChildren(el("b", {}, head), ...rows.map(([hue, name, value]) =>
        el("div", { class: "row" }, el("span", { class: "tone", hue }, hue ? el("i", { class: "swatch" }) : null, name), el("b", {}, value))));
      tip.hidden = false;
      const room = mount.clientWidth - tip.offsetWidth;
      tip.style.left = Math.max(0, Math.min(room, x + 14 > room ? x - tip.offsetWidth - 14 : x + 14)) + "px";
      tip.style.top = Math.max(0, y) + "px";
    },
    hide() { tip.hidden = true; },
  };
}
const empty = (mount, words) => mount.append(el("p", { class: "empty" }, words));
