// The joints of the pose: one slider each, within its limits.
export default {
  template: `
    <div class="slides" tabindex="0" role="group" aria-label="Joints">
      <div v-for="joint in joints" :key="joint.name" class="slide" :data-joint="joint.name" :data-module="joint.module">
        <label :for="'joint-' + joint.name" :title="joint.name">{{ joint.name }}</label>
        <input :id="'joint-' + joint.name" type="range" :title="'from ' + shown(joint, joint.lower) + ' to ' + shown(joint, joint.upper)" :min="joint.lower" :max="joint.upper" :step="(joint.upper - joint.lower) / 400"
               :value="joint.value" @input="slide(joint, $event.target.valueAsNumber)" @dblclick="slide(joint, 0)" />
        <output>{{ shown(joint, joint.value) }}</output>
        <input class="rate" type="number" step="any" :value="joint.rate" :aria-label="'Velocity of ' + joint.name + ' at the start'"
               :title="joint.slides ? 'Velocity at the start [mm/s]' : 'Velocity at the start [°/s]'" @input="joint.rate = $event.target.value" @change="push(joint, $event.target.valueAsNumber)" />
        <span class="unit" aria-hidden="true">{{ joint.slides ? "mm/s" : "°/s" }}</span>
      </div>
    </div>`,
  data: () => ({ joints: [] }),
  methods: {
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
      if (this.timer) return;
      this.timer = setTimeout(() => { this.timer = null; this.$emit("pose", this.waiting); this.waiting = null; }, 40);
    },
  },
};
