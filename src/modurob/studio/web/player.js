// Play, pause, scrub. Time lives here; the server hears nothing of it.
import { on, say } from "modurob-web/bus.js";
import { clock, play, seek, span } from "modurob-web/clock.js";

const SIGNS = { dock: "▲", undock: "▼", die: "✕", freeze: "‖", reboot: "↻", overload: "⚠" };
const LETTER = 6.3, GAP = 8; // pixels of a letter of a mark, and between two marks
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const MAGIC = "MRTJ", HEAD = 12;

// The player's binary: magic, version, size of a JSON header, header, float32 arrays.
function unpack(buffer, data) {
  const view = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (magic !== MAGIC) throw new Error("not a run");
  const length = view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, HEAD, length)));
  const first = HEAD + length;
  const array = ({ offset, shape }) => new Float32Array(buffer, first + offset, shape.reduce((a, b) => a * b, 1));
  const parts = header.parts.map((part, k) => ({ name: part.name, t: array(part.t), poses: array(part.poses), cast: data.casts[k] }));
  const begin = Math.min(...parts.map((p) => p.t[0])), end = Math.max(...parts.map((p) => p.t[p.t.length - 1]));
  return { parts, begin, end, mass: data.mass, tints: data.tints ?? [], ground: data.ground ?? null, panels: data.panels, events: data.events };
}

// Labels of events on the timeline: in full where there is room, else a sign, and one sign for several
// that would be drawn over each other.
export function marks(events, place) {
  const found = [];
  for (const { time, what } of [...events].sort((a, b) => a.time - b.time)) {
    const sign = SIGNS[what.split(" ")[0]] ?? "•", at = place(time), last = found[found.length - 1];
    if (last && at - last.at < 2 * GAP) {
      last.count += 1;
      Object.assign(last, { title: `${last.title}; ${what}`, text: `${last.sign}${last.count}` });
      continue;
    }
    const text = `${sign} ${what.split(" (")[0]}`, half = (LETTER * text.length) / 2;
    found.push({ time, at, sign, count: 1, title: what, text, half });
  }
  let end = -Infinity;
  found.forEach((mark, k) => {
    const next = found[k + 1]?.at ?? Infinity, short = LETTER * 1.5;
    if (mark.count > 1) mark.half = short;
    else if (mark.at - mark.half < end + GAP || mark.at + mark.half + GAP > next - short) Object.assign(mark, { text: mark.sign, half: short });
    end = mark.at + mark.half;
  });
  return found;
}

async function load(url) {
  const [bin, json] = await Promise.all([fetch(`${url}.bin`), fetch(`${url}.json`)]);
  if (!bin.ok || !json.ok) throw new Error("the files of this run are gone; run it again");
  return unpack(await bin.arrayBuffer(), await json.json());
}

export default {
  template: `
    <div class="player" role="group" aria-label="Player" @keydown="key">
      <button class="playbutton" :disabled="!run" @click="toggle" :aria-label="playing ? 'Pause' : 'Play'" data-testid="play">
        <span class="material-icons">{{ playing ? 'pause' : 'play_arrow' }}</span></button>
      <div class="track">
        <button v-for="e in marks" :key="e.at" class="event" :style="{ left: e.at + 'px' }" :title="e.title" @click="go(e.time)">{{ e.text }}</button>
        <input ref="range" type="range" :disabled="!run" min="0" max="1000" step="1" value="0" aria-label="Time" data-testid="scrub"
               @input="scrub" />
      </div>
      <span class="time" ref="time" data-testid="time">–</span>
      <select v-if="tints.length" aria-label="Color of modules" title="Color of modules" v-model="tint" @change="picked = tint; setTint()" data-testid="tint">
        <option value="">module colors</option><option v-for="t in tints" :key="t.key" :value="t.key">{{ t.title.toLowerCase() }}</option></select>
      <select aria-label="Speed" title="Speed" v-model.number="speed" @change="setSpeed"><option v-for="s in speeds" :key="s" :value="s">{{ s }}×</option></select>
      <button class="tool" :class="{ on: loop }" :aria-pressed="loop" title="Repeat" aria-label="Repeat" @click="setLoop"><span class="material-icons">repeat</span></button>
      <button class="tool" :class="{ on: mass }" :aria-pressed="mass" title="Center of mass" aria-label="Center of mass" @click="setMass"><span class="material-icons">adjust</span></button>
      <button v-if="run?.ground" class="tool" :class="{ on: contact }" :aria-pressed="contact" title="Forces of the ground, support polygon" aria-label="Forces of the ground, support polygon" data-testid="contact" @click="setContact"><span class="material-icons">publish</span></button>
      <span v-if="problem" class="bad-note" role="alert">{{ problem }}</span>
    </div>`,
  data: () => ({ run: null, playing: false, speed: 1, speeds: SPEEDS, loop: true, mass: true, contact: true, tint: "", picked: null, tints: [], problem: "", begin: 0, end: 1, wide: 400 }),
  computed: { marks() { return this.run ? marks(this.run.events, (t) => (this.wide * (t - this.begin)) / (this.end - this.begin)) : []; } },
  mounted() {
    const track = this.$el.querySelector(".track"), observer = new ResizeObserver(() => { this.wide = track.clientWidth || 400; });
    observer.observe(track);
    this.ends = [() => observer.disconnect(), on("time", (t) => this.show(t)), on("playing", (p) => { this.playing = p; })];
  },
  beforeUnmount() { play(false); this.ends.forEach((end) => end()); },
  methods: {
    // Runs by the addresses of their files; a second one is shown beside the first.
    async load_run(main, other = null, start = true) {
      play(false);
      this.problem = "";
      const asked = (this.asked = (this.asked ?? 0) + 1);
      try {
        const [first, second] = await Promise.all([load(main), other ? load(other) : null]);
        if (asked === this.asked) this.show_run(first, second, start);
      } catch (error) {
        this.problem = String(error.message ?? error);
        this.unload();
      }
    },
    show_run(first, second = null, start = true) {
      this.begin = first.begin;
      this.end = Math.max(first.end, second ? second.end : 0);
      this.run = Object.freeze({ events: first.events, ground: Boolean(first.ground) });
      span(this.begin, this.end);
      const run = { main: first, other: second };
      window.modurob = { ...(window.modurob ?? {}), run };
      this.tints = Object.freeze(first.tints);
      const usual = this.tints.find((t) => !t.quiet)?.key ?? "";
      this.tint = this.picked === "" || this.tints.some((t) => t.key === this.picked) ? this.picked : usual;
      say("run", run);
      this.setTint();
      if (start && window.modurob.stage.playback.active) play(true);
    },
    unload() { play(false); this.run = null; this.tints = []; window.modurob.run = null; say("run", null); this.$refs.time.textContent = "–"; },
    show(t) {
      const length = this.end - this.begin;
      this.$refs.range.value = length > 0 ? (1000 * (t - this.begin)) / length : 0;
      this.$refs.time.textContent = `${t.toFixed(2)} / ${this.end.toFixed(2)} s`;
    },
    time() { return this.begin + (this.$refs.range.value / 1000) * (this.end - this.begin); },
    scrub() { play(false); this.wake(); seek(this.time()); },
    go(t) { play(false); this.wake(); seek(t); },
    // The stage may show a pose: bring the run back.
    wake() { if (window.modurob.run && !window.modurob.stage.playback.active) { say("run", window.modurob.run); this.setTint(); } },
    toggle() { this.wake(); play(!clock.playing); },
    set_traces(names) { say("traces", names); },
    setSpeed() { clock.speed = this.speed; },
    setLoop() { this.loop = clock.loop = !this.loop; },
    setTint() { say("tint", this.tints.find((t) => t.key === this.tint) ?? null); },
    setMass() { this.mass = !this.mass; say("aids", { mass: this.mass }); },
    setContact() { this.contact = !this.contact; say("aids", { contact: this.contact }); },
    key(event) {
      const step = (this.end - this.begin) / 200;
      if (event.key === " " && !["BUTTON", "SELECT"].includes(event.target.tagName)) this.toggle();
      else if (event.target.tagName === "SELECT") return;
      else if (event.key === "ArrowRight" && event.target.type !== "range") this.go(clock.t + step);
      else if (event.key === "ArrowLeft" && event.target.type !== "range") this.go(clock.t - step);
      else return;
      event.preventDefault();
    },
  },
};
