// Quantities over time, drawn by ECharts; the cursor is a line of ours that follows the player.
import { echarts } from "nicegui-echart";
import { color, highlight, on } from "modurob-web/bus.js";
import { clock, play, seek } from "modurob-web/clock.js";

const GROUP = "modurob", LEFT = 58, RIGHT = 14; // [px] beside the lines of a plot
const PADDING = 6; // [px] of a plot's box
const NAMED = 10; // lines with names in a legend; more are named by the tooltip
const TIPS = 14; // lines in a tooltip

export default {
  template: `
    <div class="plots">
      <div v-for="panel in shown" :key="panel.key" class="plot" :data-plot="panel.key">
        <h3>{{ panel.title }} [{{ panel.unit }}]<span v-if="panel.left_out" class="note"> · {{ panel.left_out }} more lines are in the CSV file</span></h3>
        <div class="plot-chart" :ref="(el) => hold(panel.key, el)" role="img" :aria-label="describe(panel)"></div>
        <div class="plot-cursor" :style="{ '--above': above(panel) + 'px' }" :ref="(el) => holdCursor(panel.key, el)"></div>
      </div>
      <div v-if="!run" class="note">No run to show yet: press Run under Move.</div>
    </div>`,
  data: () => ({ chosen: ["q", "tau", "error"], keys: [], run: false }),
  computed: { shown() { this.version; return this.run ? this.panels().filter((p) => this.chosen.includes(p.key)) : []; } },
  created() { this.charts = new Map(); this.boxes = new Map(); this.cursors = new Map(); },
  mounted() {
    this.ends = [on("run", (run) => this.set_run(run)), on("time", (t) => this.follow(t)), on("theme", () => this.draw())];
    this.observer = new ResizeObserver(() => { for (const chart of this.charts.values()) chart.resize(); this.place(); });
    this.observer.observe(this.$el);
    window.modurob = { ...(window.modurob ?? {}), plots: this };
    if (window.modurob.run) this.set_run(window.modurob.run);
  },
  beforeUnmount() { this.ends.forEach((end) => end()); this.observer.disconnect(); for (const chart of this.charts.values()) chart.dispose(); },
  updated() { this.draw(); },
  methods: {
    panels() { return this.data?.main.panels ?? []; },
    hold(key, element) { if (element) this.boxes.set(key, element); else this.boxes.delete(key); },
    holdCursor(key, element) { if (element) this.cursors.set(key, element); else this.cursors.delete(key); },
    set_run(run) {
      this.data = run; // not reactive: long arrays
      this.run = false;
      this.$nextTick(() => {
        this.run = Boolean(run);
        const modules = new Set(run?.main.parts.flatMap((part) => part.cast.modules.map((m) => m.name)));
        this.$emit("panels", { panels: this.panels().map(({ key, title }) => ({ key, title })), modules: [...modules] });
      });
    },
    set_chosen(keys) { this.chosen = keys; },
    describe(panel) { return `${panel.title} over time, ${panel.lines.length} lines: ${panel.lines.slice(0, 6).map((l) => l.name).join(", ")}`; },

    draw() {
      for (const [key, chart] of this.charts) if (this.boxes.get(key) !== chart.getDom()) { chart.dispose(); this.charts.delete(key); }
      for (const panel of this.shown) {
        const box = this.boxes.get(panel.key);
        if (!box || !box.clientWidth) continue;
        if (!this.charts.has(panel.key)) this.charts.set(panel.key, this.open(box));
        this.charts.get(panel.key).setOption(this.option(panel), { notMerge: true });
      }
      this.place();
    },
    open(box) {
      const chart = echarts.init(box, null, { renderer: "canvas" });
      chart.group = GROUP;
      chart.getZr().on("click", (event) => {
        if (!chart.containPixel("grid", [event.offsetX, event.offsetY])) return;
        play(false);
        seek(chart.convertFromPixel({ xAxisIndex: 0 }, event.offsetX));
      });
      chart.on("mouseover", (e) => e.seriesId && highlight(null, e.seriesId.split("|")[1] || null));
      chart.on("mouseout", () => highlight(null, null));
      chart.on("datazoom", () => this.place());
      echarts.connect(GROUP); // zoom and tooltip of one are those of all
      return chart;
    },
    above: (panel) => panel.lines.length <= NAMED ? 24 : 8, // [px] for the legend
    option(panel) {
      const ink = color("soft"), line = color("line"), few = panel.lines.length <= NAMED;
      const names = [...new Set(panel.lines.map((l) => l.name))];
      // commas in hsl(), or ECharts cannot read it and draws no line under the cursor
      const tint = (name) => few || names.length <= 8 ? color(`series-${(names.indexOf(name) % 8) + 1}`) : `hsl(${(300 * names.indexOf(name)) / names.length}, 65%, 50%)`;
      const series = panel.lines.flatMap((l, k) => this.series(l, k, tint(l.name), ""));
      const second = this.data.other?.panels.find((p) => p.key === panel.key);
      if (second) series.push(...second.lines.flatMap((l, k) => this.series(l, k, tint(l.name), "second")));
      return {
        animation: false, textStyle: { fontFamily: getComputedStyle(this.$el).fontFamily, color: ink },
        grid: { left: LEFT, right: RIGHT, top: this.above(panel), bottom: 24 },
        // marks as high as the text: ECharts cuts off what is higher than they are
        legend: few ? { type: "scroll", top: -2, left: 50, icon: "roundRect", itemWidth: 4, itemHeight: 14, textStyle: { color: ink, fontSize: 11 }, data: names, pageIconColor: ink, pageTextStyle: { color: ink } } : undefined,
        tooltip: { trigger: "axis", confine: true, transitionDuration: 0, backgroundColor: color("panel"), borderColor: line, textStyle: { color: color("ink"), fontSize: 12 }, formatter: (items) => this.tip(items), axisPointer: { lineStyle: { color: ink } } },
        xAxis: { type: "value", min: clock.begin, max: clock.end, axisLine: { lineStyle: { color: line } }, axisLabel: { color: ink, fontSize: 11, formatter: (v) => `${+v.toFixed(3)} s`, hideOverlap: true }, splitLine: { show: false } },
        yAxis: { type: "value", scale: true, axisLabel: { color: ink, fontSize: 11, formatter: (v) => `${+v.toPrecision(4)}` }, splitLine: { lineStyle: { color: line } }, splitNumber: 4 },
        dataZoom: [{ type: "inside", filterMode: "none" }],
        series,
      };
    },
    series(l, k, tint, which) {
      const id = `${which}${k}|${l.joint ?? ""}|${l.name}`, common = { type: "line", showSymbol: false, z: which ? 1 : 2 };
      const points = (y) => l.t.map((t, i) => [t, y[i]]);
      const found = [{ ...common, id, name: l.name, data: points(l.y), lineStyle: { width: which ? 1.3 : 1.7, type: which || l.dashed ? [5, 4] : "solid", color: tint }, itemStyle: { color: tint }, triggerLineEvent: true }];
      if (l.low && !which) {
        const band = { ...common, lineStyle: { opacity: 0 }, stack: id, silent: true, tooltip: { show: false }, stackStrategy: "all" };
        found.push({ ...band, id: `${id}|low`, data: points(l.low) });
        found.push({ ...band, id: `${id}|high`, data: points(l.high.map((h, i) => h - l.low[i])), areaStyle: { color: tint, opacity: 0.14 } });
      }
      return found;
    },
    // Names come from files: they are shown as text, never as markup.
    tip(items) {
      const box = document.createElement("div");
      box.append(`${items[0].axisValue.toFixed(3)} s`);
      const shown = items.filter((i) => i.seriesName && Number.isFinite(i.value[1]) && !/\|(low|high)$/.test(i.seriesId));
      if (shown.length > TIPS / 2) box.style.columns = 2; // a plot is not high
      for (const item of shown.slice(0, TIPS)) {
        const row = document.createElement("div"), dot = document.createElement("span");
        dot.style.cssText = `display:inline-block;width:8px;height:8px;border-radius:4px;margin-right:6px;background:${item.color}`;
        row.append(dot, `${item.seriesName}${item.seriesId.startsWith("second") ? " (compared)" : ""}: ${(+item.value[1]).toPrecision(5)}`);
        box.append(row);
      }
      if (shown.length > TIPS) box.append(`and ${shown.length - TIPS} more`);
      return box;
    },

    // -- the cursor --------------------------------------------------------------------------------
    place() {
      this.scales = [];
      for (const [key, chart] of this.charts) {
        const cursor = this.cursors.get(key);
        if (!cursor) continue;
        const a = chart.convertToPixel({ xAxisIndex: 0 }, clock.begin), b = chart.convertToPixel({ xAxisIndex: 0 }, clock.end);
        this.scales.push([cursor, a, (b - a) / (clock.end - clock.begin || 1), chart.getWidth() - RIGHT]);
      }
      this.follow(clock.t);
    },
    follow(t) {
      for (const [cursor, first, scale, last] of this.scales ?? []) {
        const x = first + scale * (t - clock.begin);
        cursor.style.transform = `translateX(${x + PADDING}px)`;
        cursor.style.visibility = x < LEFT - 1 || x > last + 1 ? "hidden" : "";
      }
    },
  },
};
