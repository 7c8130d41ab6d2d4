// Whether everything is written. By itself: a label of NiceGUI that changes has the whole page rendered anew, before
// a body that is sent with it is drawn.
export default {
  template: `<div class="saved" role="status" data-testid="saved">{{ text }}<q-tooltip>{{ reason }}</q-tooltip></div>`,
  data: () => ({ text: "", reason: "" }),
  methods: { show_saved(text, reason) { Object.assign(this, { text, reason }); } },
};
