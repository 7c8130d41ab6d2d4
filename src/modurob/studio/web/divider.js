// The border between panel and stage: drag it, move it with arrow keys, or collapse the panel.
// Sizes are kept in the browser: a share of the window's width beside the stage, of its height below.
const KEPT = "modurob-divider";
const LEAST = 15, MOST = 85, STEP = 4; // percent
const STACKED = "(max-width: 760px) and (max-aspect-ratio: 1)"; // as in the style sheet

export default {
  template: `
    <div class="divider-box">
      <div class="divider" ref="bar" role="separator" tabindex="0" :aria-orientation="stacked ? 'horizontal' : 'vertical'" :aria-valuenow="now" aria-valuemin="0" aria-valuemax="100"
           aria-label="Size of the panel" title="Drag to resize, double-click for the usual size" data-testid="divider" @pointerdown="grab" @dblclick="set(null)" @keydown="key"></div>
      <button type="button" class="fold" :title="closed ? 'Show the panel' : 'Hide the panel'" :aria-label="closed ? 'Show the panel' : 'Hide the panel'" :aria-expanded="!closed" data-testid="fold"
              @click="close(!closed)"><span class="material-icons" aria-hidden="true">{{ arrow }}</span></button>
    </div>`,
  data: () => ({ sizes: {}, closed: false, stacked: false, now: 40 }),
  computed: {
    arrow() { return this.stacked ? (this.closed ? "expand_less" : "expand_more") : this.closed ? "chevron_right" : "chevron_left"; },
  },
  mounted() {
    try { this.sizes = JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { /* another program's text */ }
    this.media = matchMedia(STACKED);
    this.turned = () => { this.stacked = this.media.matches; this.show(); };
    this.media.addEventListener("change", this.turned);
    // a mode that is chosen while the panel is hidden brings it back
    this.opened = (event) => { if (this.closed && event.target.closest(".modes [role=tab]")) this.close(false); };
    document.addEventListener("click", this.opened);
    this.turned();
  },
  beforeUnmount() { this.media.removeEventListener("change", this.turned); document.removeEventListener("click", this.opened); },
  methods: {
    // Percent of the window that the panel has, or null for the usual size.
    set(percent) {
      const key = this.stacked ? "below" : "beside";
      if (percent === null) delete this.sizes[key];
      else this.sizes[key] = Math.min(MOST, Math.max(LEAST, Math.round(10 * percent) / 10));
      localStorage.setItem(KEPT, JSON.stringify(this.sizes));
      this.show();
    },
    show() {
      const size = Number(this.sizes[this.stacked ? "below" : "beside"]);
      const { style } = document.documentElement; // not the frame's own: each mode writes that anew
      if (size >= LEAST && size <= MOST) style.setProperty("--own", `${size}${this.stacked ? "vh" : "vw"}`);
      else style.removeProperty("--own");
      this.now = Math.round(this.share());
    },
    share() {
      const { width, height } = this.$el.closest(".frame").querySelector(".side").getBoundingClientRect();
      return this.stacked ? (100 * height) / innerHeight : (100 * width) / innerWidth;
    },
    close(on) { this.closed = on; document.documentElement.classList.toggle("folded", on); },
    grab(event) {
      if (event.button) return;
      event.preventDefault();
      const start = this.stacked ? -event.clientY : event.clientX, before = this.closed ? 0 : this.share();
      const moved = (e) => {
        this.close(false);
        this.set(before + (100 * ((this.stacked ? -e.clientY : e.clientX) - start)) / (this.stacked ? innerHeight : innerWidth));
      };
      const { bar } = this.$refs;
      bar.setPointerCapture(event.pointerId);
      bar.addEventListener("pointermove", moved);
      bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", moved), { once: true });
    },
    key(event) {
      const larger = this.stacked ? "ArrowUp" : "ArrowRight", smaller = this.stacked ? "ArrowDown" : "ArrowLeft";
      if (event.key === larger) this.set(this.share() + STEP);
      else if (event.key === smaller) this.set(this.share() - STEP);
      else if (event.key === "Enter") this.close(!this.closed);
      else return;
      event.preventDefault();
    },
  },
};
