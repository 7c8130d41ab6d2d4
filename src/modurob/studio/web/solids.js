// Bodies made of solids: one instanced mesh for each form and size, moved by poses of bodies.
import { THREE } from "nicegui-scene";

export const FLIP = new THREE.Matrix4().makeRotationX(Math.PI); // of a port that mates
const BEVEL = 0.06; // of the shortest edge
export const FINE = 600; // solids that are drawn with round edges without a graphics card, where each triangle costs

// A box with rounded edges: the corners of a finer box pulled onto a smaller one plus a radius.
function rounded([x, y, z]) {
  const radius = BEVEL * Math.min(x, y, z);
  const geometry = new THREE.BoxGeometry(x, y, z, 4, 4, 4);
  const inner = new THREE.Vector3(x / 2 - radius, y / 2 - radius, z / 2 - radius);
  const place = geometry.attributes.position, normal = geometry.attributes.normal;
  const p = new THREE.Vector3(), core = new THREE.Vector3(), out = new THREE.Vector3();
  for (let k = 0; k < place.count; k++) {
    p.fromBufferAttribute(place, k);
    // the inner lines of the finer box go to where the rounding begins, so that faces stay flat
    for (const axis of ["x", "y", "z"]) {
      const half = { x, y, z }[axis] / 2;
      const s = p[axis] / half;
      if (Math.abs(s) > 0.1 && Math.abs(s) < 0.9) p[axis] = Math.sign(s) * (half - radius);
    }
    core.copy(p).clamp(inner.clone().negate(), inner);
    out.copy(p).sub(core);
    if (out.lengthSq() === 0) continue;
    out.normalize();
    place.setXYZ(k, core.x + radius * out.x, core.y + radius * out.y, core.z + radius * out.z);
    normal.setXYZ(k, out.x, out.y, out.z);
  }
  return geometry;
}

function geometry(form, size, fine) {
  if (form === "box") return fine ? rounded(size) : new THREE.BoxGeometry(...size);
  if (form === "sphere") return new THREE.SphereGeometry(size[0], ...(fine ? [28, 18] : [10, 6]));
  return new THREE.CylinderGeometry(size[0], size[0], size[1], fine ? 36 : 10).rotateX(Math.PI / 2);
}

const shapes = new Map();
function shared(form, size, fine) {
  const key = `${form} ${size} ${fine}`;
  if (!shapes.has(key)) {
    shapes.set(key, geometry(form, size, fine));
    shapes.get(key).computeBoundingBox();
  }
  return shapes.get(key);
}

export function matrix(numbers, offset = 0, into = new THREE.Matrix4()) {
  P.set(numbers[offset], numbers[offset + 1], numbers[offset + 2]);
  Q.set(numbers[offset + 3], numbers[offset + 4], numbers[offset + 5], numbers[offset + 6]);
  return into.compose(P, Q, ONE);
}

const P = new THREE.Vector3(), Q = new THREE.Quaternion(), ONE = new THREE.Vector3(1, 1, 1);
const M = new THREE.Matrix4(), C = new THREE.Color(), END = new THREE.Color(), BOX = new THREE.Box3();

// Drawn bodies of one organism. `rich` if there is a graphics card; `opacity` below 1 makes a ghost of it.
export class Bodies {
  constructor(scene, rich, opacity = 1, tint = null) {
    this.group = new THREE.Group();
    this.rich = rich;
    this.opacity = opacity;
    this.tint = tint;
    this.meshes = [];
    this.frames = [];
    this.cast = null;
    this.lit = { names: new Set(), color: null };
    this.scale = null;
    // kept for good: a material made anew costs the time to compile its shader
    this.material = new THREE.MeshStandardMaterial({
      roughness: 0.55, metalness: 0.05, transparent: opacity < 1, opacity, depthWrite: opacity === 1,
    });
    scene.add(this.group);
  }

  set(cast) {
    this.clear();
    this.cast = cast;
    this.frames = cast.bodies.map(() => new THREE.Matrix4());
    const groups = new Map(), fine = this.rich || cast.solids.length <= FINE;
    for (const solid of cast.solids) {
      const key = `${solid.form} ${solid.size}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(solid);
    }
    for (const solids of groups.values()) {
      const mesh = new THREE.InstancedMesh(shared(solids[0].form, solids[0].size, fine), this.material, solids.length);
      mesh.frustumCulled = false;
      mesh.castShadow = mesh.receiveShadow = this.opacity === 1;
      mesh.userData = {
        bodies: solids.map((s) => s.body), modules: solids.map((s) => s.module ?? 0),
        local: solids.map((s) => matrix(s.pose)), colors: solids.map((s) => this.tint ?? s.color),
      };
      solids.forEach((s, i) => mesh.setColorAt(i, C.set(this.tint ?? s.color)));
      this.group.add(mesh);
      this.meshes.push(mesh);
    }
  }

  clear() {
    for (const mesh of this.meshes) {
      this.group.remove(mesh);
      mesh.dispose();
    }
    this.meshes = [];
    this.cast = null;
  }

  // Seven numbers a body, flat.
  pose(numbers, offset = 0) {
    const { frames } = this;
    for (let b = 0; b < frames.length; b++) matrix(numbers, offset + 7 * b, frames[b]);
    this.place();
  }

  place() {
    for (const mesh of this.meshes) {
      const { bodies, local } = mesh.userData, array = mesh.instanceMatrix.array;
      for (let i = 0; i < bodies.length; i++) {
        M.multiplyMatrices(this.frames[bodies[i]], local[i]);
        M.toArray(array, 16 * i);
      }
      mesh.instanceMatrix.needsUpdate = true;
    }
  }

  // Tint modules of a set of names.
  light(names, color) {
    this.lit = { names, color };
    this.paint();
  }

  // Color every module by a number from 0 to 1, on a scale from one color to another; null ends it.
  shade(scale) {
    this.scale = scale;
    this.paint();
  }

  paint() {
    if (!this.cast) return;
    const { lit, scale } = this, chosen = this.cast.modules.map((m) => lit.names.has(m.name));
    for (const mesh of this.meshes) {
      const { modules, colors } = mesh.userData;
      for (let i = 0; i < modules.length; i++) {
        const level = scale?.levels.get(this.cast.modules[modules[i]].name);
        if (level === undefined) C.set(colors[i]);
        else C.set(scale.low).lerp(END.set(scale.high), level);
        if (chosen[modules[i]]) C.lerp(END.set(lit.color), level === undefined ? 0.6 : 0.25);
        mesh.setColorAt(i, C);
      }
      mesh.instanceColor.needsUpdate = true;
    }
  }

  pick(ray) {
    let nearest = null;
    for (const mesh of this.meshes) {
      mesh.computeBoundingSphere();
      const hit = ray.intersectObject(mesh)[0];
      if (hit && (!nearest || hit.distance < nearest.distance)) {
        const { modules, bodies } = mesh.userData, k = hit.instanceId;
        nearest = { distance: hit.distance, point: hit.point, body: bodies[k], module: this.cast.modules[modules[k]].name };
      }
    }
    return nearest;
  }

  center(name, into) {
    const module = this.cast?.modules.find((m) => m.name === name);
    return module ? into.setFromMatrixPosition(this.frames[module.body]) : null;
  }

  box() {
    const box = new THREE.Box3();
    if (!this.cast) return box;
    for (const mesh of this.meshes) {
      for (let i = 0; i < mesh.count; i++) {
        mesh.getMatrixAt(i, M);
        box.union(BOX.copy(mesh.geometry.boundingBox).applyMatrix4(M));
      }
    }
    return box;
  }
}
