// The stage: the organism in three dimensions, built by clicks on free ports, or played back.
import { THREE } from "nicegui-scene";
import { color, highlight, on, Received, say } from "modurob-web/bus.js";
import { Eye } from "modurob-web/eye.js";
import { Scenery, software } from "modurob-web/scenery.js";
import { Bodies, FINE, FLIP, matrix } from "modurob-web/solids.js";
import { Manipulator, ghost_cast, slack } from "modurob-web/manipulator.js";
import { Playback } from "modurob-web/playback.js";
import { WEIGHT } from "modurob-web/contact.js";
import { Measures } from "modurob-web/measure.js";
import { Guides } from "modurob-web/guides.js";
import { LiveView } from "modurob-web/live.js";

// What the camera does during playback.
const FOLLOW = { base: "The camera follows the base", mass: "The camera follows the center of mass", free: "The camera stays" };
const SLOW = 40; // milliseconds between frames without a graphics card: the page has to live, too
const HOVER = 80; // milliseconds until it marks what is under the pointer: a click has its answer by then, in one frame

export default {
  template: `
    <div class="stage" tabindex="0" role="application" :aria-label="'3D view: ' + summary" @keydown="key">
      <canvas class="stage-canvas" aria-hidden="true"></canvas>
      <div class="stage-labels" aria-hidden="true"></div>
      <div class="bubble" v-if="bubble" :style="{ left: bubble.x + 'px', top: bubble.y + 'px' }" role="alert">{{ bubble.text }}</div>
      <div class="scale" v-if="scale" data-testid="scale">{{ scale.title }}<span>0</span><i></i><span>{{ scale.most }} {{ scale.unit }}{{ scale.key === 'known' || scale.most === 100 ? ' or more' : '' }}</span></div>
      <div class="stage-top">
        <button v-if="played && mode === 'move'" type="button" class="chip" data-testid="back-to-pose" @click="stop_run()">Back to the pose at the start</button>
        <div class="way" ref="way"></div>
      </div>
      <div class="stage-box-select" ref="box"></div>
      <div class="stage-labels" ref="measures" data-testid="measures" aria-live="off"></div>
      <div class="stage-arrows" ref="arrows"></div>
      <div class="legend" v-if="live" data-testid="legend"><span><i class="out"></i>torques</span><span><i class="back"></i>readings</span><span><i class="ghost"></i>not found</span><span><i class="silent"></i>silent</span><span><i class="dead"></i>killed</span></div>
      <div class="legend" v-if="forces" data-testid="forces"><span><i class="force"></i>ground force, {{ forces }} N for a module's width</span><span><i class="support"></i>support polygon</span><span><i class="dead"></i>center of mass outside</span></div>
      <div class="scalebar" ref="bar" aria-hidden="true" data-testid="scale-bar"></div>
      <div class="sr-only" role="status" aria-live="polite">{{ said }}</div>
      <div class="stage-tools">
        <button class="tool" title="Show all (F)" aria-label="Show all" @click="fit()"><span class="material-icons">fit_screen</span></button>
        <button class="tool" title="Seen from above (T)" aria-label="Seen from above" @click="from_above()"><span class="material-icons">vertical_align_bottom</span></button>
        <button class="tool" :class="{ on: names }" title="Names of modules (N)" aria-label="Names of modules" :aria-pressed="names" @click="names = !names; relabel()"><span class="material-icons">label</span></button>
        <button class="tool" :class="{ on: axes }" title="Joint axes (A)" aria-label="Joint axes" :aria-pressed="axes" @click="axes = !axes; redraw()"><span class="material-icons">sync_alt</span></button>
        <button class="tool" :class="{ on: follow !== 'free' }" :title="FOLLOW[follow] + ' (C changes it)'" :aria-label="FOLLOW[follow]" data-testid="follow" @click="set_follow()"><span class="material-icons">{{ { base: 'videocam', mass: 'adjust', free: 'videocam_off' }[follow] }}</span></button>
      </div>
    </div>`,
  props: { mode: String },
  data: () => ({ bubble: null, names: false, axes: false, follow: "base", FOLLOW, summary: "empty", said: "", scale: null, live: false, played: false, forces: 0 }),
  computed: { building() { return this.mode === "build"; } },
  watch: { mode() { this.redraw(); } },

  mounted() {
    // Not in data(): Vue's proxies cost time and break three.js.
    const { tick } = this;
    const S = (this.S = { set dirty(on) { this.stale = on; this.frame ??= requestAnimationFrame(tick); } }); // no frames at rest
    const canvas = this.$el.querySelector("canvas");
    S.canvas = canvas;
    S.labels = this.$el.querySelector(".stage-labels");
    const rich = (S.rich = !software());
    S.renderer = new THREE.WebGLRenderer({ canvas, antialias: rich });
    S.renderer.setPixelRatio(Math.min(rich ? 2 : 1, devicePixelRatio));
    S.renderer.shadowMap.enabled = rich;
    S.renderer.shadowMap.type = THREE.PCFSoftShadowMap;
    S.scene = new THREE.Scene();
    S.eye = new Eye(canvas, () => (S.dirty = true));
    S.camera = S.eye.camera;
    S.scenery = new Scenery(S.scene, rich);
    S.bodies = new Bodies(S.scene, rich);
    S.ghost = new Bodies(S.scene, rich, 0.5);
    S.other = new Bodies(S.scene, rich, 0.28);
    S.keyframes = new Bodies(S.scene, rich, 0.22);
    S.playback = new Playback(S.scene, S.bodies, S.other, { moved: () => { S.dirty = true; }, changed: () => this.relabel() });
    S.live = new LiveView(S.scene, S.bodies, S.other);
    this.markers();
    S.state = S.selected = null;
    S.received = new Received();
    S.chosen = new Set();
    S.ray = new THREE.Raycaster();
    S.aimed = (event) => this.aimed(event);
    S.hands = new Manipulator(S, {
      emit: (event, detail) => this.$emit(event, detail), changed: () => (S.dirty = true),
      note: (text) => (this.$refs.way.textContent = text), ghost: (port) => this.show_ghost(port), box: this.$refs.box,
    });
    S.dirty = true;
    S.rendered = 0;
    S.observer = new ResizeObserver(() => this.resize());
    S.observer.observe(this.$el);
    S.ends = [
      on("highlight", (under) => {
        S.under = under;
        S.hover ??= setTimeout(() => this.lit(S.under.module, S.under.joint), S.rich ? 0 : HOVER);
      }),
      on("theme", () => this.theme()),
      on("command", (what) => this.$emit("command", what)),
      on("time", (t) => { if (S.playback.active) { S.playback.show(t); this.go_along(); this.aim(); } }),
      on("run", (run) => this.show_run(run)),
      on("traces", (chosen) => { S.playback.trace(chosen); S.dirty = true; }),
      on("tint", (tint) => { S.playback.tint(tint?.key); this.scale = S.playback.tinted ? tint : null; S.dirty = true; }),
      on("aids", (aids) => { S.playback.aids(aids); this.explain_forces(); S.dirty = true; }),
    ];
    S.measures = new Measures(S.scene, this.$refs.measures);
    S.guides = new Guides(this.$refs.bar, this.$refs.arrows, (place) => this.visit(place));
    this.theme();
    this.pointer(canvas);
    window.modurob = { ...(window.modurob ?? {}), stage: S };
  },

  beforeUnmount() {
    cancelAnimationFrame(this.S.frame);
    this.S.frame = 0; // not null: none is asked for any more
    clearTimeout(this.S.hover);
    this.S.observer.disconnect();
    this.S.ends.forEach((end) => end());
    this.S.hands.dispose();
    this.S.renderer.dispose();
  },

  methods: {
    // A frame. The camera's damping asks for the next one while it moves.
    tick() {
      const { S } = this, { clientWidth: w, clientHeight: h } = this.$el;
      S.frame = null;
      S.eye.controls.update();
      if (S.live.active && S.live.animate(performance.now())) S.dirty = true;
      if (!S.stale) return;
      if (!S.rich && !S.urgent && performance.now() - S.rendered < SLOW) { S.dirty = true; return; }
      S.stale = S.urgent = false;
      S.hands.place_rings();
      S.measures.draw(S.bodies, S.camera, w, h);
      S.renderer.render(S.scene, S.camera);
      this.place_labels();
      S.guides.measure(S.camera, S.eye.controls.target, h);
      S.guides.point(S.camera, S.playback.active ? S.playback.pieces() : [], w, h, S.eye.controls.target);
      S.rendered = performance.now();
    },

    // -- what is drawn beside the body -------------------------------------------------------------
    markers() {
      const { S } = this;
      S.discs = [10, 24].map((edges) => new THREE.CylinderGeometry(1, 1, 0.25, edges).rotateX(Math.PI / 2));
      S.ports = new THREE.InstancedMesh(S.discs[1],
        new THREE.MeshBasicMaterial({ transparent: true, opacity: 0.9 }), 2000);
      S.ports.count = 0;
      S.ports.frustumCulled = false;
      S.scene.add(S.ports);
      S.base = new THREE.Mesh(new THREE.RingGeometry(0.78, 0.9, 4, 1, Math.PI / 4), new THREE.MeshBasicMaterial({ side: THREE.DoubleSide, transparent: true, opacity: 0.85 }));
      S.base.visible = false;
      S.scene.add(S.base);
      S.axes = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial());
      S.axes.frustumCulled = false;
      S.axis = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 2, 12).rotateX(Math.PI / 2),
        new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.85 })); // shines through
      S.axis.renderOrder = 9;
      S.axis.visible = false;
      S.scene.add(S.axes, S.axis);
    },
    theme() {
      const { S } = this;
      S.scenery.theme();
      S.axes.material.color.set(color("axis"));
      S.axis.material.color.set(color("axis"));
      S.base.material.color.set(color("accent"));
      S.playback.theme();
      S.live.theme();
      S.hands.theme();
      this.ground();
      this.redraw();
    },
    resize() {
      const { S } = this, { clientWidth: w, clientHeight: h } = this.$el;
      if (!w || !h) return;
      const whole = !S.eye.misses(this.seen());
      S.renderer.setSize(w, h, false);
      S.eye.resize(w, h);
      if (whole && S.eye.misses(this.seen())) this.fit(false); // less wide than before
      S.dirty = true;
    },
    ground() {
      const { S } = this, box = S.live.active ? this.seen() : S.bodies.box();
      // it stays while joints move
      if (S.playback.active) S.scenery.put(box, S.playback.ground.height, S.playback.ground.slope);
      else S.scenery.put(box, S.live.active ? S.scenery.height : box.min.z);
    },

    // -- what the server sends ---------------------------------------------------------------------
    set_state(data) {
      const { bodies, modules, solids, joints, ...state } = this.S.received.read(data);
      this.show_state({ ...state, cast: modules.length ? { bodies, modules, solids, joints } : null });
    },
    show_state(state) {
      const { S } = this, first = !S.state?.cast;
      S.state = state;
      S.playback.stop();
      S.live.stop();
      this.live = this.played = false;
      S.other.clear();
      const hovered = S.ghostPort;
      S.ghostPort = null;
      S.ghost.clear();
      this.bubble = this.scale = null;
      this.explain_forces();
      if (!state.cast) {
        S.bodies.clear();
        this.summary = "empty";
      } else {
        S.bodies.set(state.cast);
        S.bodies.pose(state.poses.flat());
        this.summary = `${state.cast.modules.length} modules`;
        this.lit(null, S.joint); // what is chosen still is
      }
      this.ground();
      this.redraw();
      if (!S.hands.again() && hovered) this.hover(S.event); // R: the same port, another way
      if (state.cast && (first || state.fit || S.eye.misses(S.bodies.box()))) this.fit(!first);
      S.shown = performance.now();
      S.urgent = true;
    },
    set_poses(poses, values) {
      const { S } = this;
      if (!S.state?.cast) return;
      if (S.playback.active) this.stop_run();
      Object.assign(S.state, { poses, values });
      if (S.live.active) return;
      S.bodies.pose(poses.flat());
      S.hands.answered();
      this.redraw();
    },
    // Ghosts of a motion through points, a list of poses for each; they are seen with the pose at the start.
    set_keyframes(poses) {
      const { S } = this, { cast } = S.state, count = cast?.bodies.length;
      S.keyframes.clear();
      if (poses.length) {
        S.keyframes.set({ ...cast, bodies: poses.flatMap(() => cast.bodies),
          solids: poses.flatMap((_, k) => cast.solids.map((s) => ({ ...s, body: s.body + k * count }))) });
        S.keyframes.pose(poses.flat(2));
      } else S.hands.show_path([]);
      this.redraw();
    },
    draw_path() { this.S.hands.draw(); },
    set_carry(carried) { this.S.hands.set_carry(carried); },
    // A live robot: the scene when it changes, a frame many times a second.
    set_live(scene) {
      const { S } = this;
      S.playback.stop();
      this.explain_forces();
      this.bubble = this.scale = null;
      this.$refs.way.textContent = "";
      S.live.set(scene);
      this.live = true;
      this.summary = `${scene.cast?.modules.length ?? 0} modules found`;
      this.redraw();
      this.lit(null, null);
    },
    live_frame(frame) {
      const { S } = this;
      if (!S.live.active) return;
      S.live.frame(frame);
      say("measured", frame.q);
      this.aim();
      this.mark_base();
      S.dirty = true;
    },
    set_palette(kind) { this.S.kind = kind; },
    // The chosen module, and all that are chosen.
    select(name, names) {
      const { S } = this;
      Object.assign(S, { selected: name, chosen: new Set(names) });
      S.measures.set(names);
      this.lit(null, null);
      S.hands.show_rings();
      S.urgent = true;
    },
    explain(text) {
      const at = this.S.at ?? { x: 40, y: 60 };
      this.bubble = { text, x: Math.min(at.x, this.$el.clientWidth - 300), y: at.y };
      clearTimeout(this.S.hide);
      this.S.hide = setTimeout(() => (this.bubble = null), 8000);
    },
    png() {
      const { S } = this;
      S.renderer.render(S.scene, S.camera);
      return S.canvas.toDataURL("image/png");
    },
    say(text) { this.said = text; },

    // -- playback ----------------------------------------------------------------------------------
    show_run(run) {
      const { S } = this;
      if (!run) return this.stop_run();
      if (this.mode && !["move", "see"].includes(this.mode)) return; // it was asked for before the panel changed
      S.playback.start(run);
      this.played = true;
      S.eye.along();
      this.go_along();
      S.ghost.clear();
      this.ground();
      this.redraw();
      this.explain_forces();
      if (S.eye.misses(this.seen())) this.fit();
    },
    explain_forces() {
      const { active, ground, wanted } = this.S.playback;
      this.forces = active && ground.parts && wanted.contact ? Number((ground.weight / WEIGHT).toPrecision(2)) : 0;
    },
    stop_run() {
      const { S } = this;
      if (!S.playback.active) return;
      S.playback.stop();
      this.played = false;
      this.scale = null;
      this.$refs.way.textContent = "";
      if (S.state?.cast) this.show_state({ ...S.state, fit: false });
    },

    // -- drawing -----------------------------------------------------------------------------------
    redraw() {
      const { S } = this, ports = this.building && !S.playback.active && !S.live.active ? S.state?.ports ?? [] : [];
      const good = new THREE.Color(color("port")), bad = new THREE.Color(color("muted"));
      S.ports.count = Math.min(ports.length, 2000);
      S.ports.geometry = S.discs[S.rich || ports.length <= FINE ? 1 : 0];
      const scale = new THREE.Vector3(), m = new THREE.Matrix4();
      for (let i = 0; i < S.ports.count; i++) {
        const port = ports[i], size = 0.16 * port.size;
        m.multiplyMatrices(S.bodies.frames[port.body], matrix(port.pose)).scale(scale.set(size, size, size));
        S.ports.setMatrixAt(i, m);
        S.ports.setColorAt(i, port.why ? bad : good);
      }
      S.ports.instanceMatrix.needsUpdate = true;
      if (S.ports.instanceColor) S.ports.instanceColor.needsUpdate = true;
      S.hands.mode = this.mode;
      S.keyframes.group.visible = this.mode === "move" && !S.playback.active;
      S.hands.show_rings();
      this.draw_axes();
      this.mark_base();
      this.relabel();
      S.dirty = true;
    },
    ends_of(joint, scale = 1) {
      const { S } = this, frame = S.bodies.frames[joint.body];
      const p = new THREE.Vector3(...joint.point), d = new THREE.Vector3(...joint.direction).multiplyScalar(scale * joint.half);
      return [p.clone().sub(d).applyMatrix4(frame), p.clone().add(d).applyMatrix4(frame)];
    },
    draw_axes() {
      const { S } = this, joints = this.axes && S.bodies.cast && !S.playback.active ? S.bodies.cast.joints : [];
      S.axes.geometry.dispose();
      S.axes.geometry = new THREE.BufferGeometry().setFromPoints(joints.flatMap((j) => this.ends_of(j)));
      S.dirty = true;
    },
    mark_base() {
      const { S } = this, base = S.bodies.cast?.modules.find((m) => m.base);
      S.base.visible = Boolean(base) && !S.playback.active;
      if (!base) return;
      S.base.position.setFromMatrixPosition(S.bodies.frames[base.body]);
      S.base.position.z = S.scenery.height + 0.001;
      S.base.scale.setScalar(base.size);
    },
    lit(module, joint) {
      const { S } = this;
      clearTimeout(S.hover);
      S.hover = null;
      if (!S.bodies.cast) return;
      S.joint = joint;
      const owner = this.aim()?.module;
      const lit = module ?? owner ?? S.selected;
      S.bodies.light(S.chosen.size > 1 ? new Set([lit, ...S.chosen]) : new Set([lit]), color("highlight"));
      S.over = module;
      this.relabel();
      S.dirty = true;
    },

    // The axis of the joint that is meant, where it is now.
    aim() {
      const { S } = this, found = S.joint ? S.bodies.cast?.joints.find((j) => j.name === S.joint) : null;
      S.axis.visible = Boolean(found);
      if (!found) return null;
      const [a, b] = this.ends_of(found, 1.25);
      S.axis.position.copy(a).add(b).multiplyScalar(0.5);
      S.axis.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), b.clone().sub(a).normalize());
      S.axis.scale.set(0.05 * found.half, 0.05 * found.half, a.distanceTo(b) / 2);
      return found;
    },

    // -- labels ------------------------------------------------------------------------------------
    relabel() {
      const { S } = this;
      S.labels.replaceChildren();
      S.tags = [];
      for (const module of S.bodies.cast?.modules ?? []) {
        const wanted = this.names || module.base || S.chosen.has(module.name) || module.name === S.over;
        if (!wanted || (S.playback.active && !this.names && module.name !== S.over)) continue;
        const tag = document.createElement("div");
        tag.className = "tag" + (module.base ? " tag-base" : "") + (S.chosen.has(module.name) ? " tag-selected" : "");
        tag.textContent = module.base ? `${module.name} · base` : module.name;
        S.labels.append(tag);
        S.tags.push([tag, module.name]);
      }
      S.dirty = true;
    },
    place_labels() {
      const { S } = this, p = new THREE.Vector3(), w = this.$el.clientWidth, h = this.$el.clientHeight;
      for (const [tag, name] of S.tags ?? []) {
        if (!S.bodies.center(name, p)) continue;
        p.project(S.camera);
        tag.style.transform = `translate(-50%, -50%) translate(${((p.x + 1) * w) / 2}px, ${((1 - p.y) * h) / 2}px)`;
      }
    },

    // -- the eye -----------------------------------------------------------------------------------
    seen() {
      const { playback, bodies, live, other } = this.S;
      if (!playback.active) return live.active ? bodies.box().union(other.box()) : bodies.box();
      return this.follow === "free" ? playback.whole : playback.near(this.follow);
    },
    // During playback the eye moves along with the base, and steps back from pieces that come off.
    go_along() {
      const { eye, playback } = this.S;
      if (this.follow === "free") return;
      const way = playback.travel(this.follow), far = way.length();
      eye.along(way, (point) => playback.reach(point));
      this.S.scenery.follow(eye.controls.target);
      this.$refs.way.textContent = far > 0.005 ? `${this.follow === "mass" ? "center of mass" : "base"} moved by ${far.toFixed(2)} m` : "";
    },
    // To a piece that is out of sight; the camera stays there.
    visit(place) {
      const { eye, playback } = this.S, size = new THREE.Vector3().setScalar(2 * playback.size);
      if (this.follow !== "free") { this.follow = "free"; eye.along(); this.$refs.way.textContent = ""; }
      eye.fit(new THREE.Box3(place.clone().sub(size), place.clone().add(size)));
      this.S.scenery.follow(place);
    },
    set_follow() {
      this.follow = { base: "mass", mass: "free", free: "base" }[this.follow];
      this.S.eye.along();
      this.$refs.way.textContent = "";
      if (!this.S.playback.active) return;
      this.go_along();
      this.fit();
    },
    from_above() { this.S.eye.from_above(); },
    fit(smooth = true) { this.S.eye.fit(this.seen(), smooth); },

    // -- the pointer -------------------------------------------------------------------------------
    pointer(canvas) {
      const { S } = this;
      let down = null, first = null, waiting = false;
      const still = (e) => down && Math.hypot(e.clientX - down[0], e.clientY - down[1]) <= slack(e);
      // The finger that has gripped a body without moving it: the camera hears of it after all.
      const give_back = () => {
        S.hands.drag = null;
        S.eye.controls.enabled = true;
        first.again = new PointerEvent("pointerdown", { pointerId: first.pointer, pointerType: "touch", clientX: first.x, clientY: first.y, isPrimary: true, button: 0, buttons: 1 });
        canvas.dispatchEvent(first.again);
      };
      // before the camera's own: what is dragged on a body moves the body
      this.$el.addEventListener("pointerdown", (e) => {
        if (first?.again === e) return; // for the camera alone
        if (S.hands.drag?.on) { down = null; e.stopPropagation(); return; } // another finger, or a mouse beside it
        if (!e.isPrimary) { // two fingers turn, zoom and move the camera
          down = null;
          if (S.hands.drag) give_back();
          return;
        }
        down = [e.clientX, e.clientY];
        first = { x: e.clientX, y: e.clientY, pointer: e.pointerId };
        if (e.target !== canvas || !S.hands.press(e, this.aimed(e))) return;
        S.eye.controls.enabled = false;
        canvas.setPointerCapture(e.pointerId);
      }, true);
      for (const type of ["pointerup", "pointercancel"]) {
        this.$el.addEventListener(type, (e) => {
          if (S.hands.release(e)) down = null;
          S.eye.controls.enabled = !S.hands.drag?.on;
        }, true);
      }
      canvas.addEventListener("pointermove", (e) => {
        S.event = e;
        if (S.hands.drag && S.hands.move(e, this.aimed(e))) return;
        if (waiting || e.buttons) return;
        waiting = true;
        requestAnimationFrame(() => { waiting = false; this.hover(S.event); });
      });
      canvas.addEventListener("pointerleave", () => { S.ghost.clear(); highlight(null, null); S.dirty = true; });
      canvas.addEventListener("contextmenu", (e) => {
        e.preventDefault();
        const { module } = still(e) && this.building ? this.under(e) : {};
        if (!module) return; // a long press that removes nothing is the begin of a drag, or a slow tap
        down = S.hands.drag = null; // its end is no click
        S.eye.controls.enabled = true;
        this.$emit("remove", { module });
      });
      canvas.addEventListener("pointerup", (e) => {
        if (e.button !== 0 || !still(e)) return;
        const found = this.under(e);
        if (found.port && !e.shiftKey) this.$emit("dock", { module: found.port.module, port: found.port.port });
        else if (this.building && !S.state?.cast) this.$emit("dock", { module: null, port: null });
        else this.$emit("pick", { modules: found.module ? [found.module] : [], more: e.shiftKey || e.ctrlKey || e.metaKey });
      });
    },
    // The ray from the eye through the pointer.
    aimed(e) {
      const { S } = this, r = S.canvas.getBoundingClientRect();
      S.at = { x: e.clientX - r.x + 12, y: e.clientY - r.y + 12 };
      S.ray.setFromCamera(new THREE.Vector2(((e.clientX - r.x) / r.width) * 2 - 1, 1 - ((e.clientY - r.y) / r.height) * 2), S.camera);
      return S.ray;
    },
    under(e) {
      const { S } = this;
      this.aimed(e);
      const body = S.bodies.pick(S.ray) ?? (S.live.active ? S.other.pick(S.ray) : null);
      if (S.ports.count) {
        S.ports.computeBoundingSphere();
        const hit = S.ray.intersectObject(S.ports)[0];
        if (hit && (!body || hit.distance < body.distance + 0.02)) return { port: S.state.ports[hit.instanceId] };
      }
      return { module: body?.module };
    },
    hover(e) {
      const { S } = this, found = this.under(e);
      S.canvas.style.cursor = found.port || found.module ? "pointer" : "grab";
      highlight(found.module ?? null, null);
      this.show_ghost(found.port ?? null);
    },
    show_ghost(port) {
      const { S } = this;
      if (S.ghostPort === port && port) return;
      S.ghostPort = port;
      S.ghost.clear();
      S.dirty = true;
      if (!port || !S.kind?.ports[port.child_port]) return;
      S.ghost.tint = port.why ? color("bad") : null;
      S.ghost.set(ghost_cast(S.kind));
      const T = S.bodies.frames[port.body].clone().multiply(matrix(port.pose));
      T.multiply(new THREE.Matrix4().makeRotationZ((port.turn * Math.PI) / 180)).multiply(FLIP);
      T.multiply(matrix(S.kind.ports[port.child_port]).invert());
      S.ghost.frames[0].copy(T);
      S.ghost.place();
      if (port.why) this.explain(port.why);
    },
    key(e) {
      const keys = { f: () => this.fit(), t: () => this.from_above(), n: () => { this.names = !this.names; this.relabel(); }, a: () => { this.axes = !this.axes; this.redraw(); }, c: () => this.set_follow() };
      if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
      keys[e.key]();
      e.preventDefault();
    },
  },
};
