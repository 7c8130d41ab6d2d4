// The time of playback. It lives here, not on the server: a frame costs no message.
import { say } from "modurob-web/bus.js";

export const clock = { t: 0, begin: 0, end: 0, playing: false, speed: 1, loop: true };
export const stats = { frames: 0, script: 0 }; // script: milliseconds spent in listeners
window.modurob = { ...(window.modurob ?? {}), clock, stats };

let before = 0;

function frame(now) {
  if (!clock.playing) return;
  const begin = performance.now();
  const dt = Math.min(0.25, (now - before) / 1000); // a tab that slept goes on where it was
  before = now;
  const length = clock.end - clock.begin;
  let t = clock.t + dt * clock.speed;
  if (t >= clock.end) {
    if (clock.loop && length > 0) t = clock.begin + ((t - clock.begin) % length);
    else {
      t = clock.end;
      clock.playing = false;
      say("playing", false);
    }
  }
  clock.t = t;
  say("time", t);
  stats.frames += 1;
  stats.script += performance.now() - begin;
  if (clock.playing) requestAnimationFrame(frame);
}

export function play(on) {
  if (on === clock.playing) return;
  if (on && clock.t >= clock.end) clock.t = clock.begin;
  clock.playing = on;
  before = performance.now();
  say("playing", on);
  if (on) requestAnimationFrame(frame);
}

export function seek(t) {
  clock.t = Math.min(clock.end, Math.max(clock.begin, t));
  say("time", clock.t);
}

export function span(begin, end) {
  Object.assign(clock, { begin, end, t: begin });
  say("time", clock.t);
}
