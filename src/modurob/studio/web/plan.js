// The organism from above, on a grid: click to dock, drag to move, right-click to remove.
import { highlight, on, Received } from "modurob-web/bus.js";
import { slack } from "modurob-web/manipulator.js";

const EDGE = 0.3; // of a cell: this near to a side means that side
const STEPS = [[1, 0], [0, 1], [-1, 0], [0, -1]]; // where headings 0, 1, 2, 3 point
const MARGIN = 1.6; // cells around the modules
const READABLE = 14; // pixels of a cell below which its texts are not drawn: too small to read, and they cost most

const at = (cell) => `translate(${cell.x} ${-cell.y})`;
const step = (side) => STEPS[side.heading];
const short = (name) => (name.length > 5 ? name.slice(0, 4) + "…" : name);

// What is there. By itself, so that a ghost or the cursor that moves does not have hundreds of modules compared.
const modules = {
  template: `
    <g v-for="cell in plan.cells" :key="cell.name" v-memo="[cell, marks.has(cell.name), dragged?.has(cell.name)]" :transform="at(cell)" class="plan-cell"
       :class="{ base: cell.base, chosen: marks.has(cell.name), dragged: dragged?.has(cell.name) }"
       :data-module="cell.name" :data-cell="cell.x + ',' + cell.y">
      <rect x="-0.44" y="-0.44" width="0.88" height="0.88" rx="0.12" :fill="cell.color" />
      <line v-if="cell.hinge !== null" class="plan-hinge" :x1="cell.hinge === 0 ? -0.38 : 0" :x2="cell.hinge === 0 ? 0.38 : 0"
            :y1="cell.hinge === 0 ? 0 : -0.38" :y2="cell.hinge === 0 ? 0 : 0.38" />
      <text v-for="side in cell.sides" :key="side.port" class="plan-side" :x="0.34 * step(side)[0]" :y="-0.34 * step(side)[1]">{{ side.port }}</text>
      <circle class="plan-disc" r="0.2" />
      <text class="plan-name">{{ short(cell.name) }}</text>
      <path v-if="cell.base" class="plan-base" d="M -0.44 -0.2 V -0.32 A 0.12 0.12 0 0 1 -0.32 -0.44 H -0.2 Z" />
    </g>
    <g v-for="link in plan.links" :key="link.child" v-memo="[link]" class="plan-link" :transform="'translate(' + link.x + ' ' + -link.y + ')'">
      <rect x="-0.16" y="-0.1" width="0.32" height="0.2" rx="0.06" /><text>{{ link.name }}</text>
    </g>`,
  props: { plan: Object, marks: Object, dragged: Object },
  methods: { at, step, short },
};

export default {
  components: { modules },
  template: `
    <div class="plan" :class="{ far }" tabindex="0" role="application" :aria-label="label" aria-describedby="plan-help"
         @keydown="key" @focus="focused = true" @blur="focused = false">
      <svg ref="svg" :viewBox="box" @pointermove="move" @pointerdown="press" @pointerup="release"
           @pointercancel="cancel" @pointerleave="leave" @contextmenu.prevent="erase" @wheel.prevent="wheel">
        <defs>
          <pattern id="plan-grid" width="1" height="1" patternUnits="userSpaceOnUse" x="-0.5" y="-0.5">
            <path d="M 1 0 H 0 V 1" class="plan-grid" />
          </pattern>
        </defs>
        <rect x="-500" y="-500" width="1000" height="1000" fill="url(#plan-grid)" />
        <rect v-if="hint" class="plan-hint" :x="hint.x - 0.46" :y="-hint.y - 0.46" width="0.92" height="0.92" rx="0.12" />
        <modules :plan="plan" :marks="marks" :dragged="drag?.names" />
        <g v-if="ghost" :transform="at(ghost)" class="plan-ghost" :class="{ bad: ghost.site.why }">
          <rect x="-0.44" y="-0.44" width="0.88" height="0.88" rx="0.12" :fill="ghost.color" />
          <text v-for="side in ghost.sides" :key="side.port" class="plan-side" :x="0.34 * step(side)[0]" :y="-0.34 * step(side)[1]">{{ side.port }}</text>
          <text class="plan-name">{{ ghost.symbol }}</text>
        </g>
        <rect v-if="focused && cursor" class="plan-cursor" :x="cursor.x - 0.48" :y="-cursor.y - 0.48" width="0.96" height="0.96" rx="0.14" />
      </svg>
      <div v-if="plan.cells.length === 0 && !hint" class="plan-empty">{{ plan.hidden ? 'This body has no cubes on a grid: build it in the 3D view.' : 'Click a cell to place the first module.' }}</div>
      <div class="bubble" v-if="bubble" :style="{ left: bubble.x + 'px', top: bubble.y + 'px' }" role="alert">{{ bubble.text }}</div>
      <div id="plan-help" class="sr-only">Arrow keys move the cursor, Enter docks or selects, R turns the new piece over a free cell, else the chosen module, B makes the base, Delete removes.</div>
    </div>`,
  data: () => ({
    plan: { cells: [], links: [], sites: [], hidden: 0 }, kind: null, selected: null, chosen: [], ghost: null, hint: null,
    drag: null, bubble: null, cursor: { x: 0, y: 0 }, focused: false, center: [0, 0], zoom: 7, size: [400, 300],
  }),
  computed: {
    box() {
      const [w, h] = this.size, width = this.zoom * Math.max(1, w / h), height = width * (h / w);
      return `${this.center[0] - width / 2} ${-this.center[1] - height / 2} ${width} ${height}`;
    },
    far() { const [w, h] = this.size; return w / (this.zoom * Math.max(1, w / h)) < READABLE; },
    marks() { return new Set([this.selected, ...this.chosen]); },
    label() { return `Plan of the organism, ${this.plan.cells.length} modules`; },
  },
  created() { this.received = new Received(); },
  mounted() {
    this.observer = new ResizeObserver(() => { this.size = [this.$el.clientWidth || 400, this.$el.clientHeight || 300]; });
    this.observer.observe(this.$el);
    this.ends = [
      on("highlight", ({ module }) => this.$el.classList.toggle("has-lit", Boolean(module))),
      on("carry", ({ event, done }) => this.carried(event, done)),
    ];
    window.modurob = { ...(window.modurob ?? {}), plan: this };
  },
  beforeUnmount() { this.observer.disconnect(); this.ends.forEach((end) => end()); },

  methods: {
    // -- what the server sends ---------------------------------------------------------------------
    set_plan(plan) {
      this.plan = Object.freeze(this.received.read(plan));
      this.ghost = this.bubble = this.drag = null;
      this.follow();
      if (this.turned) this.show(this.target(this.over)); // as it docks now
      this.turned = false;
    },
    set_palette(kind) { this.kind = kind; this.ghost = null; },
    select(name, chosen) { Object.assign(this, { selected: name, chosen }); },
    set_hint(hint) { this.hint = hint; if (hint) this.cursor = { x: hint.x, y: hint.y }; },
    explain(text) {
      const at = this.at_pixels ?? { x: 20, y: 40 };
      this.bubble = { text, x: Math.max(8, Math.min(at.x, this.size[0] - 270)), y: at.y + 14 };
      clearTimeout(this.hide);
      this.hide = setTimeout(() => (this.bubble = null), 8000);
    },

    // -- geometry ----------------------------------------------------------------------------------
    at, step, short,
    cell_at(x, y) { return this.plan.cells.find((c) => c.x === x && c.y === y); },
    point(event) {
      const r = this.$refs.svg.getBoundingClientRect(), b = this.$refs.svg.viewBox.baseVal;
      this.at_pixels = { x: event.clientX - r.x, y: event.clientY - r.y };
      return { x: b.x + (b.width * (event.clientX - r.x)) / r.width, y: -(b.y + (b.height * (event.clientY - r.y)) / r.height) };
    },
    follow() {
      const { cells } = this.plan;
      if (!cells.length) return;
      const xs = cells.map((c) => c.x), ys = cells.map((c) => c.y);
      const wide = Math.max(...xs) - Math.min(...xs) + 1 + 2 * MARGIN, high = Math.max(...ys) - Math.min(...ys) + 1 + 2 * MARGIN;
      const [w, h] = this.size, aspect = Math.max(1, w / h);
      const needed = Math.max(high, wide / aspect);
      const b = this.$refs.svg.viewBox.baseVal;
      const inside = cells.every((c) => Math.abs(c.x - this.center[0]) < b.width / 2 - 1.2 && Math.abs(c.y - this.center[1]) < b.height / 2 - 1.2);
      if (inside && this.zoom >= needed * 0.7 && this.zoom <= Math.max(8, needed * 2)) return;
      this.center = [(Math.max(...xs) + Math.min(...xs)) / 2, (Math.max(...ys) + Math.min(...ys)) / 2];
      this.zoom = Math.max(6, needed);
    },
    wheel(event) { this.zoom = Math.min(60, Math.max(3, this.zoom * Math.exp(0.001 * event.deltaY))); },

    // The free port nearest to a point of the grid: {site, x, y, heading}, or null.
    target(p, carried = null) {
      const x = Math.round(p.x), y = Math.round(p.y), here = this.cell_at(x, y);
      const near = [x + 0.5 - p.x, y + 0.5 - p.y, p.x - x + 0.5, p.y - y + 0.5]; // to the four edges
      if (here && !(carried && carried.has(here.name))) {
        const side = near.indexOf(Math.min(...near));
        return near[side] < EDGE ? this.site_of(here, side) : null;
      }
      const order = [0, 1, 2, 3].sort((a, b) => near[a] - near[b]);
      for (const direction of order) {
        const [dx, dy] = STEPS[direction], neighbor = this.cell_at(x + dx, y + dy);
        if (!neighbor || (carried && carried.has(neighbor.name))) continue;
        const found = this.site_of(neighbor, (direction + 2) % 4);
        if (found) return found;
      }
      return null;
    },
    site_of(cell, heading) {
      const side = cell.sides.find((s) => s.heading === heading);
      if (!side) return null;
      const site = this.plan.sites.find((s) => s.module === cell.name && s.port === side.port);
      const [dx, dy] = STEPS[heading];
      return site ? { site, x: cell.x + dx, y: cell.y + dy, heading } : null;
    },
    show(found) {
      if (!found) { this.ghost = null; return; }
      const { kind } = this, drawn = this.drag ? this.cell_named(this.drag.name) : null;
      const sides = drawn ? drawn.sides : Object.entries(kind?.sides ?? {}).map(([port, heading]) => ({ port, heading }));
      let quarter = 0;
      if (!drawn && kind?.grid) quarter = (found.heading + 2 - kind.sides[found.site.child_port] + 8) % 4;
      this.ghost = {
        ...found, color: drawn?.color ?? kind?.color ?? "#999", symbol: drawn ? this.short(drawn.name) : kind?.symbol ?? "?",
        sides: sides.map((s) => ({ port: s.port, heading: (s.heading + quarter) % 4 })),
      };
      if (found.site.why && !this.drag) this.explain(found.site.why);
      else this.bubble = null;
    },
    cell_named(name) { return this.plan.cells.find((c) => c.name === name); },

    // -- the pointer -------------------------------------------------------------------------------
    move(event) {
      if (!event.isPrimary) return;
      const p = (this.over = this.point(event)), x = Math.round(p.x), y = Math.round(p.y);
      const far = this.pressed && Math.hypot(event.clientX - this.pressed.x, event.clientY - this.pressed.y) > slack(event);
      if (far && !this.drag && this.pressed.cell && !this.pressed.cell.base) {
        this.drag = { name: this.pressed.cell.name, names: this.beyond(this.pressed.cell.name) };
        this.$refs.svg.setPointerCapture(event.pointerId);
      }
      if (far && !this.pressed.cell && event.buttons) {
        this.panned = true;
        const b = this.$refs.svg.viewBox.baseVal, scale = b.width / this.$refs.svg.clientWidth;
        this.center = [this.pressed.center[0] - scale * (event.clientX - this.pressed.x), this.pressed.center[1] + scale * (event.clientY - this.pressed.y)];
        return;
      }
      if (!this.drag) highlight(this.cell_at(x, y)?.name ?? null, null);
      this.show(this.target(p, this.drag?.names));
    },
    beyond(name) {
      const names = new Set([name]);
      for (const link of this.plan.links) if (names.has(link.parent)) names.add(link.child);
      return names;
    },
    press(event) {
      if (!event.isPrimary && !this.drag) this.pressed = null; // two fingers: no click
      if (event.button !== 0 || !event.isPrimary) return;
      const p = this.point(event);
      this.panned = false;
      this.pressed = { x: event.clientX, y: event.clientY, cell: this.cell_at(Math.round(p.x), Math.round(p.y)) ?? null, center: [...this.center] };
    },
    release(event) {
      if (!event.isPrimary) return;
      const { drag, pressed } = this, p = this.point(event);
      this.pressed = null;
      if (event.button !== 0 || !pressed || this.panned) return;
      if (drag) {
        const found = this.target(p, drag.names);
        this.drag = null;
        if (found) this.$emit("move", { name: drag.name, module: found.site.module, port: found.site.port });
        else this.explain("Drop it on a free side of another module.");
        return;
      }
      this.cursor = { x: Math.round(p.x), y: Math.round(p.y) }; // keys go on from here
      this.click(p);
    },
    // A kind of the palette is dragged over the plan, or dropped.
    carried(event, done) {
      const r = this.$refs.svg.getBoundingClientRect();
      const inside = event.clientX > r.x && event.clientX < r.right && event.clientY > r.y && event.clientY < r.bottom;
      if (inside && done) this.click(this.point(event));
      else this.show(inside ? this.target((this.over = this.point(event))) : null);
    },
    click(p) {
      const x = Math.round(p.x), y = Math.round(p.y);
      if (this.hint?.click && this.hint.x === x && this.hint.y === y) { this.$emit("dock", this.hint.click); return; }
      if (this.plan.cells.length === 0) {
        if (!this.plan.hidden) { this.center = [this.center[0] - x, this.center[1] - y]; this.cursor = { x: 0, y: 0 }; this.$emit("dock", { module: null, port: null }); }
        return;
      }
      const found = this.target(p), here = this.cell_at(x, y);
      if (found) this.$emit("dock", { module: found.site.module, port: found.site.port });
      else if (here) this.$emit("pick", { module: here.name });
      else this.explain(this.reason_for_no_dock(x, y));
    },
    reason_for_no_dock(x, y) {
      const near = STEPS.map(([dx, dy]) => this.cell_at(x + dx, y + dy)).filter(Boolean);
      if (!near.length) return "Nothing to dock to here: choose a cell beside a module.";
      return `'${near[0].name}' has no free dock on this side.`;
    },
    leave() { if (!this.drag) { this.ghost = null; this.turned = false; highlight(null, null); } },
    cancel() { this.pressed = this.drag = this.ghost = null; },
    erase(event) {
      const p = this.point(event), cell = this.cell_at(Math.round(p.x), Math.round(p.y));
      if (!cell || this.drag) return;
      this.pressed = null; // the end of a long press is no click
      this.$emit("remove", { module: cell.name });
    },

    // -- the keyboard ------------------------------------------------------------------------------
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const arrows = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] };
      const here = this.cell_at(this.cursor.x, this.cursor.y);
      const name = here?.name ?? this.selected, letter = event.key.toLowerCase();
      if (arrows[event.key]) {
        const [dx, dy] = arrows[event.key];
        this.cursor = { x: this.cursor.x + dx, y: this.cursor.y + dy };
        this.came = [-dx, -dy];
        const p = (this.over = this.toward());
        highlight(this.cell_at(this.cursor.x, this.cursor.y)?.name ?? null, null);
        this.show(this.target(p));
        this.at_pixels = { x: this.size[0] / 2, y: this.size[1] / 2 };
      } else if (event.key === "Enter" || event.key === " ") {
        this.click(here ? this.cursor : this.toward());
      } else if ((event.key === "Delete" || event.key === "Backspace") && name) this.$emit("remove", { module: name });
      else if (letter === "r") this.turn(here);
      else if (letter === "b" && name) this.$emit("rebase", { module: name });
      else return;
      event.preventDefault();
      event.stopPropagation(); // the page has keys, too
    },
    // The new piece over a free cell; without one, the module at the cursor or the chosen one.
    turn(here) {
      const { ghost, over } = this;
      this.turned = Boolean(ghost && !this.drag && ghost.x === Math.round(over.x) && ghost.y === Math.round(over.y));
      this.$emit("turn", this.turned ? { module: null, site: [ghost.site.module, ghost.site.port] } : { module: here?.name ?? null });
    },
    // A point of the cursor's cell near the edge it was entered by.
    toward() {
      const [dx, dy] = this.came ?? [0, 0];
      return { x: this.cursor.x + 0.4 * dx, y: this.cursor.y + 0.4 * dy };
    },
  },
};
