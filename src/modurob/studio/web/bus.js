// What the components of one page tell each other; the server hears none of it.
const hub = new EventTarget();

// NiceGUI's rule that hides all beside a note for browsers without modules, which is gone. While the rule is there,
// an element that comes or goes has all beside it styled anew: with 500 modules half of what a click costs the page.
for (const { sheet } of document.querySelectorAll("style")) {
  const at = [...(sheet?.cssRules ?? [])].findIndex((rule) => rule.selectorText?.startsWith("#esm-fallback ~"));
  if (at >= 0) sheet.deleteRule(at);
}

// NiceGUI writes the color scheme at each update of the page, and browsers style everything anew for it.
const scheme = document.getElementById("nicegui-color-scheme");
if (scheme) {
  scheme.setAttribute = (name, value) => {
    if (scheme.getAttribute(name) !== value) Element.prototype.setAttribute.call(scheme, name, value);
  };
}

export function say(topic, detail) {
  hub.dispatchEvent(new CustomEvent(topic, { detail }));
}

// Returns a function that ends it.
export function on(topic, listener) {
  const wrapped = (event) => listener(event.detail);
  hub.addEventListener(topic, wrapped);
  return () => hub.removeEventListener(topic, wrapped);
}

// -- highlights: hovering a table cell lights the module or joint in 3D, and back ------------------

let lit = { module: null, joint: null };

export function highlight(module, joint) {
  if (lit.module === module && lit.joint === joint) return;
  lit = { module, joint };
  for (const element of document.querySelectorAll(".lit")) element.classList.remove("lit");
  for (const [key, value] of Object.entries(lit)) {
    if (value === null) continue;
    const name = CSS.escape(value);
    for (const element of document.querySelectorAll(`[data-${key}~="${name}"]`)) element.classList.add("lit");
  }
  say("highlight", lit);
}

export function names(element) {
  const found = element?.closest?.("[data-module],[data-joint]");
  return found ? { module: found.dataset.module?.split(" ")[0] ?? null, joint: found.dataset.joint ?? null } : null;
}

function hovered(event) {
  const found = names(event.target);
  if (found) highlight(found.module, found.joint);
  else if (event.target.closest?.(".table, math, .stage") === null) highlight(null, null);
}

document.addEventListener("pointerover", hovered);
document.addEventListener("focusin", (event) => names(event.target) && hovered(event));

// -- keys of the page: what a key means is decided here, where it is known what has the focus ---------

const COPYING = { c: "copy", v: "paste", d: "repeat", m: "mirror" }; // with Ctrl, while no text is marked
const FIELDS = ["INPUT", "SELECT", "TEXTAREA"];
let left = null; // a dialog that was left by Escape: it closes when the server has answered

function dialog() {
  const found = [...document.querySelectorAll(".q-dialog")].pop() ?? null;
  return found === left ? null : found;
}

function command(event) {
  const control = event.ctrlKey || event.metaKey, key = control ? event.key.toLowerCase() : event.key;
  if (control && key === "s") return "save";
  if (key === "Escape" && !document.querySelector(".q-menu")) left = dialog() ?? left;
  if (dialog()) return null; // keys are its own
  if (event.altKey && /^Digit[1-5]$/.test(event.code)) return event.code; // keys, not letters: Alt changes those on Macs
  if (FIELDS.includes(document.activeElement?.tagName)) return null;
  if (control && key === "z") return event.shiftKey ? "redo" : "undo";
  if (control && key === "y") return "redo";
  if (control && COPYING[key] && !getSelection().toString()) return COPYING[key];
  return key === "Delete" ? "remove" : null;
}

document.addEventListener("keydown", (event) => {
  const found = command(event), field = document.activeElement;
  if (!found) return;
  event.preventDefault();
  if (event.repeat) return;
  if (found === "save" && FIELDS.includes(field?.tagName)) { // what was typed belongs to what is saved
    field.blur();
    field.focus();
  }
  say("command", found);
});

// -- a warning before unsaved work is lost: it could not be written, or the server is gone ---------

addEventListener("beforeunload", (event) => {
  const state = document.querySelector("[data-testid=saved]")?.innerText ?? "";
  const offline = window.socket && !window.socket.connected;
  if (!window.modurob?.leaving && (state.startsWith("Not") || (offline && state.startsWith("Saving")))) event.preventDefault();
});

// -- lists of tabs answer arrow keys -----------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  const tab = event.target.closest?.("[role=tab]"), list = tab?.closest("[role=tablist]");
  if (!list || step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const tabs = [...list.querySelectorAll("[role=tab]")], at = tabs.indexOf(tab) + step, last = tabs.length - 1;
  const next = tabs[Number.isFinite(at) ? (at + tabs.length) % tabs.length : at < 0 ? 0 : last];
  next.focus();
  next.click();
  event.preventDefault();
});

// -- browsers send no click if the button moves between press and release: it is sent here ---------------

const STILL = 6; // pixels that the pointer may move meanwhile
let pressed = null;

document.addEventListener("pointerdown", (event) => {
  const button = event.button === 0 ? event.target.closest?.("button") : null;
  pressed = button && { button, x: event.clientX, y: event.clientY };
}, true);
document.addEventListener("pointerup", (event) => {
  const { button, x, y } = pressed ?? {}, under = document.elementFromPoint(event.clientX, event.clientY);
  pressed = null;
  if (button?.isConnected && !button.contains(under) && Math.hypot(event.clientX - x, event.clientY - y) < STILL) button.click();
}, true);

// -- colors of the theme ---------------------------------------------------------------------------

let colors = new Map(), dark = null; // kept: to ask for one makes the browser compute all styles anew

export function color(name) {
  if (!colors.get(name)) colors.set(name, getComputedStyle(document.body).getPropertyValue(`--${name}`).trim());
  return colors.get(name);
}

new MutationObserver(() => {
  const now = document.body.classList.contains("body--dark");
  if (now === dark) return;
  dark = now;
  colors = new Map();
  say("theme");
}).observe(document.body, { attributeFilter: ["class"] });

// -- bodies come as what differs from those before --------------------------------------------------

const LOST = "modurob-lost", PATIENCE = 10_000; // milliseconds between two reloads: a page must not load itself forever

// What is shown does not follow from what came: the server has it all, and nothing is lost by a reload.
function start_again() {
  if (Date.now() - Number(sessionStorage.getItem(LOST)) > PATIENCE) {
    sessionStorage.setItem(LOST, Date.now());
    window.modurob.leaving = true;
    location.reload();
  }
  throw new Error("a message was lost: reload the page");
}

// Lists of a component, put together of pieces of what it had and of what is new.
export class Received {
  lists = {};
  count = 0;

  read(data) {
    if (typeof data !== "string") return data; // whole
    const { number, lists, rest } = JSON.parse(data);
    if (number !== this.count++) start_again();
    for (const [name, pieces] of Object.entries(lists)) {
      const before = this.lists[name] ?? [];
      this.lists[name] = pieces.flatMap((piece) => piece.new ?? before.slice(...piece.old));
    }
    return { ...rest, ...this.lists };
  }
}
