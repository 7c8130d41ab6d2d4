// The modules as a tree, each with the ports that are free: search, choose, rename, dock, all by keys, too.
import { highlight, Received } from "modurob-web/bus.js";

export default {
  template: `
    <div class="tree">
      <input class="tree-search" type="search" v-model="search" placeholder="Search modules" aria-label="Search modules" data-testid="tree-search" @keydown.down.prevent="enter" />
      <div class="tree-rows" role="tree" aria-label="Modules" aria-multiselectable="true" ref="rows" @keydown="key">
        <div v-for="row in rows" :key="row.key" v-memo="[row.source, row.inner, chosen.has(row.name), row.key === focus, closed.has(row.name), naming === row.name, row.port && kind]" class="tree-row" :class="{ on: !row.port && chosen.has(row.name), port: row.port, bad: row.why }" role="treeitem"
             :id="'row-' + row.key" :aria-level="row.depth + 1" :aria-selected="row.port ? undefined : chosen.has(row.name)" :aria-expanded="row.inner ? !closed.has(row.name) : undefined"
             :tabindex="row.key === focus ? 0 : -1" :style="{ paddingLeft: 8 + 14 * Math.min(row.depth, 12) + 'px' }" :title="row.why || null"
             :data-module="row.port ? null : row.name" :data-testid="'row-' + row.key" @click="click(row, $event)" @dblclick="rename(row)" @focus="look(row)">
          <template v-if="row.port"><span class="tree-plus" aria-hidden="true">+</span><span>{{ row.port }}</span><span class="tree-kind">{{ row.why ? 'cannot dock here' : 'dock ' + kind + ' here' }}</span></template>
          <template v-else>
            <button v-if="row.inner" type="button" class="tree-fold" tabindex="-1" :aria-label="closed.has(row.name) ? 'Unfold' : 'Fold'" @click.stop="fold(row.name)">{{ closed.has(row.name) ? '▸' : '▾' }}</button><span v-else class="tree-fold"></span>
            <span class="swatch" :style="{ background: row.color }">{{ row.symbol }}</span>
            <input v-if="naming === row.name" class="tree-name" v-model="draft" :aria-label="'New name of ' + row.name" data-testid="tree-name" @keydown.stop="typed(row, $event)" @blur="naming = null" @click.stop />
            <b v-else>{{ row.name }}</b><span class="tree-kind">{{ row.kind }}{{ row.base ? ', base' : '' }}</span><span class="tree-port" v-if="row.via">{{ row.via }}</span>
          </template>
        </div>
        <div v-if="!rows.length" class="note" style="padding: 10px">{{ search ? 'No module matches.' : 'There is no module yet: choose a kind above and press Enter.' }}</div>
      </div>
    </div>`,
  data: () => ({ modules: [], sites: new Map(), kind: "", search: "", closed: new Set(), chosen: new Set(), focus: null, naming: null, draft: "" }),
  computed: {
    last() { return this.modules[this.modules.length - 1]?.name; }, // nothing is chosen: it is docked to the end
    children() { return new Set(this.modules.map((m) => m.parent)); },
    rows() {
      const wanted = this.search.trim().toLowerCase(), hidden = new Set(), rows = [];
      const open = this.chosen.size === 1 ? [...this.chosen][0] : this.chosen.size ? null : this.last;
      for (const module of this.modules) {
        const match = !wanted || module.name.toLowerCase().includes(wanted) || module.kind.toLowerCase().includes(wanted);
        if (!wanted && (hidden.has(module.parent) || (module.parent && this.closed.has(module.parent)))) hidden.add(module.name);
        if (!match || hidden.has(module.name)) continue;
        rows.push({ ...module, source: module, key: module.name, inner: !wanted && this.children.has(module.name) });
        if (module.name !== open) continue;
        for (const site of this.sites.get(module.name) ?? []) rows.push({ key: `${module.name}:${site.label}`, name: module.name, depth: module.depth + 1, source: site, ...site });
      }
      return rows;
    },
  },
  created() { this.received = new Received(); },
  mounted() { window.modurob = { ...(window.modurob ?? {}), tree: this }; },

  methods: {
    // -- what the server sends ---------------------------------------------------------------------
    set_tree(tree) {
      const { modules, sites, kind } = this.received.read(tree);
      Object.assign(this, { modules: Object.freeze(modules), sites: Object.freeze(new Map(sites)), kind });
      if (!modules.some((m) => m.name === this.naming)) this.naming = null;
      const docked = this.wanted && modules.find((m) => m.parent === this.wanted.name && m.held === this.wanted.label);
      const renamed = modules.some((m) => m.name === this.renamed) ? this.renamed : null;
      this.wanted = null;
      if (renamed) { this.renamed = null; this.to(renamed); }
      if (docked) this.$emit("pick", { modules: [docked.name] });
      if (docked) this.to(docked.name);
      else if (!this.rows.some((row) => row.key === this.focus)) this.focus = this.rows[0]?.key ?? null;
    },
    select(names) { this.chosen = new Set(names); if (names.length === 1 && !this.holds()) this.reveal(names[0]); },

    // -- focus -------------------------------------------------------------------------------------
    holds() { return this.$refs.rows.contains(document.activeElement); },
    reveal(name) { this.focus = name; this.$nextTick(() => document.getElementById(`row-${name}`)?.scrollIntoView({ block: "nearest" })); },
    to(key) { this.focus = key; this.$nextTick(() => document.getElementById(`row-${key}`)?.focus()); },
    enter() { if (this.rows.length) this.to(this.rows[0].key); },
    look(row) { this.focus = row.key; highlight(row.name, null); },
    fold(name) {
      const closed = new Set(this.closed);
      if (!closed.delete(name)) closed.add(name);
      this.closed = closed;
    },

    // -- doing -------------------------------------------------------------------------------------
    click(row, event) {
      if (row.port) return this.dock(row);
      this.to(row.key);
      this.$emit("pick", { modules: [row.name], more: event.ctrlKey || event.metaKey || event.shiftKey });
    },
    dock(row) {
      this.wanted = row;
      this.$emit("dock", { module: row.name, port: row.label });
    },
    rename(row) {
      if (row.port) return;
      this.naming = this.draft = row.name; // typed text is kept: each update of the row writes it again
      this.$nextTick(() => { const field = this.$el.querySelector(".tree-name"); field?.focus(); field?.select(); });
    },
    typed(row, event) {
      if (event.key === "Escape") this.naming = null;
      else if (event.key !== "Enter") return;
      const name = this.draft.trim();
      event.preventDefault();
      this.to(row.name);
      if (this.naming && name && name !== row.name) {
        this.renamed = name;
        this.$emit("rename", { module: row.name, name });
      }
      this.naming = null;
    },
    key(event) {
      if (event.ctrlKey || event.metaKey || event.target.tagName === "INPUT") return;
      const { rows } = this, at = rows.findIndex((row) => row.key === this.focus), row = rows[at];
      if (event.altKey) {
        const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!way || !row || row.port) return;
        this.renamed = row.name; // the focus stays on it
        this.$emit("shift", { name: row.name, step: way });
        event.preventDefault();
        event.stopPropagation();
        return;
      }
      const step = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
      if (step !== undefined) { if (rows[step]) this.to(rows[step].key); }
      else if (!row && event.key === "Enter") this.$emit("dock", { module: null, port: null });
      else if (!row) return;
      else if (event.key === "Enter" || event.key === " ") this.click(row, event);
      else if (event.key === "ArrowRight" && row.inner && this.closed.has(row.name)) this.fold(row.name);
      else if (event.key === "ArrowRight") { if (rows[at + 1]?.depth > row.depth) this.to(rows[at + 1].key); }
      else if (event.key === "ArrowLeft" && row.inner && !this.closed.has(row.name)) this.fold(row.name);
      else if (event.key === "ArrowLeft") { if (row.port || row.parent) this.to(row.port ? row.name : row.parent); }
      else if (event.key === "F2") this.rename(row);
      else if (event.key === "Delete" && !row.port) this.$emit("remove", { module: row.name });
      else if (event.key.toLowerCase() === "r") this.$emit("turn", row.port ? { module: null, site: [row.name, row.label] } : { module: row.name });
      else if (event.key.toLowerCase() === "b" && !row.port) this.$emit("rebase", { module: row.name });
      else return;
      event.preventDefault();
      event.stopPropagation(); // the page has keys, too
    },
  },
};
