// The studio's stage, player and plots as a page of their own.
import { createApp } from "vue";
import Stage from "modurob-web/organism.js";

// Rows of numbers, as `viewer.py` packs them: differences from row to row, one plane of bytes after the other.
async function unpacked({ unit, bytes }, rows) {
  const planes = new Uint8Array(await (await fetch(`data:application/octet-stream;base64,${bytes}`)).arrayBuffer());
  const count = planes.length / 4, width = count / rows, numbers = new Float32Array(count);
  for (let column = 0, i = 0; column < width; column++) {
    for (let row = 0, sum = 0; row < rows; row++, i++) {
      const whole = (planes[i] | planes[count + i] << 8 | planes[2 * count + i] << 16 | planes[3 * count + i] << 24) >>> 0;
      sum += (whole >>> 1) ^ -(whole & 1);
      numbers[row * width + column] = sum * unit;
    }
  }
  return numbers;
}

const LOW = 660; // [px] height below which plots start hidden

// A run as `player.js` hands it on.
async function opened(data) {
  const parts = await Promise.all(data.parts.map(async ({ name, t, poses }, k) => ({ name, t, poses: await unpacked(poses, t.length), cast: data.casts[k] })));
  const begin = Math.min(...parts.map((p) => p.t[0])), end = Math.max(...parts.map((p) => p.t[p.t.length - 1]));
  return { ...data, parts, begin, end };
}

export async function show(place, { state, run }) {
  const moving = run ? { Player: await import("modurob-web/player.js"), Plots: await import("modurob-web/plots.js") } : {};
  const data = run ? await opened(run) : null;
  const page = createApp({
    components: { Stage, ...Object.fromEntries(Object.entries(moving).map(([name, module]) => [name, module.default])) },
    template: `
      <div class="viewer">
        <div class="stage-box"><Stage ref="stage" /></div>
        <Player v-if="run" ref="player" />
        <div v-if="run" class="viewer-plots">
          <div class="row" role="group" aria-label="Plots"><button v-for="p in panels" :key="p.key" class="chip" :class="{ on: chosen.includes(p.key) }"
            :aria-pressed="chosen.includes(p.key)" @click="choose(p.key)">{{ p.title }}</button></div>
          <Plots v-show="chosen.length" ref="plots" @panels="({ panels }) => found(panels)" />
        </div>
      </div>`,
    data: () => ({ run: Boolean(run), panels: [], chosen: [] }),
    mounted() {
      if (state) this.$refs.stage.show_state({ ...state, fit: true });
      else this.$refs.player.show_run(data);
    },
    methods: {
      found(panels) {
        this.panels = panels;
        if (!this.chosen.length && innerHeight > LOW) this.choose(panels[0]?.key);
      },
      choose(key) {
        this.chosen = this.chosen.includes(key) ? this.chosen.filter((k) => k !== key) : [...this.chosen, key];
        this.$refs.plots.set_chosen(this.chosen);
      },
    },
  });
  place.replaceChildren();
  page.mount(place);
  window.modurob = { ...(window.modurob ?? {}), viewer: page };
}
