// Direct manipulation: drag a body and the joints follow, turn a joint by its ring, carry modules to ports.
import { THREE } from "nicegui-scene";
import { color, on } from "modurob-web/bus.js";
import { FLIP, matrix } from "modurob-web/solids.js";

const START = 4; // pixels between press and move that begin a drag
const FINGER = 12; // the same for a finger, which is never quite still
const NEAR = 70; // pixels from a port at which what is carried snaps to it
const ANSWER = 500; // milliseconds after which an answer of the server is no longer awaited
const EDGE_ON = 0.2; // cosine between sight and a joint's axis below which a ring is seen from its edge
const AT_LIMIT = 1e-6; // [rad, m]
const RING = 0.9; // radius of a ring, over half the length of the axis
const SMALLEST = 34; // pixels of the radius of a ring
const GHOST = 0; // the only body of the ghost of a kind

const V = () => new THREE.Vector3();

// Pixels between press and release that are still a click.
export const slack = (event) => (event.pointerType === "touch" ? FINGER : START);

export class Manipulator {
  // `emit(event, detail)` tells the server; `changed()` asks for another frame; `note(text)` shows a line;
  // `ghost(port)` shows what would dock at a port; `box` is an element for a rectangle.
  constructor(stage, { emit, changed, note, ghost, box }) {
    Object.assign(this, { S: stage, emit, changed, note, ghost, box, drag: null, mode: "", drawing: false, waiting: null, asked: 0 });
    this.rings = new THREE.Group();
    this.plane = new THREE.Plane();
    this.pull = new THREE.Line(new THREE.BufferGeometry().setFromPoints([V(), V()]), new THREE.LineBasicMaterial({ depthTest: false, transparent: true }));
    this.pull.renderOrder = 11;
    this.pull.visible = this.pull.frustumCulled = false;
    this.path = this.pull.clone(); // that is drawn for a body
    stage.scene.add(this.rings, this.pull);
    stage.keyframes.group.add(this.path);
    this.material = new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.85 });
    this.unseen = new THREE.MeshBasicMaterial({ visible: false });
    this.ring = new THREE.TorusGeometry(1, 0.05, 10, 64);
    this.wide = new THREE.TorusGeometry(1, 0.16, 6, 32); // easy to hit
    this.arrow = [new THREE.CylinderGeometry(0.05, 0.05, 2, 12).rotateX(Math.PI / 2),
      ...[1, -1].map((way) => new THREE.ConeGeometry(0.16, 0.4, 16).rotateX((way * Math.PI) / 2).translate(0, 0, way))];
    this.bar = new THREE.CylinderGeometry(0.2, 0.2, 2.4, 8).rotateX(Math.PI / 2);
    this.ends = [on("carry", (what) => this.carry_kind(what))];
    const key = (event) => this.key(event);
    document.addEventListener("keydown", key);
    this.ends.push(() => document.removeEventListener("keydown", key));
  }

  dispose() { this.ends.forEach((end) => end()); }

  theme() {
    this.material.color.set(color("axis"));
    this.pull.material.color.set(color("axis"));
  }

  // -- pointer: true if the drag is ours, not the camera's ------------------------------------------
  press(event, ray) {
    const { S } = this;
    this.drag = null;
    if (event.button !== 0 || event.altKey || S.playback.active || S.live.active || !S.bodies.cast) return false;
    const from = { x: event.clientX, y: event.clientY, pointer: event.pointerId };
    if (event.shiftKey && ["build", "move"].includes(this.mode)) {
      this.drag = { ...from, kind: "box" };
      return true;
    }
    this.place_rings(); // new ones have their place only once they are drawn
    const ring = this.mode === "move" ? ray.intersectObjects(this.rings.children)[0] : null;
    if (ring) {
      const { joint } = ring.object.userData, axis = this.axis(joint);
      this.drag = { ...from, ...axis, kind: "joint", joint, angle: this.angle(axis, ray), along: this.along(axis, ray) };
    } else {
      const found = S.bodies.pick(ray);
      if (!found || S.bodies.cast.modules.find((m) => m.name === found.module).base) return false;
      if (this.mode === "move") this.drag = { ...from, kind: "body", body: found.body, grip: found.point, path: this.drawing ? [found.point.toArray()] : null };
      if (this.mode === "build") this.drag = { ...from, kind: "module", module: found.module };
    }
    return Boolean(this.drag);
  }

  move(event, ray) {
    const { drag } = this;
    if (!drag) return false;
    if (drag.kind === "kind" || event.pointerId !== drag.pointer) return true; // the palette tells of it; another finger
    if (!drag.on && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) <= slack(event)) return true;
    if (!drag.on) this.begin(drag);
    if (drag.kind === "body") this.pull_body(drag, ray);
    else if (drag.kind === "joint") this.turn_joint(drag, ray, event);
    else if (drag.kind === "box") this.frame(drag, event);
    else this.over(event, ray);
    this.changed();
    return true;
  }

  // True if something was dragged: the release is no click then.
  release(event) {
    const { drag, S } = this;
    if (drag?.kind === "kind" || (drag && event.pointerId !== drag.pointer)) return true;
    if (drag?.on && event.type === "pointercancel") { this.cancel(); return true; }
    this.drag = null;
    if (!drag?.on) return false;
    this.finish();
    if (drag.kind === "module" && drag.port) {
      const { module, port, child_port, turn } = drag.port;
      this.emit("move", { name: drag.module, module, port, child_port, turn });
    }
    if (drag.kind === "box") this.emit("pick", { modules: this.inside(drag, event) });
    if (drag.path) {
      this.drawing = false;
      this.waiting = null;
      this.emit("pose", drag.values); // the path is followed from here
      this.emit("path", { body: S.bodies.cast.bodies[drag.body], point: drag.point.toArray(), path: drag.path });
    }
    return true;
  }

  // -- modules within a rectangle -----------------------------------------------------------------
  frame(drag, event) {
    const r = this.S.canvas.getBoundingClientRect(), { style } = this.box;
    style.display = "block";
    style.left = `${Math.min(drag.x, event.clientX) - r.x}px`;
    style.top = `${Math.min(drag.y, event.clientY) - r.y}px`;
    style.width = `${Math.abs(event.clientX - drag.x)}px`;
    style.height = `${Math.abs(event.clientY - drag.y)}px`;
  }

  inside(drag, event) {
    const { S } = this, r = S.canvas.getBoundingClientRect(), p = V();
    const between = (x, a, b) => x >= Math.min(a, b) && x <= Math.max(a, b);
    return S.bodies.cast.modules.map((m) => m.name).filter((name) => {
      S.bodies.center(name, p).project(S.camera);
      return between(r.x + ((p.x + 1) * r.width) / 2, drag.x, event.clientX) && between(r.y + ((1 - p.y) * r.height) / 2, drag.y, event.clientY);
    });
  }

  finish() {
    this.box.style.display = "none";
    this.S.other.clear();
    this.ghost(null);
    this.pull.visible = false;
    this.note("");
    this.changed();
  }

  // The next drag of a body draws a path for it.
  draw() {
    this.drawing = true;
    this.show_path([]);
    this.note("Drag a body along the path that it shall follow; Escape ends it");
  }

  show_path(places) {
    this.path.visible = places.length > 1;
    this.path.geometry.dispose();
    this.path.geometry = new THREE.BufferGeometry().setFromPoints(places.map((p) => V().fromArray(p)));
    this.changed();
  }

  // Escape, or the browser takes the pointer away: as it was before the drag.
  cancel() {
    const { drag } = this;
    this.drag = null;
    this.drawing = false;
    this.show_path([]);
    this.finish();
    if (drag?.values) this.send("pose", drag.values);
  }

  begin(drag) {
    const { S } = this;
    drag.on = true;
    if (drag.kind === "box") return;
    if (drag.kind === "module") {
      this.emit("carry", { module: drag.module, step: 0 });
      return;
    }
    drag.values = Object.fromEntries(S.bodies.cast.joints.map((joint, k) => [joint.name, S.state.values[k]]));
    S.other.set(S.bodies.cast); // the ghost of the start
    S.other.pose(S.state.poses.flat());
    if (drag.kind === "body") {
      drag.point = drag.grip.clone().applyMatrix4(S.bodies.frames[drag.body].clone().invert());
      this.plane.setFromNormalAndCoplanarPoint(S.camera.getWorldDirection(V()), drag.grip);
    } else drag.start = drag.values[drag.joint.name];
  }

  // -- a body is pulled: inverse kinematics on the server ----------------------------------------------
  pull_body(drag, ray) {
    const { S } = this, target = ray.ray.intersectPlane(this.plane, V());
    if (!target) return;
    drag.target = target;
    if (drag.path) this.show_path((drag.path = [...drag.path, target.toArray()]));
    this.send("drag", { body: S.bodies.cast.bodies[drag.body], point: drag.point.toArray(), target: target.toArray() });
    this.show_pull();
  }

  // From where the grip is to where the pointer is, and the joints that can go no farther.
  show_pull() {
    const { S, drag } = this;
    if (!drag?.target) return;
    const there = drag.point.clone().applyMatrix4(S.bodies.frames[drag.body]);
    this.pull.geometry.setFromPoints([there, drag.target]);
    this.pull.visible = true;
    const stuck = S.bodies.cast.joints.filter((joint, k) => limited(joint, S.state.values[k])).map((joint) => joint.name);
    this.note(stuck.length ? `at the limit: ${stuck.slice(0, 4).join(", ")}${stuck.length > 4 ? " …" : ""}` : "");
  }

  // One message is under way at a time: the next one is the latest.
  send(event, detail) {
    const now = performance.now();
    if (now - this.asked < ANSWER) { this.waiting = [event, detail]; return; }
    this.asked = now;
    this.waiting = null; // it is older
    this.emit(event, detail);
  }

  // The server has answered with poses.
  answered() {
    const { waiting } = this;
    this.asked = 0;
    if (waiting) this.send(...waiting);
    this.show_pull();
  }

  // -- a joint is turned by its ring -----------------------------------------------------------------
  axis(joint) {
    const { camera, canvas, bodies } = this.S, frame = bodies.frames[joint.body];
    const center = new THREE.Vector3(...joint.point).applyMatrix4(frame);
    const pixel = (2 * camera.position.distanceTo(center) * Math.tan(THREE.MathUtils.degToRad(camera.fov / 2))) / canvas.clientHeight;
    const direction = new THREE.Vector3(...joint.direction).transformDirection(frame);
    return { center, direction, radius: Math.max(RING * joint.half, SMALLEST * pixel) };
  }

  // Across an axis and the line of sight: the arrow of a joint that slides is beside its module, which can be dragged.
  aside(direction) {
    const across = this.S.camera.getWorldDirection(V()).cross(direction);
    return across.lengthSq() > EDGE_ON ** 2 ? across.normalize() : V().set(1, 0, 0).transformDirection(this.S.camera.matrixWorld);
  }

  // Angle of the pointer about the axis; null if the ring is seen from its edge.
  angle({ center, direction }, { ray }) {
    if (Math.abs(ray.direction.dot(direction)) < EDGE_ON) return null;
    const at = ray.intersectPlane(new THREE.Plane().setFromNormalAndCoplanarPoint(direction, center), V());
    if (!at) return null;
    const x = V().set(1, 0, 0).cross(direction);
    if (x.lengthSq() < 0.1) x.set(0, 1, 0).cross(direction);
    x.normalize();
    const y = V().crossVectors(direction, x), r = at.sub(center);
    return Math.atan2(r.dot(y), r.dot(x));
  }

  // Position along the axis of its point nearest to the line of sight. [m]
  along({ center, direction }, { ray }) {
    const w = center.clone().sub(ray.origin), b = direction.dot(ray.direction), square = 1 - b * b;
    return square < 1e-6 ? 0 : (b * ray.direction.dot(w) - direction.dot(w)) / square;
  }

  // Radians for a drag over a ring that is seen from its edge: its front moves with the pointer.
  sideways(drag, event) {
    const { S } = this, size = S.canvas.getBoundingClientRect();
    const front = S.camera.position.clone().sub(drag.center).projectOnPlane(drag.direction).setLength(drag.radius);
    const a = drag.center.clone().add(front), b = a.clone().addScaledVector(V().crossVectors(drag.direction, front), 0.1);
    a.project(S.camera);
    b.project(S.camera);
    const x = (5 * (b.x - a.x)) * size.width, y = (5 * (a.y - b.y)) * size.height; // pixels for a radian
    return ((event.clientX - drag.x) * x + (event.clientY - drag.y) * y) / (x * x + y * y);
  }

  turn_joint(drag, ray, event) {
    const { joint } = drag;
    let step;
    if (joint.slides) step = this.along(drag, ray) - drag.along;
    else {
      const angle = drag.angle === null ? null : this.angle(drag, ray);
      if (angle === null) step = this.sideways(drag, event);
      else {
        drag.turned = (drag.turned ?? 0) + wrap(angle - drag.angle - (drag.turned ?? 0));
        step = drag.turned;
      }
    }
    const value = Math.min(joint.upper, Math.max(joint.lower, drag.start + step));
    this.send("pose", { [joint.name]: value });
    const shown = joint.slides ? `${(1000 * value).toFixed(0)} mm` : `${((180 / Math.PI) * value).toFixed(1)}°`;
    this.note(`${joint.name} ${shown}${limited(joint, value) ? ", at the limit" : ""}`);
  }

  // A ring for each joint of the chosen module, or an arrow for one that slides.
  show_rings() {
    const { S } = this, shown = this.mode === "move" && !S.playback.active && !S.live.active;
    this.rings.clear();
    for (const joint of shown ? S.bodies.cast?.joints ?? [] : []) {
      if (joint.module !== S.selected) continue;
      const grip = new THREE.Mesh(joint.slides ? this.bar : this.wide, this.unseen);
      for (const part of joint.slides ? this.arrow : [this.ring]) grip.add(new THREE.Mesh(part, this.material));
      for (const part of grip.children) part.renderOrder = 9;
      grip.userData.joint = joint;
      this.rings.add(grip);
    }
    this.changed();
  }

  // Before each frame: rings are never too small to grip.
  place_rings() {
    for (const grip of this.rings.children) {
      const { center, direction, radius } = this.axis(grip.userData.joint);
      grip.position.copy(center);
      if (grip.userData.joint.slides) grip.position.add(this.aside(direction).multiplyScalar(radius));
      grip.quaternion.setFromUnitVectors(V().set(0, 0, 1), direction);
      grip.scale.setScalar(radius);
      grip.updateMatrixWorld();
    }
  }

  // -- modules are carried to a port ------------------------------------------------------------------
  // A kind from the palette: said by the palette with the pointer's event.
  carry_kind({ event, done }) {
    const { S } = this, r = S.canvas.getBoundingClientRect();
    if (this.mode !== "build" || S.playback.active) return;
    const inside = event.clientX > r.x && event.clientX < r.right && event.clientY > r.y && event.clientY < r.bottom;
    if (!done && !this.drag) this.drag = { kind: "kind", on: true };
    if (inside && this.drag) this.over(event, S.aimed(event));
    else if (this.drag) { this.drag.port = null; this.ghost(null); }
    this.changed();
    if (!done) return;
    const { port } = this.drag ?? {};
    this.drag = null;
    this.ghost(null);
    if (!inside) return;
    if (port) this.emit("dock", { module: port.module, port: port.port });
    else if (!S.state?.cast) this.emit("dock", { module: null, port: null });
  }

  // What is carried, over the port that is nearest on the screen; else below the pointer.
  over(event, ray) {
    const { S, drag } = this, r = S.canvas.getBoundingClientRect(), p = V(), M = new THREE.Matrix4();
    let best = null, least = NEAR;
    for (const port of drag.kind === "module" ? drag.sites ?? [] : S.state?.ports ?? []) {
      p.setFromMatrixPosition(M.multiplyMatrices(S.bodies.frames[port.body], matrix(port.pose))).project(S.camera);
      const away = Math.hypot(r.x + ((p.x + 1) * r.width) / 2 - event.clientX, r.y + ((1 - p.y) * r.height) / 2 - event.clientY);
      if (away < least && p.z < 1) [best, least] = [port, away];
    }
    drag.port = best;
    drag.last = event;
    if (best && drag.kind === "kind") return this.ghost(best);
    if (best) return this.ghost_of_subtree(best);
    this.ghost(null);
    const box = S.bodies.box(), middle = box.isEmpty() ? V() : box.getCenter(V());
    this.plane.setFromNormalAndCoplanarPoint(S.camera.getWorldDirection(V()), middle);
    const at = ray.ray.intersectPlane(this.plane, V());
    if (!at || drag.kind !== "kind" || !S.kind) return;
    S.ghost.tint = null;
    S.ghost.set(ghost_cast(S.kind));
    S.ghost.frames[GHOST].makeTranslation(at.x, at.y, at.z);
    S.ghost.place();
  }

  // Another body, or other ways to dock: a kind that is carried is where it was, other drags end.
  again() {
    const { drag } = this;
    if (drag && drag.kind !== "kind") { this.drag = this.waiting = null; this.finish(); }
    else if (drag?.last) this.over(drag.last, this.S.aimed(drag.last));
    return Boolean(drag);
  }

  // The server tells where a module that is carried could dock, with all beyond it.
  set_carry({ module, names, sites, ports }) {
    const { drag } = this;
    if (drag?.module !== module) return;
    Object.assign(drag, { names: new Set(names), sites, ports });
    if (drag.last) this.over(drag.last, this.S.aimed(drag.last));
    this.changed();
  }

  ghost_of_subtree(site) {
    const { S, drag } = this, { cast, frames } = S.bodies;
    this.ghost(null);
    const mine = drag.ports[site.child_port];
    const to = S.bodies.frames[site.body].clone().multiply(matrix(site.pose));
    to.multiply(new THREE.Matrix4().makeRotationZ((site.turn * Math.PI) / 180)).multiply(FLIP);
    to.multiply(frames[mine.body].clone().multiply(matrix(mine.pose)).invert());
    S.ghost.tint = site.why ? color("bad") : null;
    S.ghost.set({ ...cast, solids: cast.solids.filter((s) => drag.names.has(cast.modules[s.module].name)) });
    S.ghost.frames.forEach((frame, k) => frame.multiplyMatrices(to, frames[k]));
    S.ghost.place();
    this.note(site.why);
  }

  // R turns what is carried or about to be docked; Escape ends a drag.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
    if (event.key === "Escape" && (this.drag?.on || this.drawing)) this.cancel();
    else if (event.key.toLowerCase() === "r" && this.mode === "build") {
      const { drag, S } = this, port = drag?.port ?? S.ghostPort;
      if (drag?.kind === "module") this.emit("carry", { module: drag.module, step: (drag.step = (drag.step ?? 0) + 1) });
      else if (port) this.emit("turn", { module: null, site: [port.module, port.port] });
      else return;
    } else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

export function ghost_cast(kind) {
  return { bodies: ["ghost"], modules: [{ name: "ghost", body: GHOST, size: kind.size }], solids: kind.solids, joints: [] };
}

function limited(joint, value) { return value <= joint.lower + AT_LIMIT || value >= joint.upper - AT_LIMIT; }
function wrap(angle) { return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI)); }

// -- the palette: a kind that is dragged off its button is chosen and carried -----------------------------
import { say } from "modurob-web/bus.js";
let taken = null;

document.addEventListener("pointerdown", (event) => {
  const button = event.button === 0 && event.pointerType === "mouse" ? event.target.closest?.(".kind") : null;
  taken = button && { button, x: event.clientX, y: event.clientY, on: false };
});
document.addEventListener("pointermove", (event) => {
  if (!taken) return;
  if (!taken.on && Math.hypot(event.clientX - taken.x, event.clientY - taken.y) > START) {
    taken.on = true;
    if (taken.button.ariaPressed !== "true") taken.button.click();
    document.body.classList.add("carrying");
  }
  if (taken.on) say("carry", { event, done: false });
});
for (const type of ["pointerup", "pointercancel"]) {
  document.addEventListener(type, (event) => {
    if (taken?.on) say("carry", { event, done: true });
    taken = null;
    document.body.classList.remove("carrying");
  });
}
