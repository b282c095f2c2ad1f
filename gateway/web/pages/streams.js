// Server-sent events, read by fetch: an EventSource sends no header, and so no login.

import { get } from './asking.js'

// Calls `heard(kind, data, id)` for each event, and `lost()` once if the connection ends, or was refused.
export function follow(path, heard, lost) {
  const ending = new AbortController()
  read(path, heard, ending.signal).catch(() => {}).then(() => ending.signal.aborted || lost())
  return { close: () => ending.abort() }
}

async function read(path, heard, signal) {
  const answer = await get(path, { signal })
  if (!answer.ok) return
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ;) {
    const { value, done } = await reader.read()
    if (done) return
    const events = (rest + value).split('\n\n')
    rest = events.pop()
    for (const event of events) tell(event, heard)
  }
}

function tell(event, heard) {
  const rows = event.split('\n').map(row => [row.slice(0, row.indexOf(': ')), row.slice(row.indexOf(': ') + 2)])
  const fields = Object.fromEntries(rows)
  if (fields.event) heard(fields.event, JSON.parse(fields.data), fields.id)
}
