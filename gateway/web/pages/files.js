// Files of conversations: fetched with the login, since no tag sends it, and shown from the memory of this tab.

import { get } from './asking.js'

const MOST_KEPT = 50
const kept = new Map()  // by their address here, what the browser calls them; the oldest goes first

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
    fill.get(target)().catch(() => {})  // its name stands there
  }
}, { rootMargin: '300px' })

// What is shown once it is near the screen.
export function showLater(node, fetched) {
  fill.set(node, fetched)
  near.observe(node)
  return node
}
