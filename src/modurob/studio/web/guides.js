// Over the stage: a scale bar, and arrows to pieces that are out of sight.
import { THREE } from "nicegui-scene";

const BAR = 110; // pixels that the bar has at most
const MARGIN = 0.86; // of the way from the middle to the edge: arrows are there
const CLOSE = [110, 26]; // pixels between two arrows below which they become one
const P = new THREE.Vector3();

// The largest of 1, 2, 5, 10, 20, ... that is not above x.
export function round_down(x) {
  const power = 10 ** Math.floor(Math.log10(x)), digit = x / power;
  return (digit >= 5 ? 5 : digit >= 2 ? 2 : 1) * power;
}

function words(meters) {
  if (meters >= 1) return `${Number(meters.toPrecision(2))} m`;
  return meters >= 0.01 ? `${Math.round(100 * meters)} cm` : `${Number((1000 * meters).toPrecision(1))} mm`;
}

export class Guides {
  // `go(place)` is called with a place of the world when an arrow is clicked.
  constructor(bar, arrows, go) {
    Object.assign(this, { bar, arrows, go, length: 0 });
  }

  // The length of a bar at the point that the camera looks at.
  measure(camera, target, height) {
    const meter = height / (2 * camera.position.distanceTo(target) * Math.tan(THREE.MathUtils.degToRad(camera.fov / 2)));
    const length = round_down(BAR / meter);
    if (!Number.isFinite(length)) return;
    if (length !== this.length) this.bar.textContent = words((this.length = length));
    this.bar.style.width = `${Math.round(length * meter)}px`;
  }

  // `places`: [name, position] of pieces; those out of sight get an arrow at the edge.
  point(camera, places, width, height, from) {
    const { arrows } = this, found = [];
    for (const [name, place] of places) {
      P.copy(place).project(camera);
      if (P.z < 1 && Math.max(Math.abs(P.x), Math.abs(P.y)) < 1) continue;
      const sign = P.z < 1 ? 1 : -1, edge = MARGIN / Math.max(Math.abs(P.x), Math.abs(P.y), 1e-9);
      const x = ((sign * P.x * edge + 1) * width) / 2, y = ((1 - sign * P.y * edge) * height) / 2;
      const close = found.find((other) => Math.abs(other.x - x) < CLOSE[0] && Math.abs(other.y - y) < CLOSE[1]);
      if (close) close.names.push(name);
      else found.push({ names: [name], x, y, place: place.clone() });
    }
    found.forEach(({ names, x, y, place }, k) => {
      const arrow = arrows.children[k] ?? this.added();
      const text = `${names.slice(0, 3).join(", ")}${names.length > 3 ? " …" : ""} ${words(Math.max(1e-3, place.distanceTo(from)))}`;
      if (arrow.lastChild.textContent !== text) arrow.lastChild.textContent = text;
      arrow.place = place;
      arrow.style.transform = `translate(-50%, -50%) translate(${x}px, ${y}px)`;
      arrow.firstChild.style.transform = `rotate(${Math.atan2(y - height / 2, x - width / 2)}rad)`;
    });
    while (arrows.children.length > found.length) arrows.lastChild.remove();
  }

  added() {
    const arrow = document.createElement("button");
    arrow.type = "button";
    arrow.className = "arrow";
    arrow.title = "Show this piece";
    arrow.append(document.createElement("i"), document.createElement("span"));
    arrow.firstChild.textContent = "➤";
    arrow.addEventListener("click", () => this.go(arrow.place));
    this.arrows.append(arrow);
    return arrow;
  }
}
