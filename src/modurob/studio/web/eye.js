// The eye: a camera that turns around a point, and flies to where there is something to see.
import { THREE, OrbitControls } from "nicegui-scene";

const FLIGHT = 250; // [ms]

export class Eye {
  constructor(canvas, changed) {
    this.changed = changed;
    this.camera = new THREE.PerspectiveCamera(30, 1, 0.02, 100);
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(0.55, -1.0, 0.8);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.addEventListener("change", changed);
  }

  resize(width, height) {
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
  }

  fit(box, smooth = true) {
    if (box.isEmpty()) return;
    const sphere = box.getBoundingSphere(new THREE.Sphere());
    const half = THREE.MathUtils.degToRad(this.camera.fov / 2) * Math.min(1, this.camera.aspect);
    const distance = (1.08 * Math.max(sphere.radius, 0.12)) / Math.sin(half);
    const direction = this.camera.position.clone().sub(this.controls.target).normalize();
    this.fly(sphere.center, sphere.center.clone().addScaledVector(direction, distance), smooth);
  }

  from_above() {
    const target = this.controls.target.clone(), away = this.camera.position.distanceTo(target);
    this.fly(target, target.clone().add(new THREE.Vector3(0, -1e-3, 1).setLength(away)), true);
  }

  fly(target, place, smooth) {
    const begin = performance.now(), a = this.controls.target.clone(), b = this.camera.position.clone();
    const step = () => {
      const x = smooth ? Math.min(1, (performance.now() - begin) / FLIGHT) : 1, s = x * x * (3 - 2 * x);
      this.controls.target.lerpVectors(a, target, s);
      this.camera.position.lerpVectors(b, place, s);
      this.changed();
      if (x < 1) requestAnimationFrame(step);
    };
    step();
  }

  // Whether a part of the box is out of sight.
  misses(box) {
    if (box.isEmpty()) return false;
    const { camera } = this;
    camera.updateMatrixWorld();
    const seen = new THREE.Frustum().setFromProjectionMatrix(new THREE.Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse));
    return ![box.min, box.max].every((p) => seen.containsPoint(p));
  }
}
