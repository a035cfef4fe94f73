// Numbers, names and files of prices as text.

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
const countText = value => truth && !weights ? counted(value) : number(value, 3);
const counted = value => value.toLocaleString("en");
const percent = share => `${Math.abs(share) < 0.1 ? Number((100 * share).toPrecision(2)) : Math.round(100 * share)} %`;
const signed = text => text.startsWith("-") ? `−${text.slice(1)}` : `+${text}`;

/* An average, in the decimals that give the largest of all four digits. */
function rate(value, largest) {
  if (largest >= 1e15 || (largest < 1e-4 && largest > 0)) return number(value);
  const decimals = Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(largest || 1))));
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name.includes("-") || name === "for" || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  node.append(...children);
  return node;
}

const textNode = text => make("bdi", { className: "label", title: text }, text);
const labelNode = text => textNode(text || "(no name)");
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const cellName = (i, j) => i === j
  ? ["Price of answering ", labelNode(labels[j]), " where it is true"]
  : ["Price of answering ", labelNode(labels[j]), " where ", labelNode(labels[i]), " is true"];
const decisionName = d => d === ASK ? ASK_NAME : labels[d] || "(no name)";
const plainName = (i, j) => `Price of answering ${labels[j]} where ${labels[i]} is true`;

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
      return `Where “${labels[i]}” is true, being right costs more than the answer “${labels[cheaper]}”: `
        + "lower the price on the diagonal.";
    if (row.every(price => price === right))
      return `All mistakes on “${labels[i]}” are free: raise at least one price in its row.`;
  }
  return "";
}

const quoted = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/* A label that a spreadsheet does not take for a formula, and back. */
const FORMULA = /^[=+\-@\t\r]/, NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const withoutFormula = text => FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
const withFormula = text => text[0] === "'" && FORMULA.test(text.slice(1)) ? text.slice(1) : text;

function csvOf(costs) {
  const names = labels.map(withoutFormula);
  const rows = names.map((name, i) => [name, ...costs.slice(i * K, (i + 1) * K)]);
  return [[CORNER, ...names], ...rows].map(row => row.map(cell => quoted(String(cell))).join(",") + "\n").join("");
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
    else if (closed && sign.trim())
      throw new Error(`record ${records.length + 1} is not CSV: check its quotation marks.`);
    else cell += sign;
  }
  if (inside) throw new Error("a quotation mark is never closed: check the quotation marks.");
  endRecord();
  return records;
}

/* Refuse names that are not those of the classes, each once. */
function checkNames(names, kind) {
  for (const name of names) {
    const shown = shortened(name);
    if (!labels.includes(name))
      throw new Error(`the ${kind} “${shown}” is not a class of this model: remove it, or correct its name.`);
    if (names.indexOf(name) !== names.lastIndexOf(name))
      throw new Error(`there is more than one ${kind} “${shown}”: keep one.`);
  }
  const missing = labels.find(label => !names.includes(label));
  if (missing !== undefined) throw new Error(`there is no ${kind} “${shortened(missing)}”: add it.`);
}

/* Read a matrix of costs for our classes, in any order; an error says what to do. */
function readCosts(text) {
  const tables = [",", ";", "\t"].map(separator => {
    try { return { separator, records: recordsOf(text, separator) }; } catch (error) { return { error }; }
  });
  const even = ({ records }) =>
    records?.[0]?.length > 1 && records.every(record => record.length === records[0].length);
  const { records, separator, error } = tables.find(even) ?? tables[0];
  if (error) throw error;
  if (records.length < 3)
    throw new Error("the file has no table of costs: give a row of answers, and a row for each class.");
  const header = records[0].slice(1).map(withFormula);
  while (header.length && !header.at(-1)) header.pop();
  for (const record of records.slice(1)) record[0] = withFormula(record[0]);
  const names = records.slice(1).map(record => record[0]);
  checkNames(header, "column");
  checkNames(names, "row");
  const cells = records.slice(1).flatMap(record => record.slice(1));
  const have = sign => cells.some(cell => cell.includes(sign));
  const decimalCommas = separator !== "," && have(",") && !have(".");
  const costs = new Float64Array(K * K);
  for (const record of records.slice(1))
    for (const [k, name] of header.entries()) {
      const i = labels.indexOf(record[0]), j = labels.indexOf(name), cell = record[k + 1] ?? "";
      if (!cell && i === j) continue;
      const { price, error: wrong } = readPrice(decimalCommas ? cell.replace(",", ".") : cell);
      if (wrong) {
        const [answer, fact, typed] = [name, record[0], cell].map(shortened);
        throw new Error(`the price of answering “${answer}” where “${fact}” is true is “${typed}”. ${wrong}`);
      }
      costs[i * K + j] = price;
    }
  const complaint = complaintAbout(costs);
  if (complaint) throw new Error(complaint);
  return costs;
}

const shortened = text => text.length > 40 ? `${text.slice(0, 39)}…` : text;
