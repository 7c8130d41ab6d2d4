// The joints of the pose, or goals of a live robot: one slider each, within its limits.
import { on } from "modurob-web/bus.js";

const MANY = 60; // joints: only those in view are laid out while a body is dragged

const STEP = 40; // milliseconds between two poses that are sent

export default {
  template: `
    <div class="slides" :class="{ goals, many: joints.length > MANY }" tabindex="0" role="group" :aria-label="goals ? 'Goals of joints' : 'Joints'">
      <div v-for="joint in joints" :key="joint.name" v-memo="[joint, joint.value, joint.rate, joint.measured]" class="slide" :data-joint="joint.name" :data-module="joint.module">
        <label :for="id(joint)" :title="joint.name">{{ joint.name }}</label>
        <input :id="id(joint)" type="range" :title="'from ' + shown(joint, joint.lower) + ' to ' + shown(joint, joint.upper)" :min="joint.lower" :max="joint.upper" :step="(joint.upper - joint.lower) / 400"
               :value="joint.value" @input="slide(joint, $event.target.valueAsNumber)" @dblclick="slide(joint, 0)" />
        <output>{{ shown(joint, joint.value) }}</output>
        <output v-if="goals" class="measured" title="Measured">{{ joint.measured === undefined ? "" : shown(joint, joint.measured) }}</output>
        <template v-else><input class="rate" type="number" step="any" :value="joint.rate" :aria-label="'Velocity of ' + joint.name + ' at the start'"
               :title="joint.slides ? 'Velocity at the start [mm/s]' : 'Velocity at the start [°/s]'" @input="joint.rate = $event.target.value" @change="push(joint, $event.target.valueAsNumber)" />
        <span class="unit" aria-hidden="true">{{ joint.slides ? "mm/s" : "°/s" }}</span>
        <button type="button" class="lock" title="Lock this joint here" :aria-label="'Lock ' + joint.name + ' here'" :data-testid="'lock-' + joint.name" @click="$emit('lock', joint.name)"><span class="material-icons">lock_open</span></button></template>
      </div>
    </div>`,
  props: { goals: Boolean },
  data: () => ({ joints: [], MANY }),
  mounted() { if (this.goals) this.end = on("measured", (q) => { for (const joint of this.joints) joint.measured = q[joint.name]; }); },
  beforeUnmount() { this.end?.(); },
  methods: {
    id(joint) { return `${this.goals ? "goal" : "joint"}-${joint.name}`; },
    // Typed text is kept in joint.rate: every update of the page writes the bound value again.
    set_joints(joints) { this.joints = joints; },
    set_values(values) { for (const joint of this.joints) joint.value = values[joint.name] ?? 0; },
    shown(joint, value) { return joint.slides ? `${(1000 * value).toFixed(0)} mm` : `${((180 / Math.PI) * value).toFixed(1)}°`; },
    // Shown in degrees and millimeters, sent in radians and meters.
    push(joint, value) {
      joint.rate = value || 0;
      this.$emit("rate", { name: joint.name, value: joint.rate * (joint.slides ? 1e-3 : Math.PI / 180) });
    },
    slide(joint, value) {
      joint.value = value;
      this.waiting = { ...(this.waiting ?? {}), [joint.name]: value };
      if (!this.timer) this.tell();
    },
    // The first value at once, those after it in steps.
    tell() {
      this.timer = this.waiting && setTimeout(() => this.tell(), STEP);
      if (this.waiting) this.$emit("pose", this.waiting);
      this.waiting = null;
    },
  },
};
