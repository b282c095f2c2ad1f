// Messages that may not have been taken yet. Each is sent again, under its one id, until the gateway has it: over a
// lost connection, a reload and a restart of the gateway. So none is lost, and none is taken twice.

import { post, whyNot } from './asking.js'

const PLACE = 'hermes-gateway-unsent'
const PAUSES = [500, 1000, 2000, 5000]

const read = () => JSON.parse(localStorage.getItem(PLACE) ?? '[]')
const keep = all => localStorage.setItem(PLACE, JSON.stringify(all))

export const listUnsent = thread => read().filter(one => one.thread === thread)

export function forget(id) {
  keep(read().filter(one => one.id !== id))
}

export const makeId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), one => one.toString(16).padStart(2, '0')).join('')

const sending = new Set()

// Returns once the message is taken; throws with the reason if it is refused for good.
export async function send(said) {
  if (sending.has(said.id)) return
  sending.add(said.id)
  try {
    keep([...read().filter(one => one.id !== said.id), said])
    for (let tries = 0; ; tries += 1) {
      const answer = await post('/chat/say', JSON.stringify(said), 'application/json').catch(() => null)
      if (answer?.ok) { forget(said.id); return }
      if (answer && answer.status < 500) {
        forget(said.id)
        throw new Error(await whyNot(answer))
      }
      await new Promise(after => setTimeout(after, PAUSES[Math.min(tries, PAUSES.length - 1)]))
      if (!read().some(one => one.id === said.id)) return  // another tab has sent it
    }
  } finally {
    sending.delete(said.id)
  }
}
