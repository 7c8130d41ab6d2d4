// Distances between chosen modules, and the angle at the second of three.
import { THREE } from "nicegui-scene";
import { color } from "modurob-web/bus.js";

const MOST = 6; // modules that are measured: more are chosen for other reasons

export class Measures {
  constructor(scene, labels) {
    Object.assign(this, { labels, tags: [], names: [] });
    this.line = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineDashedMaterial({ depthTest: false, transparent: true, dashSize: 0.02, gapSize: 0.012 }));
    this.line.renderOrder = 10;
    this.line.frustumCulled = this.line.visible = false;
    scene.add(this.line);
  }

  set(names) {
    this.names = names.length > 1 && names.length <= MOST ? names : [];
    this.labels.replaceChildren();
    this.tags = [];
    this.line.visible = false;
  }

  // Where the modules are now.
  draw(bodies, camera, width, height) {
    if (!this.names.length) return;
    const points = this.names.map((name) => bodies.center(name, new THREE.Vector3()));
    this.line.visible = points.every(Boolean);
    if (!this.line.visible) return;
    this.line.material.color.set(color("axis"));
    this.line.geometry.setFromPoints(points);
    this.line.computeLineDistances();
    const found = points.slice(1).map((p, k) => [`${(1000 * p.distanceTo(points[k])).toFixed(0)} mm`, p.clone().add(points[k]).multiplyScalar(0.5)]);
    if (points.length === 3) {
      const [a, b, c] = points, angle = a.clone().sub(b).angleTo(c.clone().sub(b));
      found.push([`${THREE.MathUtils.radToDeg(angle).toFixed(1)}°`, b.clone().addScaledVector(camera.up, 0.35 * a.distanceTo(b))]);
    }
    found.forEach(([text, place], k) => {
      const tag = this.tags[k] ?? this.added();
      if (tag.textContent !== text) tag.textContent = text;
      place.project(camera);
      tag.style.transform = `translate(-50%, -50%) translate(${((place.x + 1) * width) / 2}px, ${((1 - place.y) * height) / 2}px)`;
    });
  }

  added() {
    const tag = document.createElement("div");
    tag.className = "tag tag-measure";
    this.labels.append(tag);
    this.tags.push(tag);
    return tag;
  }
}
