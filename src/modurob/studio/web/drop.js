// A place for files over the whole page, there while files are dragged over the window.
export default {
  template: `<div class="drop" v-show="on" @dragleave="leave" @drop="on = false"><div class="drop-text">Drop a project, an organism, URDF, CoBRA or a datasheet</div><slot></slot></div>`,
  data: () => ({ on: false }),
  mounted() {
    this.enter = (event) => { if (event.dataTransfer?.types.includes("Files") && !document.querySelector(".q-dialog")) this.on = true; };
    this.stop = (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); }; // the browser would leave the page
    document.addEventListener("dragenter", this.enter);
    for (const name of ["dragover", "drop"]) document.addEventListener(name, this.stop);
  },
  beforeUnmount() {
    document.removeEventListener("dragenter", this.enter);
    for (const name of ["dragover", "drop"]) document.removeEventListener(name, this.stop);
  },
  methods: { leave(event) { if (!event.relatedTarget || !this.$el.contains(event.relatedTarget)) this.on = false; } },
};
