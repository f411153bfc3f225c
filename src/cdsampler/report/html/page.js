"use strict";
// Draws the fronts from the JSON in the page, and answers to the buttons. No library, no network.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const hidden = new Set();
  const W = 400, H = 270, LEFT = 52, RIGHT = 36, TOP = 26, BOTTOM = 40;

  const make = (name, attributes, parent, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };

  const short = (x) => {
    if (x === null) return "–";
    const size = Math.abs(x);
    if (size >= 1e6 || (size < 1e-3 && size > 0)) return x.toExponential(1).replace(".0e", "e").replace("e+", "e");
    return Number(x.toPrecision(3)).toLocaleString("en");
  };

  const ticks = (low, high) => {
    const decades = Math.log10(high / low);
    const steps = decades < 1.2 ? [1, 2, 3, 5, 7] : decades < 2.5 ? [1, 3] : [1];
    const every = Math.max(1, Math.ceil(decades / 5));
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k += 1) {
      if (steps.length === 1 && k % every) continue;
      for (const step of steps) {
        const value = Number(`${step}e${k}`);
        if (value >= low && value <= high) found.push(value);
      }
    }
    return found;
  };

  const scale = (low, high, start, end) => {
    const span = Math.log(high / low);
    return (value) => start + (end - start) * Math.log(value / low) / span;
  };

  const limits = (values, share) => {
    const low = Math.min(...values), high = Math.max(...values);
    const margin = high > low ? (high / low) ** share : 1.5;
    return [low / margin, high * margin];
  };

  const marker = (kind, x, y, size) => {
    const r = size;
    if (kind === "s") return `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
    if (kind === "^") return `M${x} ${y - 1.2 * r}L${x + 1.15 * r} ${y + r}H${x - 1.15 * r}z`;
    if (kind === "D") return `M${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}L${x - 1.3 * r} ${y}z`;
    return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  };

  const axes = (svg, panel, x, y, xs, ys) => {
    make("text", { class: "title", x: LEFT, y: 15 }, svg, panel.metric);
    for (const value of ticks(...xs)) {
      make("path", { class: "tick", d: `M${x(value)} ${TOP}V${H - BOTTOM}` }, svg);
      make("text", { x: x(value), y: H - BOTTOM + 15, "text-anchor": "middle" }, svg, short(value));
    }
    for (const value of ticks(...ys)) {
      make("path", { class: "tick", d: `M${LEFT} ${y(value)}H${W - RIGHT}` }, svg);
      make("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, svg, short(value));
    }
    make("path", { class: "axis", d: `M${LEFT} ${TOP}V${H - BOTTOM}H${W - RIGHT}` }, svg);
    make("text", { x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, svg, "evaluations per sample");
    make("text", { transform: `translate(12 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, "error");
    if (panel.floor) {
      make("path", { class: "floor", d: `M${LEFT} ${y(panel.floor)}H${W - RIGHT}` }, svg);
      make("text", { x: W - RIGHT + 4, y: y(panel.floor) + 4 }, svg, "floor");
    }
  };

  const band = (grid, series, x, y) => {
    const there = grid.map((_, i) => i).filter((i) => series.low[i] !== null && series.high[i] !== null);
    if (there.length < 2) return "";
    const edge = (values, order) => order.map((i) => `${x(grid[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`).join("L");
    return `M${edge(series.low, there)}L${edge(series.high, [...there].reverse())}z`;
  };

  const curve = (series, x, y) => {
    const front = series.points.filter((p) => p[7]).sort((a, b) => a[0] - b[0]);
    if (!front.length) return "";
    return front.map((p, i) => (i ? `H${x(p[0])}V${y(p[1])}` : `M${x(p[0])} ${y(p[1])}`)).join("") + `H${W - RIGHT}`;
  };

  const draw = (panel) => {
    // Axes fit what is shown, so that hiding a bad sampler tells good ones apart.
    const shown = panel.series.filter((s) => !hidden.has(data.samplers[s.sampler].label));
    const points = shown.flatMap((s) => s.points);
    const bands = shown.flatMap((s) => [...s.low, ...s.high]).filter((v) => v !== null);
    const floors = panel.floor ? [panel.floor] : [];
    if (!points.length) return make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Nothing is shown" });
    const xs = limits(points.map((p) => p[0]), 0.04);
    const ys = limits([...points.map((p) => p[1]), ...bands, ...floors], 0.06);
    const x = scale(...xs, LEFT, W - RIGHT), y = scale(...ys, H - BOTTOM, TOP);
    const names = shown.map((s) => data.samplers[s.sampler].label).join(", ");
    const about = `Error (${panel.metric}) on ${panel.task} against evaluations per sample, of ${names}`;
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": about });
    axes(svg, panel, x, y, xs, ys);
    const spots = [];
    for (const series of shown) {
      const look = data.samplers[series.sampler];
      const group = make("g", { class: "sampler", "data-label": look.label }, svg);
      make("path", { d: band(panel.grid, series, x, y), style: `fill:${look.colour}`, opacity: 0.15 }, group);
      const dashes = look.dashes.join(" ");
      const style = `fill:none;stroke:${look.colour};stroke-width:1.8`;
      make("path", { d: curve(series, x, y), style, "stroke-dasharray": dashes }, group);
      for (const p of series.points) {
        const place = [x(p[0]), y(p[1])];
        const shape = marker(look.marker, ...place, p[7] ? 3.4 : 2);
        make("path", { d: shape, opacity: p[7] ? 1 : 0.4, style: `fill:${look.colour}` }, group);
        spots.push({ place, p, look });
      }
    }
    hover(svg, spots);
    return svg;
  };

  const hover = (svg, spots) => {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const at = [(event.clientX - box.left) * W / box.width, (event.clientY - box.top) * H / box.height];
      const away = (s) => Math.hypot(s.place[0] - at[0], s.place[1] - at[1]);
      const near = spots.filter((s) => away(s) < 14).sort((a, b) => away(a) - away(b))[0];
      tip.hidden = !near;
      if (!near) return;
      const [cost, error, ratio, configuration, budget, n, of] = near.p;
      const lines = [data.configurations[configuration], `budget ${short(budget)}: ${short(cost)} evaluations per sample`,
        `error ${short(error)}` + (ratio === null ? "" : `, ${short(ratio)} × the floor`),
        `mean of ${n} of ${of} repeats`];
      const title = document.createElement("b");
      title.textContent = near.look.label;
      tip.replaceChildren(title, ...lines.map((line) => {
        const span = document.createElement("span");
        span.textContent = line;
        return span;
      }));
      tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  };

  const show = () => {
    const panels = data.panels[document.body.dataset.accounting];
    for (const place of document.querySelectorAll(".plots")) {
      place.replaceChildren(...panels.filter((p) => p.task === place.dataset.task).map(draw));
    }
    for (const chip of document.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", String(!hidden.has(chip.dataset.label)));
    }
  };

  const choose = (accounting) => {
    if (!(accounting in data.panels)) return;
    document.body.dataset.accounting = accounting;
    for (const button of document.querySelectorAll(".switch")) {
      button.setAttribute("aria-pressed", String(button.dataset.switch === accounting));
    }
    show();
  };

  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const label = chip.dataset.label;
      if (!hidden.delete(label)) hidden.add(label);
      show();
    });
  }
  for (const button of document.querySelectorAll(".switch")) {
    button.addEventListener("click", () => choose(button.dataset.switch));
  }
  // A link may say what to show: report.html#hide=mala,nuts&accounting=returned
  const wanted = new URLSearchParams(window.location.hash.slice(1));
  for (const label of (wanted.get("hide") || "").split(",").filter(Boolean)) hidden.add(label);
  choose(wanted.get("accounting") in data.panels ? wanted.get("accounting") : document.body.dataset.accounting);
})();
