// Browsers start no worker from a file. On pages that are opened without a server a hidden frame does its work, so that
// the search finds something there as well.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inner = frame.contentWindow
      this.loaded = new Promise(done => { this.inner.shimekiriLoaded = done })
      addEventListener("message", event => {
        if (event.source !== this.inner) return
        const message = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(message)
        if (this.onmessage) this.onmessage(message)
      })
      const page = this.inner.document
      page.open()
      page.write(
        "<script>var done = shimekiriLoaded; postMessage = data => parent.postMessage(data, '*');" +
        "importScripts = (...urls) => Promise.all(urls.map(url => new Promise(ready => {" +
        "const script = document.createElement('script'); script.src = url; script.onload = ready;" +
        "document.body.appendChild(script) })))</script>" +
        `<body><script src="${url}" onload="done()"></script></body>`
      )
      page.close()
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
