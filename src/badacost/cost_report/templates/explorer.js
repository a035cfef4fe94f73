"use strict";
// Costs are C[truth, answer], row by row in one array: costs[truth * K + answer].
(() => {
const TIE = 1e-6; // of a price: probabilities have 24 bits, and what is as cheap is no change
const MAX_PRICE = 1e300;
const SPAN = 4; // the slider and the curve go from 2 ** -4 to 2 ** 4 times a price
const N_POINTS = 129;
const SHARE = 0.01;
const PAGE_LENGTH = 20;
const N_MOVES = 8;
const SLICE = 40; // milliseconds of work before the browser may draw
const ASK_NAME = "ask a person";
const CORNER = "truth \\ prediction";
const MAX_FILE = 16 * 2 ** 20;
const SVG = "http://www.w3.org/2000/svg";

const byId = id => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const { labels, n, currency } = data;
const K = labels.length;
const ASK = K;
const answers = decoded(data.answers, Uint8Array);
const truth = data.truth === null ? null : decoded(data.truth, Uint8Array);
const weights = data.weights === null ? null : decoded(data.weights, Float64Array);
const totalWeight = weights === null ? n : weights.reduce((sum, weight) => sum + weight, 0);

function decoded(text, Kind) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = binary.charCodeAt(k);
  return new Kind(bytes.buffer);
}

// ---- Decisions and what they cost ----

/* The probabilities of a model, the expected cost of each answer, and the two cheapest answers. */
class Beliefs {
  constructor(text) {
    const flat = decoded(text, Float32Array);
    this.shares = Array.from({ length: K }, (_, i) => flat.subarray(i * n, (i + 1) * n));
    this.expected = Array.from({ length: K }, () => new Float64Array(n));
    this.best = new Float64Array(n);
    this.second = new Float64Array(n);
    this.first = new Uint8Array(n);
    this.next = new Uint8Array(n);
  }

  /* Compute the expected costs of some answers anew, and rank the answers. */
  price(costs, columns) {
    for (const j of columns) {
      const expected = this.expected[j].fill(0);
      for (let i = 0; i < K; i++) {
        const price = costs[i * K + j], share = this.shares[i];
        if (price !== 0) for (let r = 0; r < n; r++) expected[r] += price * share[r];
      }
    }
    const { best, second, first, next } = this;
    best.fill(Infinity);
    second.fill(Infinity);
    for (let j = 0; j < K; j++) {
      const expected = this.expected[j];
      for (let r = 0; r < n; r++) {
        const value = expected[r];
        if (value < best[r]) {
          second[r] = best[r]; next[r] = first[r];
          best[r] = value; first[r] = j;
        } else if (value < second[r]) {
          second[r] = value; next[r] = j;
        }
      }
    }
  }

  /* Answers of minimum expected cost; where the answer in `kept` is as cheap, it stays. */
  decide(ask, kept) {
    const decisions = new Uint8Array(n), limit = ask * (1 - TIE);
    for (let r = 0; r < n; r++) {
      const low = this.best[r];
      if (low >= limit) decisions[r] = ASK;
      else if (kept && this.expected[kept[r]][r] <= low * (1 + TIE)) decisions[r] = kept[r];
      else decisions[r] = this.first[r];
    }
    return decisions;
  }

  mostLikely() {
    const decisions = new Uint8Array(n);
    for (let i = 1; i < K; i++)
      for (let r = 0; r < n; r++)
        if (this.shares[i][r] > this.shares[decisions[r]][r]) decisions[r] = i;
    return decisions;
  }
}

const own = new Beliefs(data.probabilities);
const rivals = data.rivals.map(rival => ({ name: rival.name, beliefs: new Beliefs(rival.probabilities) }));

/* Weights of rows by truth and decision, K x (K + 1); without truth those that are expected. */
function countsOf(decisions) {
  const counts = new Float64Array(K * (K + 1));
  for (let i = 0; i < (truth ? 1 : K); i++) {
    const share = own.shares[i];
    for (let r = 0; r < n; r++) {
      const weight = weights ? weights[r] : 1;
      if (truth) counts[truth[r] * (K + 1) + decisions[r]] += weight;
      else counts[i * (K + 1) + decisions[r]] += weight * share[r];
    }
  }
  return counts;
}

const priceOf = (state, i, d) => d === ASK ? state.ask : state.costs[i * K + d];

function averageOf(counts, state) {
  let sum = 0;
  for (let i = 0; i < K; i++)
    for (let d = 0; d <= K; d++) {
      const count = counts[i * (K + 1) + d];
      if (count) sum += count * priceOf(state, i, d);
    }
  return sum / totalWeight;
}

const fittedCounts = countsOf(answers);
const likelyCounts = countsOf(own.mostLikely());
for (const rival of rivals) rival.likely = countsOf(rival.beliefs.mostLikely());
const truthWeights = Array.from({ length: K }, (_, i) =>
  fittedCounts.subarray(i * (K + 1), (i + 1) * (K + 1)).reduce((sum, count) => sum + count, 0));

function bestConstant(state) {
  let best = state.ask ?? Infinity, answer = ASK;
  for (let j = 0; j < K; j++) {
    let sum = 0;
    for (let i = 0; i < K; i++) sum += truthWeights[i] * state.costs[i * K + j];
    if (sum / totalWeight < best) { best = sum / totalWeight; answer = j; }
  }
  return { answer, value: best };
}

/* Everything that is shown at once: the decisions, their counts and the averages. */
function figuresOf(state, columns) {
  const ask = state.ask ?? Infinity;
  own.price(state.costs, columns);
  const decisions = own.decide(ask, answers), counts = countsOf(decisions);
  const asks = state.ask !== null;
  const ways = [];
  if (asks) ways.push({ id: "asking", name: ["Minimum expected cost, or ask a person"], value: averageOf(counts, state), now: true });
  ways.push({
    id: "minimum", name: [asks ? "Minimum expected cost, nobody asked" : "Minimum expected cost"], now: !asks,
    value: averageOf(asks ? countsOf(own.decide(Infinity, answers)) : counts, state),
  });
  ways.push({ id: "fitted", name: ["The model as fitted"], value: averageOf(fittedCounts, state) });
  ways.push({ id: "likely", name: ["Most likely class"], value: averageOf(likelyCounts, state) });
  const constant = bestConstant(state);
  ways.push({ id: "constant", name: ["Always ", labelNode(constant.answer === ASK ? ASK_NAME : labels[constant.answer])], value: constant.value });
  for (const [number, rival] of rivals.entries()) {
    rival.beliefs.price(state.costs, columns);
    ways.push({ id: `rival-${number}-likely`, name: [labelNode(rival.name), ": most likely class"], value: averageOf(rival.likely, state) });
    ways.push({ id: `rival-${number}-minimum`, name: [labelNode(rival.name), ": minimum expected cost"], value: averageOf(countsOf(rival.beliefs.decide(Infinity, null)), state) });
  }
  return { decisions, counts, ways, headline: ways[0].value };
}

// ---- How far a price can move, and what follows if it does ----

const upward = new Float64Array(n), downward = new Float64Array(n);

/* What row r is expected to cost at best if `j` is not the answer. */
const otherCost = (r, j, ask) => Math.min(own.first[r] === j ? own.second[r] : own.best[r], ask);

/* The prices of C[i, j] between which no decision, or fewer than 1 % of them, change. */
function limitsOf(state, decisions, i, j) {
  const share = own.shares[i], expected = own.expected[j], ask = state.ask ?? Infinity;
  const price = state.costs[i * K + j], rank = Math.max(1, Math.ceil(SHARE * n));
  let ups = 0, downs = 0, up = Infinity, down = Infinity;
  for (let r = 0; r < n; r++) {
    if (share[r] === 0) continue;
    const move = (otherCost(r, j, ask) - expected[r]) / share[r];
    if (decisions[r] === j) {
      const far = Math.max(0, move);
      upward[ups++] = far;
      if (far < up) up = far;
    } else {
      const far = Math.max(0, -move);
      downward[downs++] = far;
      if (far < down) down = far;
    }
  }
  const bounds = (low, high) => [low > price ? null : price - low, high === Infinity ? null : price + high];
  return [bounds(down, up), bounds(kth(downward, downs, rank), kth(upward, ups, rank))];
}

/* The value of some rank among the first values of a buffer, which is rearranged. */
function kth(values, length, rank) {
  if (length < rank) return Infinity;
  let low = 0, high = length - 1;
  const target = rank - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1];
    let a = low, b = high;
    while (a <= b) {
      while (values[a] < pivot) a++;
      while (values[b] > pivot) b--;
      if (a <= b) { const kept = values[a]; values[a++] = values[b]; values[b--] = kept; }
    }
    if (target <= b) high = b;
    else if (target >= a) low = a;
    else break;
  }
  return values[target];
}

/* A price to measure ratios from: what the entry was at first, else one of the size of others. */
function baseOf(i, j) {
  return start.costs[i * K + j] || Math.max(...start.costs) / 2 ** SPAN || 1;
}

/* Average price and share of changed decisions against C[i, j]; each row changes at one price. */
function curveOf(state, i, j) {
  const base = baseOf(i, j), current = state.costs[i * K + j], ask = state.ask ?? Infinity;
  const x = Float64Array.from({ length: N_POINTS }, (_, m) => base * 2 ** (SPAN * (2 * m / (N_POINTS - 1) - 1)));
  // Differences along the axis: of the sum, of its part that grows with x, of the changed rows.
  const fixed = new Float64Array(N_POINTS + 1), slope = new Float64Array(N_POINTS + 1), moved = new Float64Array(N_POINTS + 1);
  const share = own.shares[i], expected = own.expected[j];
  for (let r = 0; r < n; r++) {
    const other = otherCost(r, j, ask), weight = weights ? weights[r] : 1;
    const rest = own.first[r] === j ? own.next[r] : own.first[r];
    const option = other >= ask ? ASK : rest;
    let end; // the points before it have the answer j
    if (share[r] === 0) end = expected[r] < other ? N_POINTS : 0;
    else {
      const turn = current + (other - expected[r]) / share[r];
      let low = 0, high = N_POINTS;
      while (low < high) { const middle = (low + high) >> 1; if (x[middle] < turn) low = middle + 1; else high = middle; }
      end = low;
    }
    let before, grows, after;
    if (truth) {
      grows = truth[r] === i ? weight : 0;
      before = grows ? 0 : weight * state.costs[truth[r] * K + j];
      after = weight * priceOf(state, truth[r], option);
    } else {
      grows = weight * share[r];
      before = weight * (expected[r] - current * share[r]);
      after = weight * other;
    }
    fixed[0] += before; fixed[end] += after - before;
    slope[0] += grows; slope[end] -= grows;
    const was = answers[r];
    moved[0] += was === j ? 0 : 1;
    moved[end] += (was === option ? 0 : 1) - (was === j ? 0 : 1);
  }
  const average = new Float64Array(N_POINTS), changed = new Float64Array(N_POINTS);
  for (let m = 0, sum = 0, rate = 0, count = 0; m < N_POINTS; m++) {
    sum += fixed[m]; rate += slope[m]; count += moved[m];
    average[m] = (sum + rate * x[m]) / totalWeight;
    changed[m] = count / n;
  }
  const steep = fittedCounts[i * (K + 1) + j] / totalWeight;
  const level = averageOf(fittedCounts, state) - steep * current;
  return { x, average, changed, fitted: x.map(price => level + steep * price) };
}

// ---- Numbers and names as text ----

function number(value, digits = 4) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e15 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e");
  if (size >= 10 ** (digits - 1)) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

const withUnit = text => !currency ? text : currency.length === 1
  ? text.startsWith("-") ? `−${currency}${text.slice(1)}` : currency + text : `${text} ${currency}`;
const money = value => withUnit(number(value));
const countText = value => truth && !weights ? value.toLocaleString("en") : number(value, 3);
const percent = share => `${share !== 0 && Math.abs(share) < 0.1 ? Number((100 * share).toPrecision(2)) : Math.round(100 * share)} %`;
const signed = text => text.startsWith("-") ? `−${text.slice(1)}` : `+${text}`;

/* An average, in the decimals that give the largest of all four digits. */
function rate(value, largest) {
  if (largest >= 1e15 || (largest < 1e-4 && largest > 0)) return number(value);
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(largest || 1)));
  return value.toLocaleString("en", { minimumFractionDigits: Math.min(decimals, 8), maximumFractionDigits: Math.min(decimals, 8) });
}

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name.includes("-") || name === "for" || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  node.append(...children);
  return node;
}

const labelNode = text => make("bdi", { className: "label", title: text }, text || "(no name)");
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const cellName = (i, j) => i === j
  ? ["Price of answering ", labelNode(labels[j]), " where it is true"]
  : ["Price of answering ", labelNode(labels[j]), " where ", labelNode(labels[i]), " is true"];
const plainName = (i, j) => `Price of answering ${labels[j]} where ${labels[i]} is true`;

// ---- Reading prices ----

/* The price that a text stands for, or what is wrong with it. */
function readPrice(text) {
  const typed = text.trim();
  if (!typed) return { error: "Give a price; 0 is free." };
  if (/^[-−]/.test(typed)) return { error: "A price cannot be negative." };
  if (/^\d+,\d+$/.test(typed)) return { error: "Write a decimal point, and no commas." };
  if (!/^\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(typed)) return { error: "Write a number, as 2.5." };
  const price = Number(typed);
  return price > MAX_PRICE ? { error: "Too large: at most 1e300." } : { price };
}

/* Why a whole matrix cannot be used for a fit, in a sentence; "" if it can. */
function complaintAbout(costs) {
  for (let i = 0; i < K; i++) {
    const right = costs[i * K + i], row = costs.slice(i * K, (i + 1) * K);
    const cheaper = row.findIndex(price => price < right);
    if (cheaper >= 0)
      return `Where “${labels[i]}” is true, being right costs more than the answer “${labels[cheaper]}”: lower the price on the diagonal.`;
    if (row.every(price => price === right)) return `All mistakes on “${labels[i]}” are free: raise at least one price in its row.`;
  }
  return "";
}

const quoted = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

function csvOf(costs) {
  const rows = labels.map((label, i) => [label, ...costs.slice(i * K, (i + 1) * K)]);
  return [[CORNER, ...labels], ...rows].map(row => row.map(cell => quoted(String(cell))).join(",") + "\n").join("");
}

/* The records of a text of CSV that are not blank, with stripped cells. */
function recordsOf(text, separator) {
  const records = [];
  let record = [], cell = "", inside = false, closed = false;
  const endCell = () => { record.push(cell.trim()); cell = ""; closed = false; };
  const endRecord = () => { endCell(); if (record.some(Boolean)) records.push(record); record = []; };
  for (let k = 0; k < text.length; k++) {
    const sign = text[k];
    if (inside) {
      if (sign !== '"') cell += sign;
      else if (text[k + 1] === '"') { cell += '"'; k++; } else { inside = false; closed = true; }
    } else if (sign === '"' && !cell.trim() && !closed) { inside = true; cell = ""; }
    else if (sign === separator) endCell();
    else if (sign === "\n" || sign === "\r") endRecord();
    else if (closed && sign.trim()) throw new Error(`record ${records.length + 1} is not CSV: check its quotation marks.`);
    else cell += sign;
  }
  if (inside) throw new Error("a quotation mark is never closed: check the quotation marks.");
  endRecord();
  return records;
}

/* Read a matrix of costs for our classes, in any order; an error says what to do. */
function readCosts(text) {
  const tables = [",", ";", "\t"].map(separator => {
    try { return { separator, records: recordsOf(text, separator) }; } catch (error) { return { error }; }
  });
  const even = ({ records }) => records?.length && records[0].length > 1 && records.every(record => record.length === records[0].length);
  const { records, separator, error } = tables.find(even) ?? tables[0];
  if (error) throw error;
  if (records.length < 3) throw new Error("the file has no table of costs: give a row of answers, and a row for each class.");
  const header = records[0].slice(1);
  while (header.length && !header.at(-1)) header.pop();
  const names = records.slice(1).map(record => record[0]);
  for (const [found, kind] of [[header, "column"], [names, "row"]]) {
    for (const name of found) {
      if (!labels.includes(name)) throw new Error(`the ${kind} “${shortened(name)}” is not a class of this model: remove it, or correct its name.`);
      if (found.indexOf(name) !== found.lastIndexOf(name)) throw new Error(`there is more than one ${kind} “${shortened(name)}”: keep one.`);
    }
    for (const label of labels) if (!found.includes(label)) throw new Error(`there is no ${kind} “${shortened(label)}”: add it.`);
  }
  const cells = records.slice(1).flatMap(record => record.slice(1));
  const decimalCommas = separator !== "," && cells.some(cell => cell.includes(",")) && !cells.some(cell => cell.includes("."));
  const costs = new Float64Array(K * K);
  for (const record of records.slice(1))
    for (const [k, name] of header.entries()) {
      const i = labels.indexOf(record[0]), j = labels.indexOf(name), cell = record[k + 1] ?? "";
      if (!cell && i === j) continue;
      const { price, error: wrong } = readPrice(decimalCommas ? cell.replace(",", ".") : cell);
      if (wrong) throw new Error(`the price of answering “${shortened(name)}” where “${shortened(record[0])}” is true is “${shortened(cell)}”. ${wrong}`);
      costs[i * K + j] = price;
    }
  const complaint = complaintAbout(costs);
  if (complaint) throw new Error(complaint);
  return costs;
}

const shortened = text => text.length > 40 ? `${text.slice(0, 39)}…` : text;

// ---- The page ----

const start = { costs: Float64Array.from(data.costs), ask: data.ask };
let state = start, figures = null, limits = null, selected = [0, 1], shownPage = 0;
let inputs = [], changedRows = [], probe = null, curve = null;
const past = [], future = [];
let before = null; // the state before an edit that is under way

function same(one, other) {
  return one.ask === other.ask && one.costs.every((price, k) => price === other.costs[k]);
}

/* Show another state; what takes longer follows in the next frame. */
function show(next) {
  const begin = performance.now(), columns = [];
  for (let j = 0; j < K; j++)
    if (figures === null || next.costs.some((price, k) => k % K === j && price !== state.costs[k])) columns.push(j);
  state = next;
  figures = figuresOf(state, columns);
  showFigures();
  measure("explorer:figures", begin);
  later(begin);
}

function measure(name, begin) {
  performance.clearMeasures(name);
  performance.measure(name, { start: begin, end: performance.now() });
}

function edit(next) {
  before ??= state;
  show(next);
  showButtons();
}

function commit() {
  if (before !== null && !same(before, state)) { past.push(before); future.length = 0; }
  before = null;
  showButtons();
}

function jump(from, to) {
  commit();
  if (!from.length) return;
  to.push(state);
  show(from.pop());
  forgetErrors();
  showButtons();
}

function change(next) {
  commit();
  edit(next);
  commit();
  forgetErrors();
}

const withPrice = (i, j, price) => ({ ...state, costs: state.costs.with(i * K + j, price) });

function showButtons() {
  byId("undo").disabled = !past.length && before === null;
  byId("redo").disabled = !future.length;
  byId("reset").disabled = same(state, start);
}

function say(text, bad = false) {
  write(byId("message"), text);
  byId("message").classList.toggle("bad", bad);
}

/* Set the text of an input to the price that counts, unless someone is typing there. */
function refresh(input, text) {
  if (input.dataset.typing !== "1" && input.value !== text) input.value = text;
}

function showError(input, text, kept) {
  const note = byId(`${input.id}-error`);
  write(note, text && `${text} ${kept} still counts.`);
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

function forgetErrors() {
  for (const input of [...inputs, byId("ask")]) { delete input.dataset.typing; showError(input, "", ""); }
  showPrices();
}

function showPrices() {
  for (const [k, input] of inputs.entries()) refresh(input, String(state.costs[k]));
  refresh(byId("ask"), state.ask === null ? "" : String(state.ask));
  write(byId("warning"), complaintAbout(state.costs));
  const [i, j] = selected, price = state.costs[i * K + j], base = baseOf(i, j);
  const slider = byId("ratio");
  slider.value = price > 0 ? Math.log2(price / base) : -SPAN;
  const ratio = price / base, was = start.costs[i * K + j];
  const text = was ? `${money(price)}: ${number(ratio, 3)} × what it was` : `${money(price)}; it was 0`;
  write(byId("ratio-text"), text);
  slider.setAttribute("aria-valuetext", text);
}

// The matrix of prices, counts and sums

const matrix = { counts: [], totals: [], answers: [] };

const headCells = () => [make("th", { className: "axis" }, "truth ↓", make("span", {}, "answer →")),
  ...labels.map(label => make("th", { scope: "col" }, labelNode(label)))];

function buildMatrix() {
  const head = [...headCells(), make("th", { scope: "col", className: "ask" }, ASK_NAME), make("th", { scope: "col" }, "all")];
  const body = labels.map((label, i) => {
    const cells = labels.map((_, j) => {
      const input = make("input", { type: "text", id: `price-${i}-${j}`, inputMode: "decimal", autocomplete: "off", spellcheck: false,
        tabIndex: -1, "aria-label": plainName(i, j), "aria-describedby": `price-${i}-${j}-error` });
      inputs.push(input);
      const small = make("small");
      matrix.counts.push(small);
      return make("td", { className: i === j ? "right" : "" }, input, small, make("span", { className: "error", id: `price-${i}-${j}-error` }));
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
    make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body, foot)));
}

function showMatrix() {
  const { counts } = figures, sums = new Float64Array(K * (K + 1));
  for (let i = 0; i < K; i++)
    for (let d = 0; d <= K; d++) sums[i * (K + 1) + d] = counts[i * (K + 1) + d] && counts[i * (K + 1) + d] * priceOf(state, i, d);
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

function showWays() {
  const values = figures.ways.map(way => way.value), largest = Math.max(...values), least = Math.min(...values);
  const rows = figures.ways.map(way => {
    const bar = make("i");
    bar.style.width = `${largest ? 100 * way.value / largest : 0}%`;
    const more = way.value - figures.headline;
    const against = way.now ? "these decisions" : Math.abs(more) <= TIE * figures.headline ? "the same" : figures.headline ? signed(percent(more / figures.headline)) : "";
    const remark = way.value === least && !way.now && more < 0 ? `${against}, cheapest` : against;
    const figure = make("td", { className: "number" }, withUnit(rate(way.value, largest)), make("small", {}, remark));
    figure.dataset.way = way.id;
    figure.dataset.value = way.value;
    return make("tr", { className: way.now ? "now" : "" }, make("td", {}, ...way.name, make("span", { className: "track" }, bar)), figure);
  });
  byId("ways-table").replaceChildren(make("table", {}, make("tbody", {}, ...rows)));
}

function showHeadline() {
  const largest = Math.max(figures.headline, averageOf(fittedCounts, state));
  const output = byId("headline");
  output.dataset.value = figures.headline;
  write(output, withUnit(rate(figures.headline, largest)));
  const fitted = averageOf(fittedCounts, state), less = figures.headline - fitted;
  const share = fitted ? ` (${signed(percent(less / fitted)).replace("+0 %", "0 %")})` : "";
  write(byId("difference"), Math.abs(less) <= TIE * fitted ? "the same as the model as fitted"
    : `${signed(rate(less, largest))}${share} against the model as fitted`);
}

// How far prices can move

const limitCells = [];

function buildLimits() {
  const body = labels.map((label, i) => make("tr", {}, make("th", { scope: "row" }, labelNode(label)), ...labels.map((_, j) => {
    const cell = make("td", { className: i === j ? "right" : "", title: plainName(i, j) }, "…");
    limitCells.push(cell);
    return cell;
  })));
  byId("limits-table").append(make("table", { className: "grid" },
    make("thead", {}, make("tr", {}, ...headCells())), make("tbody", {}, ...body)));
}

const chosenShare = () => Number(document.querySelector("input[name=share]:checked").value);

function showLimit(k) {
  const [low, high] = limits[k][chosenShare()], cell = limitCells[k], price = state.costs[k];
  const text = digits => `${low === null ? "0" : number(low, digits)} … ${high === null ? "∞" : number(high, digits)}`;
  const digits = [3, 4, 5, 6].find(some => text(some).split(" … ")[0] !== text(some).split(" … ")[1]) ?? 6;
  write(cell, low === null && high === null ? "any price" : text(digits));
  cell.dataset.low = low ?? "";
  cell.dataset.high = high ?? "";
  const room = Math.min(low === null ? Infinity : price - low, high === null ? Infinity : high - price);
  cell.classList.toggle("narrow", room < 0.1 * price);
  cell.classList.toggle("free", low === null && high === null);
}

function markLimits() {
  for (const [k, cell] of limitCells.entries()) cell.classList.toggle("selected", k === selected[0] * K + selected[1]);
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

function drawCurve() {
  const { x, average, changed, fitted } = curve, current = state.costs[selected[0] * K + selected[1]];
  const chart = byId("chart"), width = Math.max(240, chart.clientWidth), left = 58, right = width - 12;
  const highest = Math.max(...average), lowest = Math.min(...average, ...fitted);
  const ceiling = Math.max(highest, Math.min(Math.max(...fitted), 1.5 * highest)) || 1;
  const span = Math.max(ceiling - lowest, 0.3 * ceiling);
  const price = { name: "average price", top: 22, bottom: 190, low: Math.max(0, ceiling - 1.1 * span), high: ceiling + 0.1 * span, text: number, ticks: 6 };
  const share = { name: "decisions that differ from the model as fitted", top: 228, bottom: 300, low: 0, high: Math.min(1, Math.max(0.05, Math.max(...changed) * 1.1)), text: percent, ticks: 3 };
  const across = value => left + (right - left) * Math.min(1, Math.max(0, Math.log(value / x[0]) / Math.log(x.at(-1) / x[0])));
  const up = (value, panel) => panel.bottom - (panel.bottom - panel.top) * (value - panel.low) / (panel.high - panel.low);
  const svg = drawn("svg", { viewBox: `0 0 ${width} 326`, "aria-hidden": "true" });
  for (const panel of [price, share]) {
    svg.append(drawn("text", { x: left, y: panel.top - 8, class: "name" }, panel.name));
    for (const value of ticksBetween(panel.low, panel.high, panel.ticks)) {
      const y = up(value, panel);
      svg.append(drawn("line", { x1: left, x2: right, y1: y, y2: y, class: "rule" }),
        drawn("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, panel.text(value)));
    }
  }
  for (const value of logTicks(x[0], x.at(-1), width))
    svg.append(drawn("text", { x: across(value), y: 318, "text-anchor": "middle" }, number(value)));
  const line = (values, panel, kind) => {
    const points = Array.from(values, (value, m) => [x[m], value]).filter(([, value]) => value <= panel.high);
    const steps = points.map(([at, value], m) => `${m ? "L" : "M"}${across(at).toFixed(1)} ${up(value, panel).toFixed(1)}`);
    return drawn("path", { d: steps.join(""), class: kind });
  };
  const upright = (at, kind) => drawn("line", { x1: across(at), x2: across(at), y1: price.top, y2: share.bottom, class: kind });
  const dot = (at, value, panel) => drawn("circle", { cx: across(at), cy: up(value, panel), r: 5, class: "dot" });
  svg.append(line(fitted, price, "line-fitted"), line(average, price, "line-now"), line(changed, share, "line-now"), upright(current, "here"));
  const here = probe === null
    ? [current, figures.headline, changedRows.length / n, averageOf(fittedCounts, state)]
    : [x[probe], average[probe], changed[probe], fitted[probe]];
  if (probe !== null) svg.append(upright(here[0], "probe"));
  if (here[1] <= price.high) svg.append(dot(here[0], here[1], price));
  if (here[2] <= share.high) svg.append(dot(here[0], here[2], share));
  chart.replaceChildren(svg);
  chart.place = event => Math.round((N_POINTS - 1) * Math.min(1, Math.max(0, (event.clientX - chart.getBoundingClientRect().left - left) / (right - left))));
  write(byId("readout"), `${probe === null ? "Now, at" : "At"} a price of ${money(here[0])}, a decision costs ${money(here[1])} on average; `
    + `${percent(here[2])} of the decisions differ from those of the model as fitted, which would cost ${money(here[3])}.`);
  chart.setAttribute("aria-label", `Average price against this price, from ${money(x[0])} to ${money(x.at(-1))}. Arrow keys read the curve.`);
}

// The rows whose decision changes

function findChanges() {
  changedRows = [];
  for (let r = 0; r < n; r++) if (figures.decisions[r] !== answers[r]) changedRows.push(r);
  shownPage = Math.min(shownPage, Math.max(0, Math.ceil(changedRows.length / PAGE_LENGTH) - 1));
}

const decisionName = d => d === ASK ? ASK_NAME : labels[d];

function showChanges() {
  const { decisions } = figures, count = changedRows.length;
  write(byId("changes-lead"), count
    ? `${count.toLocaleString("en")} of ${n.toLocaleString("en")} decisions (${percent(count / n)}) differ from those of the model as fitted.`
    : "At these prices, minimum expected cost decides as the model as fitted does, in every row.");
  const moves = new Map();
  for (const r of changedRows) {
    const move = answers[r] * (K + 1) + decisions[r];
    moves.set(move, (moves.get(move) ?? 0) + 1);
  }
  const largest = [...moves].sort((one, other) => other[1] - one[1]);
  byId("moves").replaceChildren(...largest.slice(0, N_MOVES).map(([move, times]) =>
    make("li", {}, `${times.toLocaleString("en")} × `, labelNode(decisionName(Math.floor(move / (K + 1)))), " → ", labelNode(decisionName(move % (K + 1))))));
  const from = shownPage * PAGE_LENGTH, shown = changedRows.slice(from, from + PAGE_LENGTH);
  byId("pager").hidden = count <= PAGE_LENGTH;
  write(byId("place"), `${from + 1} to ${from + shown.length} of ${count.toLocaleString("en")}`);
  byId("previous").disabled = shownPage === 0;
  byId("next").disabled = from + PAGE_LENGTH >= count;
  const table = byId("changes-table");
  if (!count) { table.replaceChildren(); return; }
  const charged = (r, d) => d === ASK ? state.ask : truth ? priceOf(state, truth[r], d) : own.expected[d][r];
  const head = ["row", ...(truth ? ["truth"] : []), "as fitted", "now", truth ? "price" : "expected price", ...data.features.map(feature => feature.name)];
  const rows = shown.map(r => make("tr", {}, make("td", {}, labelNode(String(data.rows[r]))),
    ...(truth ? [make("td", {}, labelNode(labels[truth[r]]))] : []),
    make("td", {}, labelNode(labels[answers[r]])), make("td", { className: "new" }, labelNode(decisionName(decisions[r]))),
    make("td", { className: "number" }, `${number(charged(r, answers[r]))} → ${number(charged(r, decisions[r]))}`),
    ...data.features.map(feature => make("td", {}, labelNode(feature.cells[r])))));
  table.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text, k) =>
    make("th", { scope: "col", className: head[k].endsWith("price") && k < 5 ? "number" : "" }, k < head.length - data.features.length ? text : labelNode(text))))), make("tbody", {}, ...rows)));
}

// Everything, now and later

function showFigures() {
  findChanges();
  showHeadline();
  showMatrix();
  showWays();
  showPrices();
}

let round = 0;

/* Draw what takes longer, in slices, unless another change comes first. */
function later(begin) {
  const mine = ++round;
  performance.clearMeasures("explorer:all");
  const todo = Array.from({ length: K * K }, (_, k) => k);
  limits = new Array(K * K).fill(null);
  const work = () => {
    if (mine !== round) return;
    const end = performance.now() + SLICE;
    while (todo.length && performance.now() < end) {
      const k = todo.shift();
      limits[k] = limitsOf(state, figures.decisions, Math.floor(k / K), k % K);
      showLimit(k);
    }
    if (todo.length) setTimeout(work);
    else measure("explorer:all", begin);
  };
  requestAnimationFrame(() => {
    if (mine !== round) return;
    showCurve();
    showChanges();
    work();
  });
}

function listen() {
  const grid = byId("matrix");
  const placeOf = input => input.id.split("-").slice(1).map(Number);
  grid.addEventListener("focusin", event => {
    if (event.target.tagName !== "INPUT") return;
    select(...placeOf(event.target));
    event.target.select();
  });
  grid.addEventListener("input", event => {
    const [i, j] = placeOf(event.target), { price, error } = readPrice(event.target.value);
    event.target.dataset.typing = "1";
    showError(event.target, error ?? "", String(state.costs[i * K + j]));
    if (!error) edit(withPrice(i, j, price));
  });
  grid.addEventListener("change", event => { settle(event.target); });
  grid.addEventListener("keydown", event => {
    const input = event.target;
    if (input.tagName !== "INPUT" || event.altKey || event.ctrlKey || event.metaKey) return;
    const [i, j] = placeOf(input), all = input.selectionEnd - input.selectionStart === input.value.length;
    const atStart = all || input.selectionEnd === 0, atEnd = all || input.selectionStart === input.value.length;
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: atStart && [0, -1], ArrowRight: atEnd && [0, 1] };
    const step = steps[event.key];
    if (step) {
      const row = i + step[0], column = j + step[1];
      event.preventDefault();
      if (row >= 0 && row < K && column >= 0 && column < K) inputs[row * K + column].focus();
    } else if (event.key === "Enter") { settle(input); input.select(); }
    else if (event.key === "Escape") giveUp(input);
  });
  const ask = byId("ask");
  ask.addEventListener("input", () => {
    const { price, error } = ask.value.trim() ? readPrice(ask.value) : { price: null };
    ask.dataset.typing = "1";
    showError(ask, error ?? "", state.ask === null ? "Never asking" : String(state.ask));
    if (!error) edit({ ...state, ask: price });
  });
  ask.addEventListener("change", () => settle(ask));
  ask.addEventListener("keydown", event => {
    if (event.key === "Enter") settle(ask);
    else if (event.key === "Escape") giveUp(ask);
  });
  byId("ratio").addEventListener("input", event => {
    const [i, j] = selected, base = baseOf(i, j), power = Number(event.target.value);
    const price = power === 0 ? base : Number((base * 2 ** power).toPrecision(4));
    showError(inputs[i * K + j], "", "");
    delete inputs[i * K + j].dataset.typing;
    edit(withPrice(i, j, Math.min(price, MAX_PRICE)));
  });
  byId("ratio").addEventListener("change", commit);
  byId("undo").addEventListener("click", () => jump(past, future));
  byId("redo").addEventListener("click", () => jump(future, past));
  byId("reset").addEventListener("click", () => change(start));
  document.addEventListener("keydown", event => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") {
      event.preventDefault();
      if (key === "y" || event.shiftKey) jump(future, past); else jump(past, future);
    }
  });
  byId("save").addEventListener("click", save);
  byId("load").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", load);
  for (const radio of document.querySelectorAll("input[name=share]"))
    radio.addEventListener("change", () => limits.forEach((limit, k) => limit && showLimit(k)));
  byId("previous").addEventListener("click", () => { shownPage--; showChanges(); });
  byId("next").addEventListener("click", () => { shownPage++; showChanges(); });
  const chart = byId("chart");
  const look = place => { probe = place; drawCurve(); };
  chart.addEventListener("pointermove", event => look(chart.place(event)));
  chart.addEventListener("pointerdown", event => look(chart.place(event)));
  chart.addEventListener("pointerleave", () => look(null));
  chart.addEventListener("blur", () => look(null));
  chart.addEventListener("keydown", event => {
    const [i, j] = selected, here = curve.x.findIndex(price => price >= state.costs[i * K + j]);
    const place = probe ?? (here < 0 ? N_POINTS - 1 : here);
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: N_POINTS - 1, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    look(to === null ? null : Math.min(N_POINTS - 1, Math.max(0, to)));
  });
  let width = chart.clientWidth;
  new ResizeObserver(() => { if (chart.clientWidth !== width) { width = chart.clientWidth; drawCurve(); } }).observe(chart);
}

/* Typing in a field is over: one step of the history. An invalid text stays, with its message. */
function settle(input) {
  if (input.getAttribute("aria-invalid") === "true") return;
  delete input.dataset.typing;
  commit();
  showPrices();
}

/* Take the price that counts back into a field. */
function giveUp(input) {
  delete input.dataset.typing;
  showError(input, "", "");
  commit();
  showPrices();
}

function save() {
  commit();
  const complaint = complaintAbout(state.costs);
  if (data.unwritable.length) {
    say(`The class “${shortened(data.unwritable[0])}” cannot be kept in a CSV file: rename it, in letters that Unicode has and without space around it.`, true);
  } else if (complaint) say(`Not saved, since badacost fit would refuse these costs. ${complaint}`, true);
  else {
    const url = URL.createObjectURL(new Blob([csvOf(state.costs)], { type: "text/csv" }));
    make("a", { href: url, download: "costs.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    say("Saved as costs.csv.");
  }
}

async function load() {
  const input = byId("file"), file = input.files[0];
  if (!file) return;
  try {
    if (file.size > MAX_FILE) throw new Error("the file is larger than 16 MiB: give a table of costs.");
    const bytes = new Uint8Array(await file.arrayBuffer());
    const marks = { "255,254": "utf-16le", "254,255": "utf-16be" };
    let text;
    try {
      text = new TextDecoder(marks[bytes.slice(0, 2)] ?? "utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new Error("the file is not text in UTF-8: save it as CSV UTF-8.");
    }
    change({ ...state, costs: readCosts(text) });
    say(`Loaded ${shortened(file.name)}.`);
  } catch (error) {
    say(`${shortened(file.name)} was not loaded: ${error.message}`, true);
  }
  input.value = "";
}

/* The costliest mistake is selected at first. */
function costliest() {
  let found = [0, 1], most = -1;
  for (let i = 0; i < K; i++)
    for (let j = 0; j < K; j++) {
      const sum = i === j ? -1 : figures.counts[i * (K + 1) + j] * state.costs[i * K + j];
      if (sum > most) { most = sum; found = [i, j]; }
    }
  return found;
}

document.querySelector("main").classList.toggle("many", K > 5);
document.querySelector(`input[name=share][value="${n < 2 / SHARE ? 0 : 1}"]`).checked = true;
buildMatrix();
buildLimits();
listen();
show(start);
select(...costliest());
showButtons();
})();
