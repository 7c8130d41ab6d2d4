// Surroundings of the organism: light, shadow, floor and grid; and how rich it may be.
import { THREE } from "nicegui-scene";
import { color } from "modurob-web/bus.js";

// Without a graphics card every pixel costs: no shadows then, unless they are asked for.
export function software() {
  if (localStorage.getItem("modurob-shadows") === "on") return false;
  const gl = document.createElement("canvas").getContext("webgl");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

const CELL = 0.1; // [m] of the grid at least
const HALF = 20, STRONG = 10; // cells from the middle to the edge, and between two strong lines
const REACH = 1.2; // of the grid, over the size of what stands on it

// The floor's grid in short pieces: long lines that pass behind the eye are not drawn everywhere.
function tiles(strong, weak) {
  const points = [], colors = [], half = HALF, size = 1, a = new THREE.Color(strong), b = new THREE.Color(weak);
  for (let i = -half; i <= half; i++) {
    for (let k = -half; k < half; k++) {
      points.push(i * size, k * size, 0, i * size, (k + 1) * size, 0, k * size, i * size, 0, (k + 1) * size, i * size, 0);
      const c = i % STRONG === 0 ? a : b;
      for (let n = 0; n < 4; n++) colors.push(c.r, c.g, c.b);
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colors, 3));
  return new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true }));
}

export class Scenery {
  constructor(scene, shadows) {
    this.scene = scene;
    this.height = 0; // of the floor [m]
    this.sun = new THREE.DirectionalLight(0xffffff, 1.7);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(1024, 1024);
    this.sun.shadow.radius = 5;
    this.sun.shadow.bias = -0.0005;
    this.floor = new THREE.Mesh(new THREE.PlaneGeometry(60, 60), new THREE.ShadowMaterial());
    this.floor.receiveShadow = true;
    this.floor.visible = shadows; // it shows nothing else, and costs a third of a frame without a graphics card
    scene.add(new THREE.HemisphereLight(0xffffff, 0xaab4c0, 2.1), this.sun, this.sun.target, this.floor);
  }

  theme() {
    this.scene.background = new THREE.Color(color("stage"));
    this.scene.remove(this.grid);
    this.grid?.geometry.dispose();
    this.grid = tiles(color("grid-strong"), color("grid"));
    this.scene.add(this.grid);
    this.floor.material.opacity = document.body.classList.contains("body--dark") ? 0.45 : 0.2;
  }

  // The floor under a box, level or with a rise along x and y, and the sun above it.
  put(box, height, [a, b] = [0, 0]) {
    this.height = box.isEmpty() ? 0 : height;
    const normal = new THREE.Vector3(-a, -b, 1).normalize();
    for (const [part, below] of [[this.floor, 0.001], [this.grid, 0.002]]) {
      if (!part) continue;
      part.position.z = this.height - below;
      part.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal);
    }
    const size = box.isEmpty() ? 1 : Math.max(0.4, box.getSize(new THREE.Vector3()).length());
    const middle = box.isEmpty() ? new THREE.Vector3() : box.getCenter(new THREE.Vector3());
    let cell = CELL;
    while (HALF * cell < REACH * size) cell *= cell.toExponential()[0] === "2" ? 2.5 : 2; // 0.1, 0.2, 0.5, 1, ...
    Object.assign(this, { size, cell });
    this.grid?.scale.setScalar(cell);
    this.follow(middle);
    Object.assign(this.sun.shadow.camera, { left: -size, right: size, top: size, bottom: -size, near: 0.01, far: 6 * size });
    this.sun.shadow.camera.updateProjectionMatrix();
  }

  // Floor, grid and shadows go along with what is looked at; strong lines stay where they are.
  follow(point) {
    const { grid, floor, sun, size, cell } = this;
    if (!grid || !size) return;
    const step = STRONG * cell, begin = new THREE.Vector3(0, 0, this.height - 0.002);
    const way = point.clone().sub(begin).applyQuaternion(grid.quaternion.clone().invert());
    way.set(step * Math.round(way.x / step), step * Math.round(way.y / step), 0).applyQuaternion(grid.quaternion);
    grid.position.copy(begin).add(way);
    floor.position.copy(grid.position);
    floor.position.z += 0.001;
    floor.scale.setScalar(cell / CELL);
    sun.position.copy(point).add(new THREE.Vector3(-0.35, -0.45, 1.1).multiplyScalar(2 * size));
    sun.target.position.copy(point);
  }
}
