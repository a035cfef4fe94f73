// The state of the page and its history; what people do is heard here.

const start = { costs: Float64Array.from(data.costs), ask: data.ask };
let state = start, figures = null, limits = null, selected = [0, 1], shownPage = 0;
let inputs = [], changedRows = [], probe = null, curve = null, pointAt = null;
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
  chart.addEventListener("pointermove", event => look(pointAt(event)));
  chart.addEventListener("pointerdown", event => look(pointAt(event)));
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
  new ResizeObserver(() => {
    if (chart.clientWidth === width) return;
    width = chart.clientWidth;
    drawCurve();
  }).observe(chart);
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
    say(`The class “${shortened(data.unwritable[0])}” cannot be kept in a CSV file: `
      + "rename it, in letters that Unicode has and without space around it.", true);
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
