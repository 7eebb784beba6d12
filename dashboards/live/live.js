// The agent's live page: the node, or one job of it (#job=NAME). Read-only.
//
// It reads /api/v1/events and keeps what it has seen for ten minutes, so a restart of the agent
// leaves a gap. Every text from the node is put in as text, never as HTML.
"use strict";

const KEPT_MS = 600000;
const LEAST_MS = 60000;
const RETRY_MS = 2000;
const GAP_MS = 5000;  // without a sample, a line is broken
const CAUSES = {
  demand: "a call needed memory that was away, and no plan had asked for it",
  late_prefetch: "a plan had asked for it, and it was not back yet",
  no_memory: "memory for a new allocation",
  pool_full: "host memory, before something could leave",
  idle: "the device to be idle, while kernels may follow pointers",
  shrink: "a smaller budget to be met",
  link_share: "its turn on the link",
  unknown: "not told: the job speaks an older protocol",
};
const ORIGINS = { made: "a request", kept: "the store", recalled: "an earlier run" };
const MEMORY = [
  { name: "wanted", field: "wanted_bytes", color: ["#a4512d", "#e39a72"] },
  { name: "budget", field: "budget_bytes", color: ["#1c2430", "#e4e9ef"], dashes: [6, 4] },
  { name: "resident", field: "resident_bytes", color: ["#2f6fb3", "#5b9bdd"], fill: true },
];
const LINK = [
  { name: "to the host", field: "to_host_bytes_per_second", color: ["#a4512d", "#e39a72"] },
  { name: "to the device", field: "to_device_bytes_per_second", color: ["#2f6fb3", "#5b9bdd"] },
];
const CAUSE_COLORS = [["#b3261e", "#ff8a80"], ["#8a5a00", "#e0b050"], ["#6a3fa0", "#b79be8"], ["#00695c", "#5fc7b8"],
  ["#5b6675", "#9aa6b4"], ["#a4512d", "#e39a72"], ["#2f6fb3", "#5b9bdd"], ["#7a6a00", "#cfc36a"]];
const STALLS = Object.keys(CAUSES).map((cause, i) => (
  { name: cause.replace("_", " "), cause, color: CAUSE_COLORS[i], fill: true }));
const DARK = matchMedia("(prefers-color-scheme: dark)");

// ---- texts

const JOINT = "\u00a0";  // a number and its unit stay on one line

const number = (value, digits) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${number(value, unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2)}${JOINT}${units[unit]}`;
}
const rate = (value) => value === 0 ? "0" : `${bytes(value)}/s`;
const percent = (value) => `${number(value, value > 0 && value < 10 ? 1 : 0)}${JOINT}%`;

function duration(ns) {
  const seconds = Math.floor(ns / 1e9);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
}
const milliseconds = (ns) => ns >= 1e9 ? `${number(ns / 1e9, 2)} s` : `${number(ns / 1e6, ns < 1e7 ? 2 : 1)} ms`;
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
const waiting = (now) => Object.values(now.stall_permille).reduce((sum, one) => sum + one, 0) / 10;

// ---- elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A list of figures: [[name, text], ...]; set again, it keeps its elements.
class Figures {
  constructor() {
    this.element = element("dl", { class: "figures" });
    this.values = new Map();
  }
  set(figures) {
    for (const [name, text] of figures) {
      if (!this.values.has(name)) {
        const value = element("dd");
        this.values.set(name, value);
        this.element.append(element("div", {}, element("dt", {}, name), value));
      }
      setText(this.values.get(name), text);
    }
  }
}

// columns: [{name, text: (row) => ..., link: (row) => ..., isText, isWide}]. Rows keep their elements, so the
// keyboard's focus stays.
class Table {
  constructor(caption, columns, keyOf) {
    Object.assign(this, { columns, keyOf, rows: new Map() });
    this.body = element("tbody");
    this.element = element("table", {}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...columns.map((one) =>
        element("th", { scope: "col", ...(one.isText && { class: "text" }) }, one.name)))),
      this.body);
  }
  set(rows) {
    const keys = new Set(rows.map(this.keyOf));
    for (const [key, made] of this.rows) {
      if (keys.has(key)) continue;
      made.remove();
      this.rows.delete(key);
    }
    rows.forEach((row, place) => {
      const key = this.keyOf(row);
      if (!this.rows.has(key)) this.rows.set(key, this.makeRow(row));
      const made = this.rows.get(key);
      if (this.body.children[place] !== made) this.body.insertBefore(made, this.body.children[place] || null);
      this.columns.forEach((column, i) => {
        const cell = made.children[i];
        setText(column.link ? cell.firstChild : cell, column.text(row));
      });
    });
  }
  makeRow(row) {
    return element("tr", {}, ...this.columns.map((column) => {
      const classes = [column.isText && "text", column.isWide && "wide"].filter(Boolean).join(" ");
      const cell = element("td", { "data-column": column.name, class: classes });
      if (column.link) cell.append(element("a", { href: column.link(row) }));
      return cell;
    }));
  }
}

// ---- charts

// Its legend sets styles in a way that the page's policy forbids; the charts have keys of their own.
if (typeof Dygraph !== "undefined") Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

class Chart {
  // lines: [{name, color: [light, dark], dashes, fill}]; text: a value as text; isTime: whether x is a clock's.
  constructor(title, lines, text, { isStacked = false, isTime = true, isStep = false } = {}) {
    Object.assign(this, { title, lines, text, isStacked, isTime, isStep, rows: [] });
    this.plot = element("div", { class: "plot", role: "img", tabindex: "0" });
    this.key = element("ul", { class: "key" });
    this.heading = element("h3", {}, title);
    this.element = element("section", { class: "chart" }, this.heading, this.plot, this.key);
    this.selected = null;
    this.plot.addEventListener("keydown", (event) => this.move(event));
    this.plot.addEventListener("blur", () => this.select(null));
    this.makeKey();
  }
  makeKey() {
    this.values = this.lines.map((line) => {
      const value = element("span");
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const stroke = document.createElementNS("http://www.w3.org/2000/svg", "path");
      for (const [name, set] of Object.entries({ d: "M0 5H18", "stroke-width": "3", ...(line.dashes && { "stroke-dasharray": "5 3" }) }))
        stroke.setAttribute(name, set);
      mark.setAttribute("viewBox", "0 0 18 10");
      mark.setAttribute("aria-hidden", "true");
      mark.append(stroke);
      const item = element("li", {}, mark, `${line.name} `, value);
      this.key.append(item);
      return { item, stroke, value };
    });
  }
  // rows: [[x, value, ...], ...]
  set(rows) {
    this.rows = rows;
    this.draw();
    this.showKey();
  }
  draw() {
    if (typeof Dygraph === "undefined" || !this.plot.isConnected || this.rows.length === 0) return;
    if (this.graph) return this.graph.updateOptions({ file: this.rows, ...this.range() });
    const dark = DARK.matches ? 1 : 0;
    const series = {};
    for (const line of this.lines)
      series[line.name] = { strokePattern: line.dashes || null, fillGraph: Boolean(line.fill) };
    this.graph = new Dygraph(this.plot, this.rows, {
      labels: ["x", ...this.lines.map((line) => line.name)],
      colors: this.lines.map((line) => line.color[dark]),
      series, stackedGraph: this.isStacked, stepPlot: this.isStep, legend: "never", interactionModel: {}, strokeWidth: 1.5, fillAlpha: 0.3,
      includeZero: true, gridLineColor: ["#d5dbe2", "#333d49"][dark], axisLineColor: ["#d5dbe2", "#333d49"][dark],
      highlightCallback: (event, x, points, row) => this.select(row, true),
      unhighlightCallback: () => this.select(null, true),
      axes: {
        y: { axisLabelWidth: 68, labelsKMG2: this.text !== percent, axisLabelFormatter: (value) => this.text(value) },
        x: { axisLabelWidth: 62, pixelsPerLabel: 75, axisLabelFormatter: (value) => this.isTime ? clock(value) : milliseconds(value) },
      },
      ...this.range(),
    });
  }
  // At least a minute, so that a chart does not stretch wildly while it begins.
  range() {
    const last = +this.rows[this.rows.length - 1][0];
    const first = Math.min(+this.rows[0][0], last - LEAST_MS);
    const top = this.rows.reduce((most, row) => Math.max(most, this.isStacked
      ? row.slice(1).reduce((sum, one) => sum + (one || 0), 0) : Math.max(...row.slice(1).map((one) => one || 0))), 0);
    return { valueRange: [0, top > 0 ? top * 1.08 : 1], ...(this.isTime && { dateWindow: [first, last] }) };
  }
  redraw() {
    if (this.graph) this.graph.destroy();
    this.graph = null;
    this.draw();
    this.showKey();
  }
  select(row, isPointer = false) {
    this.selected = row;
    if (!isPointer && this.graph) row === null ? this.graph.clearSelection() : this.graph.setSelection(row);
    this.showKey();
  }
  move(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") return this.select(null);
    if (!(event.key in steps) || this.rows.length === 0) return;
    event.preventDefault();
    const last = this.rows.length - 1;
    const from = this.selected === null ? last : this.selected;
    this.select(Math.min(last, Math.max(0, from + steps[event.key])));
  }
  showKey() {
    const dark = DARK.matches ? 1 : 0;
    const row = this.rows[this.selected === null ? this.rows.length - 1 : Math.min(this.selected, this.rows.length - 1)];
    this.lines.forEach((line, i) => {
      const { item, stroke, value } = this.values[i];
      stroke.setAttribute("stroke", line.color[dark]);
      setText(value, row && row[i + 1] !== null ? this.text(row[i + 1]) : "–");
      item.hidden = this.isStacked && !this.rows.some((one) => one[i + 1] > 0);
    });
    const at = this.selected === null || !row ? "" : `, at ${this.isTime ? clock(row[0]) : milliseconds(+row[0])}`;
    setText(this.heading, this.title + at);
    this.plot.setAttribute("aria-label", `${this.title}${at}: ${this.lines.map((line, i) => `${line.name} ${this.values[i].value.textContent}`).join(", ")}. Arrow keys move through it.`);
  }
}

// Memory, link and stalls of a device, or of a job on one.
class History {
  constructor() {
    this.samples = [];
    this.charts = [new Chart("Device memory", MEMORY, bytes), new Chart("Link", LINK, rate),
      new Chart("Waiting for memory, by cause", STALLS, percent, { isStacked: true })];
    this.element = element("div", { class: "charts" }, ...this.charts.map((chart) => chart.element));
  }
  // What this page saw before the agent's first sample stays: of an earlier agent.
  load(samples) {
    const from = samples.length > 0 ? samples[0].at : Infinity;
    this.samples = [...this.samples.filter((one) => one.at < from), ...samples];
    this.show();
  }
  add(at, now) {
    if (this.samples.length > 0 && at <= this.samples[this.samples.length - 1].at) return;
    this.samples.push({ at, ...now });
    this.show();
  }
  show() {
    const last = this.samples.length > 0 ? this.samples[this.samples.length - 1].at : 0;
    this.samples = this.samples.filter((one) => one.at > last - KEPT_MS);
    const rows = (lines, value) => {
      const made = [];
      this.samples.forEach((sample, i) => {
        if (i > 0 && sample.at - this.samples[i - 1].at > GAP_MS)
          made.push([new Date(this.samples[i - 1].at + 1), ...lines.map(() => null)]);
        made.push([new Date(sample.at), ...lines.map((line) => value(sample, line))]);
      });
      return made;
    };
    this.charts[0].set(rows(MEMORY, (sample, line) => sample[line.field]));
    this.charts[1].set(rows(LINK, (sample, line) => sample[line.field]));
    this.charts[2].set(rows(STALLS, (sample, line) => (sample.stall_permille[line.cause] || 0) / 10));
  }
}

function samplesOf(answer, series) {
  const fields = Object.keys(series).filter((name) => Array.isArray(series[name]));
  return series.budget_bytes.map((_, i) => ({
    at: answer.at_ms[series.first + i],
    ...Object.fromEntries(fields.map((name) => [name, series[name][i]])),
    stall_permille: Object.fromEntries(Object.entries(series.stall_permille).map(([cause, values]) => [cause, values[i]])),
  }));
}

// ---- views

const jobAddress = (name) => `#job=${encodeURIComponent(name)}`;
const chartsNote = () => typeof Dygraph === "undefined"
  ? [element("p", { class: "note" }, "This agent was built without charts (Debian's package libjs-dygraphs). The figures are complete.")] : [];
const NOTHING = { to_host_bytes_per_second: 0, to_device_bytes_per_second: 0, stall_permille: {} };
const nowOf = (device) => device.now || NOTHING;

class NodeView {
  constructor() {
    this.title = "Spillway";
    this.histories = new Map();
    this.devices = element("div");
    this.figures = new Figures();
    this.notes = element("div");
    this.jobs = new Table("Jobs, one row for each device that a job uses", [
      { name: "Job", text: (row) => row.job.job, link: (row) => jobAddress(row.job.job), isText: true, isWide: true },
      { name: "Command", text: (row) => row.job.command, isText: true },
      { name: "User", text: (row) => String(row.job.uid), isText: true },
      { name: "GPU", text: (row) => String(row.device.device) },
      { name: "State", text: (row) => row.device.state, isText: true },
      { name: "Budget", text: (row) => bytes(row.device.budget_bytes) },
      { name: "Wanted", text: (row) => bytes(row.device.wanted_bytes) },
      { name: "Resident", text: (row) => bytes(row.device.resident_bytes) },
      { name: "To the host", text: (row) => rate(nowOf(row.device).to_host_bytes_per_second) },
      { name: "To the device", text: (row) => rate(nowOf(row.device).to_device_bytes_per_second) },
      { name: "Waiting", text: (row) => percent(waiting(nowOf(row.device))) },
    ], (row) => `${row.job.job} ${row.device.device}`);
    this.users = new Table("Users and accounts", [
      { name: "Name", text: (row) => row.owner.name, isText: true, isWide: true },
      { name: "Account", text: (row) => row.owner.account || "–", isText: true },
      { name: "Jobs", text: (row) => String(row.owner.jobs) },
      { name: "Waiting", text: (row) => String(row.owner.waiting_jobs) },
      { name: "GPU", text: (row) => String(row.device.device) },
      { name: "Budget", text: (row) => bytes(row.device.budget_bytes) },
      { name: "Guaranteed", text: (row) => bytes(row.device.guaranteed_bytes) },
      { name: "Limit", text: (row) => bytes(row.device.limit_bytes) },
    ], (row) => `${row.owner.name} ${row.device.device}`);
    this.left = element("p", { class: "soft" });
    this.element = element("div", {}, element("h1", {}, "This node"), this.figures.element, this.notes, ...chartsNote(), this.devices,
      element("h2", {}, "Jobs"), this.jobs.element, this.left, element("h2", {}, "Users"), this.users.element);
  }
  async load() {
    const answer = await read("/api/v1/history");
    for (const series of answer.series) this.deviceOf(series).history.load(samplesOf(answer, series));
  }
  deviceOf({ device, model, uuid }) {
    if (!this.histories.has(device)) {
      const made = { history: new History(), figures: new Figures(), heading: element("h2", {}, `GPU ${device}`) };
      this.histories.set(device, made);
      this.devices.append(element("section", {}, made.heading, made.figures.element, made.history.element));
    }
    const found = this.histories.get(device);
    if (model !== undefined) setText(found.heading, `GPU ${device}: ${model || uuid}`);
    return found;
  }
  set(state) {
    this.figures.set([["Jobs", String(state.jobs.length + state.jobs_left_out)], ["Agent runs for", duration(state.up_ns)],
      ["Host memory budgeted", `${bytes(state.host.budgeted_bytes)} of ${bytes(state.host.memory_bytes)}`],
      ["Evicted, not pinned", bytes(state.host.ordinary_bytes)]]);
    const notes = [state.draining && "Draining: no new job begins here.", state.resuming && "The agent waits for running jobs to come back.",
      !state.last_reload_succeeded && "The last reload of the configuration was refused: spillway config check.",
      state.unknown_devices.length > 0 && `Jobs use devices that are not managed: ${state.unknown_devices.join(", ")}`].filter(Boolean);
    this.notes.replaceChildren(...notes.map((text) => element("p", { class: "note" }, text)));
    for (const device of state.devices) {
      const { history, figures } = this.deviceOf(device);
      const now = nowOf(device);
      figures.set([["Memory", bytes(device.memory_bytes)], ["Budgeted", bytes(device.budgeted_bytes)], ["Resident", bytes(device.resident_bytes)],
        ["Unmanaged", device.unmanaged ? bytes(device.unmanaged.bytes) : "unknown"],
        ["To the host", rate(now.to_host_bytes_per_second)], ["To the device", rate(now.to_device_bytes_per_second)],
        ["Processes waiting", number(waiting(now) / 100, 2)]]);
      if (device.now) history.add(state.at_ms, device.now);
    }
    this.jobs.set(state.jobs.flatMap((job) => job.devices.map((device) => ({ job, device }))));
    setText(this.left, state.jobs_left_out > 0 ? `${state.jobs_left_out} more jobs: spillway jobs` : state.jobs.length === 0 ? "No job runs here." : "");
    this.users.set(state.users.flatMap((owner) => owner.devices.map((device) => ({ owner, device }))));
  }
  charts() {
    return [...this.histories.values()].flatMap((one) => one.history.charts);
  }
}

class JobView {
  constructor(name) {
    Object.assign(this, { name, title: `${name} – Spillway`, parts: new Map() });
    this.figures = new Figures();
    this.ended = element("p", { class: "note", hidden: "" }, "This job does not run here (any more).");
    this.devices = element("div");
    this.plan = new PlanPart(name);
    this.element = element("div", {}, element("p", {}, element("a", { href: "#" }, "All of this node")), element("h1", {}, name), this.ended,
      this.figures.element, ...chartsNote(), this.devices, this.plan.element);
  }
  async load() {
    const address = `/api/v1/jobs/${encodeURIComponent(this.name)}`;
    const answer = await read(`${address}/history`);
    for (const series of answer.series) this.partOf(series.device).history.load(samplesOf(answer, series));
  }
  partOf(device) {
    if (!this.parts.has(device)) {
      const made = {
        history: new History(), figures: new Figures(), heading: element("h2", {}, `GPU ${device}`),
        causes: new Table("Time in which its calls waited, since it began", [
          { name: "Cause", text: (row) => row.name, isText: true }, { name: "Time", text: (row) => milliseconds(row.ns) },
          { name: "They waited for", text: (row) => row.meaning, isText: true, isWide: true }], (row) => row.name),
      };
      this.parts.set(device, made);
      this.devices.append(element("section", {}, made.heading, made.figures.element, made.history.element, made.causes.element));
    }
    return this.parts.get(device);
  }
  set(state) {
    const job = state.jobs.find((one) => one.job === this.name);
    this.ended.hidden = job !== undefined;
    if (job === undefined) return;
    this.figures.set([["Command", job.command], ["User", String(job.uid)], ["Runs for", duration(job.age_ns)],
      ["Processes", job.detached_processes > 0 ? `${job.processes}, ${job.detached_processes} cut off` : String(job.processes)]]);
    for (const device of job.devices) {
      const part = this.partOf(device.device);
      const prefetches = device.parts.prefetches;
      part.figures.set([["State", device.queue_position > 0 ? `${device.state}, ${device.queue_position} in the queue` : device.state],
        ["Budget", bytes(device.budget_bytes)], ["Wanted", bytes(device.wanted_bytes)], ["Resident", bytes(device.resident_bytes)],
        ["Guaranteed", bytes(device.guaranteed_bytes)], ["Limit", bytes(device.limit_bytes)], ["Weight, priority", `${device.weight}, ${device.priority}`],
        ["Host memory", `${bytes(device.host_bytes)} of ${bytes(device.host_budget_bytes)}`], ["Not pinned", bytes(device.ordinary_bytes)],
        ["Share of the link", percent(device.link_permille / 10)], ["Iterations", number(device.iterations, 0)],
        ["Prefetches", `${prefetches.hit} in time, ${prefetches.late} late, ${prefetches.unused} unused`],
        ["Fetched on demand", number(device.demand_fetches, 0)], ["Moved out, in", `${bytes(device.to_host_bytes)}, ${bytes(device.to_device_bytes)}`]]);
      part.causes.set(Object.entries(device.parts.stall_ns).filter(([, ns]) => ns > 0).map(([name, ns]) => ({ name: name.replace("_", " "), ns, meaning: CAUSES[name] || "" })));
      if (device.now) part.history.add(state.at_ms, device.now);
    }
    this.plan.follow(job);
  }
  charts() {
    return [...[...this.parts.values()].flatMap((one) => one.history.charts), ...this.plan.charts()];
  }
}

const HIDDEN_PLANS = "Plans are hidden at this address: a plan reveals the shape of its job's network. An operator can allow them by a token or a socket: " +
  "see “Who may look” in docs/live_page.md, or [http] in “man spillway.toml”.";

// What the agent's last plan for the job moves, and when within an iteration.
class PlanPart {
  constructor(name) {
    Object.assign(this, { name, asked: null, drawn: [] });
    this.body = element("div");
    this.element = element("section", {}, element("h2", {}, "Plan"), this.body);
  }
  // Asks again when the job's plan may be another.
  follow(job) {
    const now = plansAreShown ? JSON.stringify(job.devices.map((one) => [one.state, one.budget_bytes, one.parts.replans])) : "hidden";
    if (now === this.asked) return;
    this.asked = now;
    if (!plansAreShown) return this.say(HIDDEN_PLANS);
    this.load().catch((error) => {
      if (!(error instanceof Refused)) this.asked = null;
      this.say(error.message);
    });
  }
  say(text) {
    this.drawn = [];
    this.body.replaceChildren(element("p", { class: "soft" }, text));
  }
  async load() {
    const { plans } = await read(`/api/v1/jobs/${encodeURIComponent(this.name)}/plan`);
    if (plans.length === 0) return this.say("The agent has given this job no plan. It may follow one that it made itself, or one of an earlier run.");
    this.drawn = [];
    this.body.replaceChildren(...plans.map((plan) => this.partOf(plan)));
    this.drawn.forEach((draw) => draw());
  }
  partOf(plan) {
    const figures = new Figures();
    if (plan.error) return element("p", { class: "soft" }, `GPU ${plan.device}: ${plan.error}`);
    figures.set([["Device", `GPU ${plan.device}`], ["Comes from", ORIGINS[plan.origin] || plan.origin], ["Strategy", plan.strategy], ["For a budget of", bytes(plan.budget_bytes)],
      ["Iteration", milliseconds(plan.iteration_ns)], ["Operations", number(plan.operations, 0)], ["Run again", number(plan.recomputed, 0)],
      ["Leaves", bytes(plan.to_host_bytes)], ["Dropped", bytes(plan.dropped_bytes)], ["Comes back", bytes(plan.to_device_bytes)]]);
    const memory = new Chart("Memory over the iteration", [
      { name: "of the program", color: MEMORY[0].color }, { name: "budget", color: MEMORY[1].color, dashes: [6, 4] },
      { name: "resident by the plan", color: MEMORY[2].color, fill: true }], bytes, { isTime: false, isStep: true });
    const moves = new Chart("Moved, in each part of the iteration", [
      { name: "to the host", color: LINK[0].color }, { name: "to the device", color: LINK[1].color },
      { name: "dropped", color: CAUSE_COLORS[4] }], bytes, { isTime: false, isStep: true });
    this.drawn.push(
      () => memory.set(plan.at_ns.map((at, i) => [at, plan.wanted_bytes[i], plan.budget_bytes, plan.resident_bytes[i]])),
      () => moves.set(plan.at_ns.map((at, i) => [at, plan.moved_to_host_bytes[i], plan.moved_to_device_bytes[i], plan.moved_dropped_bytes[i]])));
    this.shown = [...(this.shown || []), memory, moves];
    const largest = new Table("Its largest moves", [
      { name: "Size", text: (row) => bytes(row.size_bytes) }, { name: "What", text: (row) => row.kind, isText: true },
      { name: "Operation", text: (row) => number(row.operation + 1, 0) }, { name: "At", text: (row) => milliseconds(row.at_ns) },
      { name: "Why", text: (row) => row.reason, isText: true, isWide: true }], (row) => `${row.step} ${row.buffer} ${row.kind}`);
    largest.set(plan.largest);
    return element("div", {}, figures.element, element("div", { class: "charts" }, memory.element, moves.element), largest.element,
      element("p", { class: "soft" }, "Times are those of the operations alone, as the job measured them. The job checks each plan, and follows it only where it finds it right."));
  }
  charts() {
    return (this.shown || []).filter((chart) => chart.plot.isConnected);
  }
}

// ---- the agent

class Refused extends Error {}

async function ask(path) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
  if (answer.status === 401) {
    await askForToken();
    return ask(path);
  }
  if (!answer.ok) throw new Refused((await answer.text()).trim().replace(/^\d+ /, ""));
  return answer;
}
const read = async (path) => (await ask(path)).json();

let typedToken = null;  // a promise while the form is shown
function askForToken() {
  const form = document.getElementById("token-form");
  document.getElementById("token-wrong").hidden = !sessionStorage.getItem("token");
  sessionStorage.removeItem("token");
  typedToken ||= new Promise((done) => {
    form.hidden = false;
    say("lost", "waiting for the token");
    form.onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem("token", document.getElementById("token").value.trim());
      document.getElementById("token").value = "";
      form.hidden = true;
      typedToken = null;
      done();
    };
    document.getElementById("token").focus();
  });
  return typedToken;
}

function say(kind, text) {
  const place = document.getElementById("connection");
  place.className = kind;
  setText(place, text);
  document.body.classList.toggle("stale", kind === "lost");
}

let view = null;
let newest = null;  // the newest state
let plansAreShown = true;

async function show() {
  const name = new URLSearchParams(location.hash.slice(1)).get("job");
  const next = name ? new JobView(name) : new NodeView();
  view = next;
  document.title = next.title;
  document.getElementById("main").replaceChildren(next.element);
  if (newest !== null) next.set(newest);
  await next.load();
}

// A new agent knows nothing of what was before it, and a missed sample is in its history.
async function take(state) {
  const isSame = newest !== null && newest.agent_instance === state.agent_instance;
  const isNext = isSame && state.tick <= newest.tick + 1;
  newest = state;
  say("live", `live, ${clock(state.at_ms)}`);
  if (!isNext) await view.load();
  view.set(state);
}

async function watch() {
  const answer = await ask("/api/v1/events");
  plansAreShown = answer.headers.get("Spillway-Plans") !== "hidden";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        if (data !== "") await take(JSON.parse(data));
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function main() {
  document.getElementById("host").textContent = location.host;
  DARK.addEventListener("change", () => view.charts().forEach((chart) => chart.redraw()));
  addEventListener("hashchange", () => show().then(() => document.getElementById("main").focus()).catch(() => {}));
  for (;;) {
    let why = "The agent does not answer";
    try {
      if (view === null) await show();
      await watch();
    } catch (error) {
      if (error instanceof Refused) why = `The agent says: ${error.message}`;
    }
    say("lost", `${why} (${clock(Date.now())}). Trying again; figures are the last known.`);
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

main();
