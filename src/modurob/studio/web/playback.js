// Runs in the 3D view: bodies at a time, traces of modules, the center of mass, forces of the ground.
import { THREE } from "nicegui-scene";
import { color } from "modurob-web/bus.js";
import { clock, play } from "modurob-web/clock.js";
import { Contacts, height } from "modurob-web/contact.js";

// The last index with t[index] <= time.
export function before(t, time) {
  let low = 0, high = t.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (t[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

const TRACE = 4000; // points of a trace
const FAR = 6; // sizes of the piece with the base: pieces farther away are left behind
const P = new THREE.Vector3();

// The body of the base.
function base(part) { return part.cast.modules.find((m) => m.base)?.body ?? 0; }

export class Playback {
  constructor(scene, bodies, other, told) {
    Object.assign(this, { scene, bodies, other, told, active: false, run: null, chosen: [], ground: null });
    this.whole = new THREE.Box3();
    this.piece = new THREE.Box3();
    this.begin = new THREE.Vector3(); // where the base is at first
    this.numbers = {}; // poses that are drawn now
    this.lines = new THREE.Group();
    this.mass = new THREE.Mesh(new THREE.SphereGeometry(1, 20, 14), new THREE.MeshBasicMaterial({ depthTest: false, transparent: true }));
    this.foot = new THREE.Mesh(new THREE.RingGeometry(0.7, 1, 40), new THREE.MeshBasicMaterial({ side: THREE.DoubleSide }));
    this.plumb = new THREE.Line(new THREE.BufferGeometry().setFromPoints([new THREE.Vector3(), new THREE.Vector3(0, 0, -1)]), new THREE.LineBasicMaterial());
    this.aid = new THREE.Group();
    this.aid.add(this.mass, this.foot, this.plumb);
    this.mass.renderOrder = 10;
    this.aid.visible = false;
    this.contacts = new Contacts(scene);
    this.wanted = { mass: true, contact: true };
    scene.add(this.lines, this.aid);
  }

  theme() {
    for (const part of [this.mass, this.foot, this.plumb]) part.material.color.set(color("mass"));
    this.contacts.theme();
    if (!this.active) return;
    this.trace(this.chosen);
    this.tint(this.tinted?.key);
  }

  start({ main, other }) {
    this.stop();
    this.run = main;
    this.second = other;
    this.active = true;
    this.current = null;
    this.currentOther = null;
    this.bounds();
    this.trace(this.chosen);
    this.show(clock.t);
  }

  stop() {
    play(false);
    this.active = false;
    this.run = this.second = null;
    this.other.clear();
    this.lines.clear();
    this.aid.visible = false;
    this.contacts.hide();
    this.current = null;
    this.tint(null);
  }

  // The part of a run that holds at a time; an event belongs to what comes after it.
  static parts(run, t) {
    const there = run.parts.filter((p) => p.t[0] <= t && (t < p.t[p.t.length - 1] || p.t[p.t.length - 1] >= run.end));
    return there.length ? there : [run.parts[run.parts.length - 1]];
  }

  // Around what is drawn, at sixty times of the run: around everything, and around the piece with the
  // base, as an eye sees it that moves along with the base.
  bounds() {
    const first = this.run.parts[0], box = new THREE.Box3(), place = new THREE.Vector3();
    this.begin.fromArray(first.poses, 7 * base(first));
    this.whole.makeEmpty();
    this.piece.makeEmpty();
    for (const part of this.run.parts) {
      const rows = part.t.length, step = Math.max(1, Math.floor(rows / 60)), width = 7 * part.cast.bodies.length;
      this.bodies.set(part.cast);
      for (let row = 0; row < rows; row += step) {
        this.bodies.pose(part.poses, row * width);
        this.whole.union(box.copy(this.bodies.box()));
        if (part.name === first.name) this.piece.union(box.translate(place.fromArray(part.poses, row * width + 7 * base(part)).sub(this.begin).negate()));
      }
    }
    this.ground = this.run.ground ?? { height: this.piece.min.z, slope: [0, 0], parts: null };
    this.size = first.cast.modules[0]?.size ?? 0.1;
    this.limit = FAR * this.piece.getSize(P).length();
  }

  // Pieces at this time: their names, and where their first bodies are.
  *pieces() {
    let at = 0;
    for (const part of this.current) {
      yield [part.name, P.fromArray(this.numbers.current, at + 7 * base(part))];
      at += 7 * part.cast.bodies.length;
    }
  }

  // How far the base, or the center of mass, has come since the beginning.
  travel(of = "base") {
    if (of === "mass" && this.run.mass) return this.center(clock.t).sub(this.center(this.run.begin));
    const numbers = this.numbers.current, way = new THREE.Vector3();
    let at = 0;
    for (const part of this.current) {
      if (part.name === this.run.parts[0].name) return way.fromArray(numbers, at + 7 * base(part)).sub(this.begin);
      at += 7 * part.cast.bodies.length;
    }
    return way;
  }

  // The piece with the base, wherever it is in the run, and where it has come to; with the other pieces that are near.
  near(of) {
    const way = this.travel(of), box = this.piece.clone().translate(way), point = this.begin.clone().add(way);
    for (const [p, away] of this.places(point)) if (away < this.limit) box.expandByPoint(p);
    return box;
  }

  // The radius around a point that holds the other pieces; far away they count less and less, until they are left behind.
  reach(point) {
    let most = 0;
    for (const [, away] of this.places(point)) most = Math.max(most, away < this.limit ? away : 2 * this.limit - away);
    return most;
  }

  // Where the bodies of the other pieces are, and how far from a point their outer ends are.
  *places(point) {
    let at = 0;
    for (const part of this.current) {
      const end = at + 7 * part.cast.bodies.length;
      for (; part.name !== this.run.parts[0].name && at < end; at += 7) yield [P.fromArray(this.numbers.current, at), P.distanceTo(point) + this.size];
      at = end;
    }
  }

  show(t) {
    const parts = Playback.parts(this.run, t);
    this.draw(this.bodies, parts, t, "current");
    if (this.second) this.draw(this.other, Playback.parts(this.second, t), t, "currentOther");
    this.weigh(t);
    this.touch(t);
    this.shade(t);
    this.told.moved();
  }

  // All parts at a time as one cast: they are few, and rarely change.
  draw(bodies, parts, t, slot) {
    if (!this[slot] || this[slot].length !== parts.length || this[slot].some((p, k) => p !== parts[k])) {
      this[slot] = parts;
      bodies.set(parts.length === 1 ? parts[0].cast : joined(parts.map((p) => p.cast)));
      if (bodies === this.bodies) { this.shaded = -1; this.told.changed(); }
    }
    const size = 7 * parts.reduce((n, part) => n + part.cast.bodies.length, 0);
    if (this.numbers[slot]?.length !== size) this.numbers[slot] = new Float32Array(size);
    let at = 0;
    for (const part of parts) at = blend(part, t, this.numbers[slot], at);
    bodies.pose(this.numbers[slot]);
  }

  // The center of mass at a time.
  center(t) {
    const { mass } = this.run;
    const row = before(mass.t, t), next = Math.min(row + 1, mass.t.length - 1), gap = mass.t[next] - mass.t[row];
    const s = gap > 0 ? Math.min(1, (t - mass.t[row]) / gap) : 0;
    return new THREE.Vector3().fromArray(mass.xyz[row]).lerp(new THREE.Vector3().fromArray(mass.xyz[next]), s);
  }

  weigh(t) {
    const mass = this.run.mass;
    this.aid.visible = Boolean(mass && this.wanted.mass);
    if (!this.aid.visible) return;
    const { x, y, z } = this.center(t);
    this.mass.position.set(x, y, z);
    this.mass.scale.setScalar(0.1 * this.size);
    const floor = height(this.ground, x, y);
    this.foot.position.set(x, y, floor + 0.002);
    this.foot.scale.setScalar(0.22 * this.size);
    this.plumb.position.set(x, y, z);
    this.plumb.scale.set(1, 1, Math.max(1e-6, z - floor));
  }

  // Forces of the ground on the bodies, and the support polygon.
  touch(t) {
    if (!this.ground.parts || !this.wanted.contact) return this.contacts.hide();
    const there = this.current.map((part) => this.ground.parts[this.run.parts.indexOf(part)]);
    this.contacts.show(this.ground, there.map((part) => [part, before(part.t, t)]), this.size);
  }

  // Colors that say something of each module: what it knows, how much it sends.
  tint(key) {
    this.tinted = this.run?.tints.find((tint) => tint.key === key) ?? null;
    this.shaded = -1;
    if (this.tinted) this.shade(clock.t);
    else this.bodies.shade(null);
  }

  shade(t) {
    if (!this.tinted) return;
    const row = before(this.tinted.t, t);
    if (this.shaded === row) return;
    this.shaded = row;
    const levels = new Map(this.tinted.modules.map((name, k) => [name, this.tinted.levels[row][k]]));
    this.bodies.shade({ levels, low: color("tint-low"), high: color("tint-high") });
  }

  aids(wanted) {
    Object.assign(this.wanted, wanted);
    if (this.active) { this.weigh(clock.t); this.touch(clock.t); }
  }

  trace(chosen) {
    this.chosen = chosen;
    for (const line of this.lines.children) line.geometry.dispose();
    this.lines.clear();
    if (!this.active) return;
    chosen.forEach((name, k) => {
      for (const part of this.run.parts) {
        const module = part.cast.modules.find((m) => m.name === name);
        if (!module) continue;
        const n = part.cast.bodies.length, step = Math.max(1, Math.ceil(part.t.length / TRACE)), points = [];
        for (let row = 0; row < part.t.length; row += step) points.push(new THREE.Vector3().fromArray(part.poses, 7 * (row * n + module.body)));
        const line = new THREE.Line(new THREE.BufferGeometry().setFromPoints(points), new THREE.LineBasicMaterial({ color: color(`series-${(k % 8) + 1}`) }));
        line.frustumCulled = false;
        this.lines.add(line);
      }
    });
  }
}

// The poses of a part at a time, between two rows; returns where the next part goes.
function blend(part, t, into, at) {
  const { poses } = part, width = 7 * part.cast.bodies.length;
  const row = before(part.t, t), next = Math.min(row + 1, part.t.length - 1), gap = part.t[next] - part.t[row];
  const s = gap > 0 ? Math.min(1, Math.max(0, (t - part.t[row]) / gap)) : 0;
  for (let i = row * width, j = next * width; i < (row + 1) * width; i += 7, j += 7, at += 7) {
    let dot = 0;
    for (let k = 3; k < 7; k++) dot += poses[i + k] * poses[j + k];
    const sign = dot < 0 ? -1 : 1; // quaternions take the short way
    let norm = 0;
    for (let k = 0; k < 7; k++) {
      const value = (1 - s) * poses[i + k] + s * (k < 3 ? 1 : sign) * poses[j + k];
      into[at + k] = value;
      if (k > 2) norm += value * value;
    }
    norm = Math.sqrt(norm);
    for (let k = 3; k < 7; k++) into[at + k] /= norm;
  }
  return at;
}

function joined(casts) {
  const whole = { bodies: [], modules: [], solids: [], joints: [] };
  for (const cast of casts) {
    const b = whole.bodies.length, m = whole.modules.length;
    whole.bodies.push(...cast.bodies);
    whole.modules.push(...cast.modules.map((x) => ({ ...x, body: x.body + b })));
    whole.solids.push(...cast.solids.map((x) => ({ ...x, body: x.body + b, module: x.module + m })));
    whole.joints.push(...cast.joints.map((x) => ({ ...x, body: x.body + b })));
  }
  return whole;
}
