// Search without a server: browsers start no worker from file://, so its script runs in a hidden frame.
// As with a worker, messages are copies and arrive in a later task.
if (location.protocol === "file:") {
  const later = (deliver, data) => {
    const copy = structuredClone(data);
    setTimeout(() => deliver(new MessageEvent("message", { data: copy })));
  };

  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => later((event) => this.onmessage?.(event), data);
      const script = inner.document.createElement("script");
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      script.addEventListener("error", (event) => this.onerror?.(event));
      script.src = new URL(url, location.href);
      inner.document.documentElement.append(script);
    }

    async postMessage(data) {
      await this.loaded;
      later((event) => this.frame.contentWindow?.dispatchEvent(event), data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
