// The ground of a run: its forces on the bodies that touch it as arrows, and the support polygon.
import { THREE } from "nicegui-scene";
import { color } from "modurob-web/bus.js";

export const WEIGHT = 3; // sizes of a module: length of an arrow for the weight of the body
const LONGEST = 5; // sizes: impacts are cut off there
const MOST = 400; // arrows
const ABOVE = 0.0015; // [m] of the polygon over the ground, so that it is seen
const Z = new THREE.Vector3(0, 0, 1);

export class Contacts {
  constructor(scene) {
    const shines = () => new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.9 });
    const parts = [new THREE.CylinderGeometry(0.04, 0.04, 1, 10), new THREE.ConeGeometry(0.12, 0.3, 14)];
    [this.shafts, this.heads] = parts.map((geometry) => new THREE.InstancedMesh(geometry.rotateX(Math.PI / 2), shines(), MOST));
    this.area = new THREE.Mesh(new THREE.BufferGeometry(), new THREE.MeshBasicMaterial({ side: THREE.DoubleSide, transparent: true, opacity: 0.28, depthTest: false }));
    this.edge = new THREE.LineLoop(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ depthTest: false, transparent: true }));
    for (const part of [this.shafts, this.heads, this.area, this.edge]) {
      part.frustumCulled = false;
      part.renderOrder = part.isInstancedMesh ? 8 : 7; // they shine through the body
      part.visible = false;
      scene.add(part);
    }
  }

  theme() {
    for (const part of [this.shafts, this.heads]) part.material.color.set(color("force"));
  }

  hide() { for (const part of [this.shafts, this.heads, this.area, this.edge]) part.visible = false; }

  // One row of each part of the run that is there; `size` is that of a module.
  show(ground, rows, size) {
    const forces = rows.flatMap(([part, row]) => part.forces[row]).slice(0, MOST);
    const from = new THREE.Vector3(), along = new THREE.Vector3(), turn = new THREE.Quaternion(), scale = new THREE.Vector3(), m = new THREE.Matrix4();
    forces.forEach(([x, y, z, fx, fy, fz], k) => {
      const force = along.set(fx, fy, fz).length(), length = size * Math.min(LONGEST, (WEIGHT * force) / ground.weight);
      turn.setFromUnitVectors(Z, along.normalize());
      from.set(x, y, z).addScaledVector(along, length / 2);
      this.shafts.setMatrixAt(k, m.compose(from, turn, scale.set(size, size, length)));
      this.heads.setMatrixAt(k, m.compose(from.addScaledVector(along, length / 2), turn, scale.setScalar(size)));
    });
    for (const mesh of [this.shafts, this.heads]) {
      mesh.count = forces.length;
      mesh.visible = forces.length > 0;
      mesh.instanceMatrix.needsUpdate = true;
    }
    const [part, row] = rows[0], corners = part.support[row];
    this.area.visible = corners.length > 2;
    this.edge.visible = corners.length > 1;
    if (!this.edge.visible) return;
    const points = corners.map(([x, y]) => new THREE.Vector3(x, y, height(ground, x, y) + ABOVE));
    for (const shape of [this.area, this.edge]) {
      shape.geometry.dispose();
      shape.geometry = new THREE.BufferGeometry().setFromPoints(points);
      shape.material.color.set(color(part.inside[row] ? "good" : "bad"));
    }
    this.area.geometry.setIndex(points.slice(2).flatMap((_, k) => [0, k + 1, k + 2]));
  }
}

export function height(ground, x, y) { return ground.height + ground.slope[0] * x + ground.slope[1] * y; }
