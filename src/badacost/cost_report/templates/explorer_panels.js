// The panels of the page: each shows the state and the figures as they are.

// The matrix of prices, counts and sums

const matrix = { counts: [], totals: [], answers: [] };

const headCells = () => [make("th", { className: "axis" }, "truth ↓", make("span", {}, "answer →")),
  ...labels.map(label => make("th", { scope: "col" }, labelNode(label)))];

function buildMatrix() {
  const asking = make("th", { scope: "col", className: "ask" }, ASK_NAME);
  const body = labels.map((label, i) => {
    const cells = labels.map((_, j) => {
      const id = `price-${i}-${j}`, small = make("small");
      const error = make("span", { className: "error", id: `${id}-error` });
      const input = make("input", { type: "text", id, inputMode: "decimal", autocomplete: "off", spellcheck: false,
        tabIndex: -1, "aria-label": plainName(i, j), "aria-describedby": error.id });
      inputs.push(input);
      matrix.counts.push(small);
      return make("td", { className: i === j ? "right" : "" }, input, small, error);
    });
    const asked = make("small"), total = totalCell();
    matrix.answers.push(asked);
    matrix.totals.push(total);
    return make("tr", {}, make("th", { scope: "row" }, labelNode(label)), ...cells,
      make("td", { className: "ask" }, make("span", { className: "plain" }), asked), total);
  });
  matrix.sums = Array.from({ length: K + 2 }, totalCell);
  matrix.sums[ASK].classList.add("ask");
  const foot = make("tr", {}, make("th", { scope: "row" }, "all"), ...matrix.sums);
  byId("matrix").append(make("table", { className: "grid" },
    make("thead", {}, make("tr", {}, ...headCells(), asking, make("th", { scope: "col" }, "all"))),
    make("tbody", {}, ...body, foot)));
}

function showMatrix() {
  const { counts } = figures, sums = new Float64Array(K * (K + 1));
  for (let i = 0; i < K; i++)
    for (let d = 0; d <= K; d++) {
      const cell = i * (K + 1) + d;
      sums[cell] = counts[cell] && counts[cell] * priceOf(state, i, d);
    }
  const largest = Math.max(...sums) || 1, columns = new Float64Array(K + 1);
  const columnCounts = new Float64Array(K + 1);
  const fill = (small, count, sum) => {
    write(small, count ? `× ${countText(count)} = ${number(sum)}` : "× 0");
    small.classList.toggle("none", !count);
    small.parentElement.style.setProperty("--heat", String(Number((sum / largest).toFixed(3))));
  };
  const asks = state.ask !== null;
  for (const node of document.querySelectorAll("#matrix .ask")) node.hidden = !asks;
  for (let i = 0; i < K; i++) {
    let count = 0, sum = 0;
    for (let d = 0; d <= K; d++) {
      const cell = i * (K + 1) + d;
      count += counts[cell]; sum += sums[cell];
      columns[d] += sums[cell]; columnCounts[d] += counts[cell];
      if (d < K) fill(matrix.counts[i * K + d], counts[cell], sums[cell]);
    }
    if (asks) {
      fill(matrix.answers[i], counts[i * (K + 1) + ASK], sums[i * (K + 1) + ASK]);
      write(matrix.answers[i].previousSibling, number(state.ask));
    }
    showTotal(matrix.totals[i], count, sum);
  }
  for (let d = 0; d <= K; d++) showTotal(matrix.sums[d], columnCounts[d], columns[d]);
  showTotal(matrix.sums[K + 1], totalWeight, figures.headline * totalWeight);
  write(byId("asked"), asks ? `Now ${percent(columnCounts[ASK] / totalWeight)} of the decisions.` : "");
}

const totalCell = () => make("td", { className: "total" }, make("b"), make("small", { className: "none" }));

function showTotal(cell, count, sum) {
  write(cell.firstChild, number(sum));
  write(cell.lastChild, `${countText(count)} ${truth ? count === 1 ? "row" : "rows" : "expected"}`);
}

function select(i, j) {
  const [oldI, oldJ] = selected;
  const old = inputs[oldI * K + oldJ], chosen = inputs[i * K + j];
  old.tabIndex = -1;
  old.parentElement.classList.remove("selected");
  chosen.tabIndex = 0;
  chosen.parentElement.classList.add("selected");
  selected = [i, j];
  probe = null;
  byId("selected").replaceChildren(...cellName(i, j));
  byId("curve-lead").replaceChildren(...cellName(i, j), `, all others as they are.`);
  showPrices();
  showCurve();
  markLimits();
}

// The ways to decide

/* How much more one average is than another, in per cent. */
function against(value, base) {
  if (Math.abs(value - base) <= TIE * base) return "the same";
  return base ? signed(percent((value - base) / base)) : "";
}

function showWays() {
  const values = figures.ways.map(way => way.value), largest = Math.max(...values), least = Math.min(...values);
  const rows = figures.ways.map(way => {
    const bar = make("i");
    bar.style.width = `${largest ? 100 * way.value / largest : 0}%`;
    const cheapest = way.value === least && way.value < figures.headline ? ", cheapest" : "";
    const remark = way.now ? "these decisions" : against(way.value, figures.headline) + cheapest;
    const figure = make("td", { className: "number" }, withUnit(rate(way.value, largest)), make("small", {}, remark));
    figure.dataset.way = way.id;
    figure.dataset.value = way.value;
    const name = make("td", {}, ...way.name, make("span", { className: "track" }, bar));
    return make("tr", { className: way.now ? "now" : "" }, name, figure);
  });
  byId("ways-table").replaceChildren(make("table", {}, make("tbody", {}, ...rows)));
}

function showHeadline() {
  const { headline } = figures, fitted = averageOf(fittedCounts, state), largest = Math.max(headline, fitted);
  byId("headline").dataset.value = headline;
  write(byId("headline"), withUnit(rate(headline, largest)));
  const share = against(headline, fitted);
  write(byId("difference"), share === "the same" ? "the same as the model as fitted"
    : `${signed(rate(headline - fitted, largest))}${share && ` (${share})`} against the model as fitted`);
}

// How far prices can move

const limitCells = [];

function buildLimits() {
  const body = labels.map((label, i) => {
    const cell = j => make("td", { className: i === j ? "right" : "", title: plainName(i, j) }, "…");
    const cells = labels.map((_, j) => cell(j));
    limitCells.push(...cells);
    return make("tr", {}, make("th", { scope: "row" }, labelNode(label)), ...cells);
  });
  byId("limits-table").append(make("table", { className: "grid" },
    make("thead", {}, make("tr", {}, ...headCells())), make("tbody", {}, ...body)));
}

const chosenShare = () => Number(document.querySelector("input[name=share]:checked").value);

function showLimit(k) {
  const [low, high] = limits[k][chosenShare()], cell = limitCells[k], price = state.costs[k];
  const ends = digits => [low === null ? "0" : number(low, digits), high === null ? "∞" : number(high, digits)];
  const digits = [3, 4, 5].find(some => ends(some)[0] !== ends(some)[1]) ?? 6;
  write(cell, low === null && high === null ? "any price" : ends(digits).join(" … "));
  cell.dataset.low = low ?? "";
  cell.dataset.high = high ?? "";
  const room = Math.min(low === null ? Infinity : price - low, high === null ? Infinity : high - price);
  cell.classList.toggle("narrow", room < 0.1 * price);
  cell.classList.toggle("free", low === null && high === null);
}

function markLimits() {
  const chosen = limitCells[selected[0] * K + selected[1]];
  for (const cell of limitCells) cell.classList.toggle("selected", cell === chosen);
}

// The curve

function showCurve() {
  curve = curveOf(state, ...selected);
  drawCurve();
}

const drawn = (tag, attributes, text) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

/* Round numbers between two others, about so many. */
function ticksBetween(low, high, count) {
  const rough = (high - low) / count, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * size).find(value => value >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, k) => (first + k) * step);
}

function logTicks(low, high, room) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    for (const factor of room < 420 ? [1, 3] : [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(Number(value.toPrecision(3)));
    }
  return found;
}

/* Two plots one above the other: ranges of their values, and where they are on the drawing. */
function plotsOf({ average, changed, fitted }) {
  const highest = Math.max(...average), lowest = Math.min(...average, ...fitted);
  const ceiling = Math.max(highest, Math.min(Math.max(...fitted), 1.5 * highest)) || 1;
  const span = Math.max(ceiling - lowest, 0.3 * ceiling);
  const most = Math.min(1, Math.max(0.05, Math.max(...changed) * 1.1));
  return [
    { name: "average price", top: 22, bottom: 190, low: Math.max(0, ceiling - 1.1 * span), high: ceiling + 0.1 * span,
      text: number, ticks: 6 },
    { name: "decisions that differ from the model as fitted", top: 228, bottom: 300, low: 0, high: most,
      text: percent, ticks: 3 },
  ];
}

function drawCurve() {
  const { x, average, changed, fitted } = curve, current = state.costs[selected[0] * K + selected[1]];
  const chart = byId("chart"), width = Math.max(240, chart.clientWidth), left = 58, right = width - 12;
  const [price, share] = plotsOf(curve), within = part => Math.min(1, Math.max(0, part));
  const across = value => left + (right - left) * within(Math.log(value / x[0]) / Math.log(x.at(-1) / x[0]));
  const up = (value, { top, bottom, low, high }) => bottom - (bottom - top) * (value - low) / (high - low);
  const svg = drawn("svg", { viewBox: `0 0 ${width} 326`, "aria-hidden": "true" });
  for (const plot of [price, share]) {
    svg.append(drawn("text", { x: left, y: plot.top - 8, class: "name" }, plot.name));
    for (const value of ticksBetween(plot.low, plot.high, plot.ticks)) {
      const y = up(value, plot);
      svg.append(drawn("line", { x1: left, x2: right, y1: y, y2: y, class: "rule" }),
        drawn("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, plot.text(value)));
    }
  }
  for (const value of logTicks(x[0], x.at(-1), width))
    svg.append(drawn("text", { x: across(value), y: 318, "text-anchor": "middle" }, number(value)));
  const line = (values, plot, kind) => {
    const points = Array.from(values, (value, m) => [x[m], value]).filter(([, value]) => value <= plot.high);
    const steps = points.map(([at, value]) => `${across(at).toFixed(1)} ${up(value, plot).toFixed(1)}`);
    return drawn("path", { d: steps.length ? `M${steps.join("L")}` : "", class: kind });
  };
  const upright = (at, kind) =>
    drawn("line", { x1: across(at), x2: across(at), y1: price.top, y2: share.bottom, class: kind });
  const dot = (at, value, plot) =>
    value <= plot.high ? [drawn("circle", { cx: across(at), cy: up(value, plot), r: 5, class: "dot" })] : [];
  svg.append(line(fitted, price, "line-fitted"), line(average, price, "line-now"), line(changed, share, "line-now"),
    upright(current, "here"));
  const [at, cost, part, old] = probe === null
    ? [current, figures.headline, changedRows.length / n, averageOf(fittedCounts, state)]
    : [x[probe], average[probe], changed[probe], fitted[probe]];
  if (probe !== null) svg.append(upright(at, "probe"));
  svg.append(...dot(at, cost, price), ...dot(at, part, share));
  chart.replaceChildren(svg);
  pointAt = event => {
    const place = (event.clientX - chart.getBoundingClientRect().left - left) / (right - left);
    return Math.round((N_POINTS - 1) * within(place));
  };
  write(byId("readout"), `${probe === null ? "Now, at" : "At"} a price of ${money(at)}, a decision costs ${money(cost)} `
    + `on average; ${percent(part)} of the decisions differ from those of the model as fitted, `
    + `which would cost ${money(old)}.`);
  chart.setAttribute("aria-label", `Average price against this price, from ${money(x[0])} to ${money(x.at(-1))}. `
    + "Arrow keys read the curve.");
}

// The rows whose decision changes

function findChanges() {
  changedRows = [];
  for (let r = 0; r < n; r++) if (figures.decisions[r] !== answers[r]) changedRows.push(r);
  shownPage = Math.min(shownPage, Math.max(0, Math.ceil(changedRows.length / PAGE_LENGTH) - 1));
}

function showChanges() {
  const { decisions } = figures, count = changedRows.length;
  write(byId("changes-lead"), count
    ? `${counted(count)} of ${counted(n)} decisions (${percent(count / n)}) differ from those of the model as fitted.`
    : "At these prices, minimum expected cost decides as the model as fitted does, in every row.");
  const moves = new Map();
  for (const r of changedRows) {
    const move = answers[r] * (K + 1) + decisions[r];
    moves.set(move, (moves.get(move) ?? 0) + 1);
  }
  const largest = [...moves].sort((one, other) => other[1] - one[1]);
  byId("moves").replaceChildren(...largest.slice(0, N_MOVES).map(([move, times]) => {
    const [from, to] = [Math.floor(move / (K + 1)), move % (K + 1)].map(decision => labelNode(decisionName(decision)));
    return make("li", {}, `${counted(times)} × `, from, " → ", to);
  }));
  const from = shownPage * PAGE_LENGTH, shown = changedRows.slice(from, from + PAGE_LENGTH);
  byId("pager").hidden = count <= PAGE_LENGTH;
  write(byId("place"), `${from + 1} to ${from + shown.length} of ${counted(count)}`);
  byId("previous").disabled = shownPage === 0;
  byId("next").disabled = from + PAGE_LENGTH >= count;
  byId("changes-table").replaceChildren(...(count ? [tableOf(shown)] : []));
}

/* A table of rows: decisions and prices first, then the features. */
function tableOf(rows) {
  const text = value => make("td", {}, textNode(value));
  const charged = (r, d) => number(d === ASK ? state.ask : truth ? priceOf(state, truth[r], d) : own.expected[d][r]);
  const head = (value, kind = "") => make("th", { scope: "col", className: kind }, textNode(value));
  const body = rows.map(r => {
    const [old, now] = [answers[r], figures.decisions[r]];
    return make("tr", {}, text(data.rows[r]), ...(truth ? [text(decisionName(truth[r]))] : []), text(decisionName(old)),
      make("td", { className: "new" }, textNode(decisionName(now))),
      make("td", { className: "number" }, `${charged(r, old)} → ${charged(r, now)}`),
      ...data.features.map(feature => text(feature.cells[r])));
  });
  return make("table", {}, make("thead", {}, make("tr", {}, head("row"), ...(truth ? [head("truth")] : []),
    head("as fitted"), head("now"), head(truth ? "price" : "expected price", "number"),
    ...data.features.map(feature => head(feature.name)))), make("tbody", {}, ...body));
}
