// What the page holds, the decisions at any prices, and what they cost.
// Costs are C[truth, answer], row by row in one array: costs[truth * K + answer].

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
  const asks = state.ask !== null, ways = [];
  const add = (id, name, wayCounts, now = false) => ways.push({ id, name, value: averageOf(wayCounts, state), now });
  if (asks) add("asking", ["Minimum expected cost, or ask a person"], counts, true);
  if (asks) add("minimum", ["Minimum expected cost, nobody asked"], countsOf(own.decide(Infinity, answers)));
  else add("minimum", ["Minimum expected cost"], counts, true);
  add("fitted", ["The model as fitted"], fittedCounts);
  add("likely", ["Most likely class"], likelyCounts);
  const constant = bestConstant(state);
  ways.push({ id: "constant", name: ["Always ", labelNode(decisionName(constant.answer))], value: constant.value });
  for (const [k, { name, beliefs, likely }] of rivals.entries()) {
    beliefs.price(state.costs, columns);
    add(`rival-${k}-likely`, [labelNode(name), ": most likely class"], likely);
    add(`rival-${k}-minimum`, [labelNode(name), ": minimum expected cost"], countsOf(beliefs.decide(Infinity, null)));
  }
  return { decisions, counts, ways, headline: ways[0].value };
}

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
  const [fixed, slope, moved] = Array.from({ length: 3 }, () => new Float64Array(N_POINTS + 1));
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
      while (low < high) {
        const middle = (low + high) >> 1;
        if (x[middle] < turn) low = middle + 1;
        else high = middle;
      }
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
