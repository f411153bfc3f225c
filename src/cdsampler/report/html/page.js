"use strict";
// Draws the fronts from the JSON in the page, and answers to the buttons. No library, no network.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const hidden = new Set();
  const bandsButton = document.getElementById("bands");
  const hasBands = () => bandsButton.getAttribute("aria-pressed") === "true";
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

  // As many round values as fit: decades, or else the coarsest of finer steps that gives three marks.
  const ticks = (low, high) => {
    const within = (steps, every) => {
      const found = [];
      for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k += 1) {
        if (k % every) continue;
        for (const step of steps) {
          const value = Number(`${step}e${k}`);
          if (value >= low && value <= high) found.push(value);
        }
      }
      return found;
    };
    const decades = within([1], Math.max(1, Math.ceil(Math.log10(high / low) / 5)));
    const finer = [[1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]];
    return [decades, ...finer.map((steps) => within(steps, 1))].find((values) => values.length >= 3) || decades;
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

  // The values of a step function, [[first place, value], …], at all places of the grid.
  const unfold = (steps, n) => {
    const values = new Array(n).fill(null);
    for (const [first, value] of steps) values.fill(value, first);
    return values;
  };

  const band = ([least, greatest, n], series, x, y) => {
    const low = unfold(series.low, n), high = unfold(series.high, n);
    const grid = low.map((_, i) => least * (greatest / least) ** (i / (n - 1)));
    const there = grid.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null);
    if (there.length < 2) return "";
    const edge = (values, order) => order.map((i) => `${x(grid[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`).join("L");
    return `M${edge(low, there)}L${edge(high, [...there].reverse())}z`;
  };

  const curve = (series, x, y) => {
    const front = series.points.filter((p) => p[8]).sort((a, b) => a[0] - b[0]);
    if (!front.length) return "";
    return front.map((p, i) => (i ? `H${x(p[0])}V${y(p[1])}` : `M${x(p[0])} ${y(p[1])}`)).join("") + `H${W - RIGHT}`;
  };

  // What is known of a point, for eyes and for screen readers: its sampler, then lines.
  const words = ({ p, look }) => {
    const [cost, drawn, error, ratio, configuration, budget, n, of] = p;
    const isRaised = drawn > error;
    return [look.label, data.configurations[configuration],
      `budget ${short(budget)}: ${short(cost)} evaluations per sample`,
      `error ${short(error)}` + (ratio === null ? "" : `, ${short(ratio)} × the floor`) + (isRaised ? " (drawn at the floor)" : ""),
      `mean of ${n} of ${of} repeats`];
  };

  const curveOf = (series, panel, svg, x, y) => {
    const look = data.samplers[series.sampler];
    const group = make("g", { class: "sampler", "data-label": look.label }, svg);
    make("path", { class: "band", d: band(panel.grid, series, x, y), style: `fill:${look.colour}` }, group);
    const style = `fill:none;stroke:${look.colour};stroke-width:1.8`;
    make("path", { d: curve(series, x, y), style, "stroke-dasharray": look.dashes.join(" ") }, group);
    return [...series.points].sort((a, b) => a[0] - b[0]).map((p) => {
      const place = [x(p[0]), y(p[1])];
      const d = marker(look.marker, ...place, p[8] ? 3.4 : 2);
      const spot = { place, p, look };
      spot.mark = make("path", { class: "spot", d, opacity: p[8] ? 1 : 0.4, style: `fill:${look.colour}` }, group);
      spot.mark.setAttribute("role", "img");
      spot.mark.setAttribute("tabindex", "-1");
      spot.mark.setAttribute("aria-label", words(spot).join("; "));
      return spot;
    });
  };

  const draw = (panel) => {
    // Axes fit what is shown, so that hiding a bad sampler tells good ones apart.
    const shown = panel.series.filter((s) => !hidden.has(data.samplers[s.sampler].label));
    const points = shown.flatMap((s) => s.points);
    const bands = hasBands() ? shown.flatMap((s) => [...s.low, ...s.high]).map(([, v]) => v).filter((v) => v !== null) : [];
    const floors = panel.floor ? [panel.floor] : [];
    if (!points.length) return make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Nothing is shown" });
    const xs = limits(points.map((p) => p[0]), 0.04);
    const ys = limits([...points.map((p) => p[1]), ...bands, ...floors], 0.06);
    const x = scale(...xs, LEFT, W - RIGHT), y = scale(...ys, H - BOTTOM, TOP);
    const names = shown.map((s) => data.samplers[s.sampler].label).join(", ");
    const about = `Error (${panel.metric}) on ${panel.task} against evaluations per sample, of ${names}. ` +
      "Arrow keys: left and right along a sampler's points, up and down to another sampler.";
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": about });
    axes(svg, panel, x, y, xs, ys);
    // The best sampler comes first, and is drawn last: nothing hides it.
    const rows = [...shown].reverse().map((series) => curveOf(series, panel, svg, x, y)).reverse();
    hover(svg, rows.flat());
    walk(svg, rows.filter((row) => row.length));
    return svg;
  };

  const light = (label) => {
    for (const group of document.querySelectorAll("g.sampler")) {
      group.classList.toggle("dim", label !== null && group.dataset.label !== label);
      group.classList.toggle("lit", label !== null && group.dataset.label === label);
    }
  };

  const tell = (spot, x, y) => {
    const [name, ...lines] = words(spot);
    const title = document.createElement("b");
    title.textContent = name;
    tip.replaceChildren(title, ...lines.map((line) => {
      const span = document.createElement("span");
      span.textContent = line;
      return span;
    }));
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 14, window.innerHeight - tip.offsetHeight - 8))}px`;
  };

  const hover = (svg, spots) => {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const at = [(event.clientX - box.left) * W / box.width, (event.clientY - box.top) * H / box.height];
      const away = (s) => Math.hypot(s.place[0] - at[0], s.place[1] - at[1]);
      const near = spots.filter((s) => away(s) < 14).sort((a, b) => away(a) - away(b))[0];
      if (near) tell(near, event.clientX, event.clientY);
      else tip.hidden = true;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  };

  // One stop of the Tab key for each plot, on the point that was last in focus; arrow keys go to the others.
  const walk = (svg, rows) => {
    let row = 0, place = 0;
    const current = () => rows[row][place].mark;
    const go = (toRow, toPlace) => {
      current().setAttribute("tabindex", "-1");
      [row, place] = [toRow, toPlace];
      current().setAttribute("tabindex", "0");
      current().focus();
    };
    const nearest = (toRow) => {
      const away = (s) => Math.abs(s.place[0] - rows[row][place].place[0]);
      return rows[toRow].indexOf([...rows[toRow]].sort((a, b) => away(a) - away(b))[0]);
    };
    const steps = {
      ArrowRight: () => go(row, Math.min(place + 1, rows[row].length - 1)),
      ArrowLeft: () => go(row, Math.max(place - 1, 0)),
      ArrowDown: () => row + 1 < rows.length && go(row + 1, nearest(row + 1)),
      ArrowUp: () => row > 0 && go(row - 1, nearest(row - 1)),
      Home: () => go(row, 0),
      End: () => go(row, rows[row].length - 1),
      Escape: () => { tip.hidden = true; },
    };
    current().setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      steps[event.key]();
    });
    svg.addEventListener("focusin", (event) => {
      for (const [r, spots] of rows.entries()) {
        const p = spots.findIndex((s) => s.mark === event.target);
        if (p < 0) continue;
        current().setAttribute("tabindex", "-1");
        [row, place] = [r, p];
        current().setAttribute("tabindex", "0");
        const box = event.target.getBoundingClientRect();
        tell(spots[p], box.right, box.bottom);
        light(spots[p].look.label);
      }
    });
    svg.addEventListener("focusout", () => { tip.hidden = true; light(null); });
  };

  const show = () => {
    const panels = data.panels[document.body.dataset.accounting];
    document.body.dataset.bands = String(hasBands());
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
    reachable();
  };

  // What scrolls sideways must do so by the keyboard, too.
  const reachable = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    }
  };

  // Buttons, which the browser itself presses at Enter and Space.
  for (const chip of document.querySelectorAll(".chip")) {
    const label = chip.dataset.label;
    chip.addEventListener("click", () => {
      if (!hidden.delete(label)) hidden.add(label);
      show();
    });
    for (const event of ["pointerenter", "focus"]) chip.addEventListener(event, () => light(hidden.has(label) ? null : label));
    for (const event of ["pointerleave", "blur"]) chip.addEventListener(event, () => light(null));
  }
  for (const button of document.querySelectorAll(".every")) {
    button.addEventListener("click", () => {
      hidden.clear();
      if (button.dataset.every === "none") for (const sampler of data.samplers) hidden.add(sampler.label);
      show();
    });
  }
  for (const button of document.querySelectorAll(".switch")) {
    button.addEventListener("click", () => choose(button.dataset.switch));
  }
  bandsButton.addEventListener("click", () => {
    bandsButton.setAttribute("aria-pressed", String(!hasBands()));
    show();
  });
  for (const element of document.querySelectorAll("details")) element.addEventListener("toggle", reachable);
  window.addEventListener("resize", reachable);
  // A link may say what to show: report.html#hide=mala,nuts&accounting=returned
  const wanted = new URLSearchParams(window.location.hash.slice(1));
  for (const label of (wanted.get("hide") || "").split(",").filter(Boolean)) hidden.add(label);
  choose(wanted.get("accounting") in data.panels ? wanted.get("accounting") : document.body.dataset.accounting);
})();
