// The files of conversations: fetched with the login, which tags do not send, and shown from this tab's memory.

import { get } from './asking.js'

const MOST_KEPT = 50
const kept = new Map()  // by address here: the browser's own address; the oldest is removed first

async function keep(href) {
  const answer = await get(href)
  if (!answer.ok) throw new Error(`${href}: ${answer.status}`)
  return URL.createObjectURL(await answer.blob())
}

export function open(href) {
  if (kept.has(href)) return kept.get(href)
  if (kept.size >= MOST_KEPT) {
    const [oldest, gone] = kept.entries().next().value
    kept.delete(oldest)
    gone.then(URL.revokeObjectURL, () => {})
  }
  const kind = keep(href).catch(error => { kept.delete(href); throw error })
  kept.set(href, kind)
  return kind
}

const fill = new WeakMap()
const near = new IntersectionObserver(seen => {
  for (const { target } of seen.filter(one => one.isIntersecting)) {
    near.unobserve(target)
    fill.get(target)().catch(() => {})  // its name is shown
  }
}, { rootMargin: '300px' })

// Fills a node once it is near the screen.
export function showLater(node, fetched) {
  fill.set(node, fetched)
  near.observe(node)
  return node
}
