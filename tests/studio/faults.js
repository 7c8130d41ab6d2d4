// Flaws of the layout, in words: controls and texts that are cut off, covered or over one another.
() => {
  const found = new Set(), root = document.querySelector(".q-dialog") ?? document.querySelector(".frame");
  const name = (e) => e.dataset?.testid || e.ariaLabel || e.innerText?.slice(0, 40) || e.className;
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest(".sr-only") &&
    e.getBoundingClientRect().width > 0;
  const controls = "button, select, input:not([type=file])";
  const texts = ".note, .title, .saved, h2, h3, .time, [role=separator]";
  // names of modules in the drawings lie where the modules are
  const drawn = ".stage-labels, .stage-arrows, svg, math, .plot, .event, .keyframes, .skip";
  const box = (r) => ({ x: [r.left, r.right], y: [r.top, r.bottom] });
  const edges = (e) => box(e.getBoundingClientRect());
  const how = (e, axis) => getComputedStyle(e)[axis === "x" ? "overflowX" : "overflowY"];
  const related = (a, b) => a.contains(b) || b.contains(a);
  // What is left of a place within all that clips it; null where nothing is.
  const clipped = (place, e) => {
    const left = { x: [Math.max(0, place.x[0]), Math.min(innerWidth, place.x[1])], y: [Math.max(0, place.y[0]), Math.min(innerHeight, place.y[1])] };
    for (let p = e; p; p = p.parentElement) for (const axis of ["x", "y"]) {
      if (how(p, axis) === "visible") continue;
      const [low, high] = edges(p)[axis];
      left[axis] = [Math.max(low, left[axis][0]), Math.min(high, left[axis][1])];
    }
    return left.x[1] - left.x[0] > 6 && left.y[1] - left.y[0] > 6 ? left : null;
  };
  const paints = (e) => {
    const style = getComputedStyle(e), [, alpha = 1] = /^rgba\(.*, ([\d.]+)\)$/.exec(style.backgroundColor) ?? [];
    if (style.opacity * 1 < 0.5) return false; // it shines through
    return e.matches("canvas, img, svg, svg *, input[type=range]") || alpha >= 0.5 || style.backgroundImage !== "none";
  };
  // The uppermost element that hides a point of another one.
  const cover = (x, y, own) => {
    for (const e of document.elementsFromPoint(x, y)) {
      if (related(e, own)) return null;
      if (paints(e)) return e;
    }
    return null;
  };
  const points = ({ x, y }) => [0.5, 0.06, 0.94].map((s) => [x[0] + s * (x[1] - x[0]), (y[0] + y[1]) / 2]);

  const all = document.createElement("style"); // also what lets clicks through can cover something
  all.textContent = "* { pointer-events: auto !important }";
  document.head.append(all);
  for (const e of [...root.querySelectorAll(`${controls}, ${texts}`)].filter(seen)) {
    const own = edges(e);
    for (const axis of ["x", "y"]) {
      let scrolls = false, out = false;
      for (let p = e.parentElement; p; p = p.parentElement) {
        if (how(p, axis) === "visible") continue;
        const [low, high] = edges(p)[axis];
        scrolls ||= !["hidden", "clip"].includes(how(p, axis));
        out ||= !scrolls && (own[axis][0] < low - 1 || own[axis][1] > high + 1);
      }
      const end = axis === "x" ? innerWidth : innerHeight;
      out ||= !scrolls && (own[axis][0] < -1 || own[axis][1] > end + 1);
      if (out) found.add(`cut off along ${axis}: ${name(e)}`);
    }
    const dots = !e.children.length && getComputedStyle(e).textOverflow === "ellipsis"; // of its own text
    if (e.matches("button, .title, .note") && e.scrollWidth > e.clientWidth + 1 && !dots)
      found.add(`longer than its place: ${name(e)}`);
    const rows = [...(e.querySelector(":scope > .q-btn__content")?.children ?? [])].filter(seen).map((part) => edges(part).y);
    if (rows.some((a) => rows.some((b) => a[0] >= b[1]))) found.add(`icon and text in two lines: ${name(e)}`);
    const place = e.matches(controls) && !e.matches(drawn) ? clipped(own, e.parentElement) : null;
    for (const at of place ? points(place) : []) {
      const over = cover(...at, e);
      if (over) found.add(`${name(e)} is below ${name(over)}`);
    }
  }

  // Every line of text: not below anything, and not in the place of another one.
  const lines = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const owner = node.parentElement;
    if (!node.textContent.trim() || !seen(owner) || owner.closest(drawn)) continue;
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const place = clipped(box(rect), owner);
      if (place) lines.push({ owner, place, text: node.textContent.trim().slice(0, 40) });
    }
  }
  for (const { owner, place, text } of lines)
    for (const at of points(place)) {
      const over = cover(...at, owner);
      if (over) found.add(`the text "${text}" is below ${name(over)}`);
    }
  const apart = 3; // [px] by which lines of text may reach into each other: ascents and descents are empty
  const shared = (a, b, axis) => Math.min(a[axis][1], b[axis][1]) - Math.max(a[axis][0], b[axis][0]);
  lines.forEach((a, k) => lines.slice(k + 1).forEach((b) => {
    if (a.owner !== b.owner && shared(a.place, b.place, "x") > apart && shared(a.place, b.place, "y") > apart)
      found.add(`the text "${a.text}" is over "${b.text}"`);
  }));
  all.remove();

  // Panels and cards scroll up and down only; wide tables in them have a scroll bar of their own.
  for (const e of [...root.querySelectorAll(".scroll, .side, .q-card, .welcome-card, .columns")].filter(seen))
    if (e.scrollWidth > e.clientWidth + 1) found.add(`scrolls sideways: ${name(e)}`);
  const tops = [...root.querySelectorAll(".bar > .q-btn, .bar > .modes")].map((e) => edges(e).y).sort((a, b) => a[0] - b[0]);
  const rows = tops.filter((y, k) => k === 0 || y[0] >= tops[k - 1][1]).length;
  if (rows > (innerWidth > 760 ? 1 : 2)) found.add(`the bar has ${rows} rows`);
  if (document.documentElement.scrollWidth > innerWidth) found.add("the page scrolls sideways");
  return [...found];
}
