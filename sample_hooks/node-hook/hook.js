// Each line on stdin is a request: {"id", "method": event name, "params": its fields}. Each line on stdout an answer:
// a result of null leaves the event as it is, an object changes fields.
const readline = require("node:readline");

const shortcuts = { gm: "good morning", brb: "I will be right back" };

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  let result = null;
  if (method === "message:received" && params.text in shortcuts) {
    result = { text: shortcuts[params.text] };
  }
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");
});
