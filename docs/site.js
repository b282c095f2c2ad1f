// Search, where the site is read from a disk: browsers give such pages no worker, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe")
    #ready

    constructor(url) {
      super()
      this.#frame.hidden = true
      document.body.append(this.#frame)
      const inside = this.#frame.contentWindow
      inside.postMessage = (data) => this.#tell(data) // to whoever made this, as a worker's goes
      inside.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => this.#load(one)), Promise.resolve())
      this.#ready = this.#load(url)
    }

    #load(url) {
      return new Promise((done, failed) => {
        const inside = this.#frame.contentDocument
        const script = inside.createElement("script")
        Object.assign(script, { src: new URL(url, location), onload: done, onerror: failed })
        inside.body.append(script)
      })
    }

    #tell(data) {
      const message = new MessageEvent("message", { data })
      this.dispatchEvent(message)
      this.onmessage?.(message)
    }

    postMessage(data) {
      const inside = this.#frame.contentWindow
      this.#ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) })))
    }

    terminate() {
      this.#frame.remove()
    }
  }
}
