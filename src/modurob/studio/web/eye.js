// Orbit camera: rotates about a target point and moves smoothly to show the organism.
import { THREE, OrbitControls } from "nicegui-scene";

const FLIGHT = 250; // [ms]
const NEAR = 0.01, FAR = 40; // what is drawn, over the distance of the target

export class Eye {
  constructor(canvas, changed) {
    this.changed = changed;
    this.camera = new THREE.PerspectiveCamera(30, 1, 0.02, 100);
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(0.55, -1.0, 0.8);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.addEventListener("change", () => { this.depth(); changed(); });
  }

  // Another size of the canvas: what was in view stays in view, also where it becomes narrower than high.
  resize(width, height) {
    const { camera, controls } = this, before = this.distance(1);
    camera.aspect = width / height;
    camera.updateProjectionMatrix();
    const factor = this.distance(1) / before;
    const scale = (point, center) => point.sub(center).multiplyScalar(factor).add(center);
    scale(camera.position, controls.target);
    if (this.flight) { scale(this.flight[1], this.flight[0]); scale(this.flight[3], this.flight[2]); }
    if (this.journey) this.journey.usual *= factor;
    this.depth();
  }

  fit(box, smooth = true) {
    if (box.isEmpty()) return;
    const sphere = box.getBoundingSphere(new THREE.Sphere()), distance = this.distance(1.08 * sphere.radius);
    const direction = this.camera.position.clone().sub(this.controls.target).normalize();
    this.fly(sphere.center, sphere.center.clone().addScaledVector(direction, distance), smooth);
  }

  // Near and far planes that suit the distance of what is looked at.
  depth() {
    const { camera, controls } = this, distance = camera.position.distanceTo(controls.target);
    if (Math.abs(camera.far - FAR * distance) < 0.2 * camera.far) return;
    Object.assign(camera, { near: NEAR * distance, far: FAR * distance });
    camera.updateProjectionMatrix();
  }

  // From where all within a radius is seen.
  distance(radius) {
    const half = THREE.MathUtils.degToRad(this.camera.fov / 2) * Math.min(1, this.camera.aspect);
    return Math.max(radius, 0.13) / Math.sin(half);
  }

  // Move by as much as something has traveled since the last call, and step back while all within `reach`
  // of the point in the middle is not seen; the user's own zoom stays. Without arguments: a new journey.
  along(travel = null, reach = null) {
    const { camera, controls } = this, before = this.journey, away = camera.position.clone().sub(controls.target);
    this.journey = travel && { usual: away.length(), back: 1, ...before, travel: travel.clone() };
    if (!travel || !before) return;
    const step = travel.clone().sub(before.travel);
    if (this.flight) {
      for (const place of this.flight) place.add(step);
      return;
    }
    controls.target.add(step);
    this.journey.back = Math.max(1, this.distance(reach(controls.target)) / before.usual);
    camera.position.copy(controls.target).addScaledVector(away, this.journey.back / before.back);
    this.depth();
    this.changed();
  }

  from_above() {
    const target = this.controls.target.clone(), away = this.camera.position.distanceTo(target);
    this.fly(target, target.clone().add(new THREE.Vector3(0, -1e-3, 1).setLength(away)), true);
  }

  fly(target, place, smooth) {
    smooth &&= !matchMedia("(prefers-reduced-motion: reduce)").matches;
    const begin = performance.now(), a = this.controls.target.clone(), b = this.camera.position.clone();
    const flight = (this.flight = [a, b, target, place]); // a journey goes on meanwhile
    const distance = place.distanceTo(target);
    if (this.journey) Object.assign(this.journey, { usual: distance, back: 1 });
    const step = () => {
      if (this.flight !== flight) return;
      const x = smooth ? Math.min(1, (performance.now() - begin) / FLIGHT) : 1, s = x * x * (3 - 2 * x);
      this.controls.target.lerpVectors(a, target, s);
      this.camera.position.lerpVectors(b, place, s);
      this.depth();
      this.changed();
      if (x < 1) requestAnimationFrame(step);
      else this.flight = null;
    };
    step();
  }

  // Whether a part of the box is out of sight.
  misses(box) {
    if (box.isEmpty()) return false;
    const { camera } = this;
    camera.updateMatrixWorld();
    const seen = new THREE.Frustum().setFromProjectionMatrix(new THREE.Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse));
    const ends = [box.min, box.max], corner = new THREE.Vector3();
    for (let k = 0; k < 8; k++) {
      if (!seen.containsPoint(corner.set(ends[k & 1].x, ends[(k >> 1) & 1].y, ends[k >> 2].z))) return true;
    }
    return false;
  }
}
