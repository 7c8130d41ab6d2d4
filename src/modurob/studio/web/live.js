// A live robot: what the coordinator has found, ghosts of the rest, and messages along the dockings.
import { THREE } from "nicegui-scene";
import { color } from "modurob-web/bus.js";

const MOST = 200; // dots
const TRAVEL = 700; // milliseconds of a dot along a docking
const FADE = 0.25; // of a frame's news in what is drawn
const still = matchMedia("(prefers-reduced-motion: reduce)");
const A = new THREE.Vector3(), B = new THREE.Vector3(), M = new THREE.Matrix4(), C = new THREE.Color();

export class LiveView {
  constructor(scene, bodies, ghosts) {
    Object.assign(this, { bodies, ghosts, active: false, links: [], lost: {} });
    this.dots = new THREE.InstancedMesh(new THREE.SphereGeometry(1, 14, 10), new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.95 }), MOST);
    this.dots.renderOrder = 8; // messages shine through the modules
    this.dots.frustumCulled = false;
    this.dots.count = 0;
    scene.add(this.dots);
  }

  // Another body, or other modules that are missing, silent or dead.
  set({ cast, ghost, links, lost }) {
    const levels = new Map(this.links.map((link) => [link.child, link.level]));
    this.active = true;
    if (cast) this.bodies.set(cast);
    else this.bodies.clear();
    this.ghosts.set(ghost);
    this.lost = lost;
    const size = 0.07 * (cast?.modules[0]?.size ?? 0.1);
    this.links = links.slice(0, MOST / 2).map(([parent, child]) => ({ parent, child, size, level: levels.get(child) ?? 0 }));
    this.theme();
  }

  frame({ poses, ghosts, heard }) {
    if (poses) this.bodies.pose(poses.flat());
    if (ghosts) this.ghosts.pose(ghosts.flat());
    const news = new Set(heard);
    for (const link of this.links) link.level += FADE * (news.has(link.child) - link.level);
  }

  // Dead modules are red and silent ones gray.
  theme() {
    if (!this.active) return;
    const levels = new Map(Object.entries(this.lost).map(([name, state]) => [name, state === "dead" ? 1 : 0]));
    this.bodies.shade(levels.size ? { levels, low: color("muted"), high: color("bad") } : null);
    this.links.forEach((_, k) => {
      this.dots.setColorAt(2 * k, C.set(color("port")));
      this.dots.setColorAt(2 * k + 1, C.set(color("highlight")));
    });
    if (this.dots.instanceColor) this.dots.instanceColor.needsUpdate = true;
  }

  // Torques travel outwards, readings back; the more readings arrive, the larger the dots.
  animate(now) {
    this.dots.count = this.active ? 2 * this.links.length : 0;
    this.links.forEach((link, k) => {
      const there = this.bodies.center(link.parent, A) && this.bodies.center(link.child, B);
      const size = there ? link.size * Math.max(link.level, 1e-6) : 0;
      const phase = still.matches ? 0.3 : (now / TRAVEL) % 1;
      for (const [which, s] of [[0, phase], [1, 1 - ((phase + 0.5) % 1)]]) {
        M.makeScale(size, size, size).setPosition(A.x + s * (B.x - A.x), A.y + s * (B.y - A.y), A.z + s * (B.z - A.z));
        this.dots.setMatrixAt(2 * k + which, M);
      }
    });
    this.dots.instanceMatrix.needsUpdate = true;
    return this.dots.count > 0 && !still.matches;
  }

  stop() {
    if (!this.active) return;
    this.active = false;
    this.dots.count = 0;
    this.bodies.shade(null);
    this.ghosts.clear();
  }
}
