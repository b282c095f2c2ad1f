// The elements of the rooms. Text from outside is set as text, never as markup; characters that would affect the reader
// (control characters, changes of the writing direction) are shown as their numbers.

const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

export const plain = text => String(text ?? '').replace(ODD, sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role') made.setAttribute(name, value)
    else made[name] = name === 'textContent' || name === 'title' ? plain(value) : value
  }
  made.append(...children.map(child => (child instanceof Node ? child : plain(child))))
  return made
}

export const seconds = value =>
  value == null ? '' : value < 0.0995 ? `${(value * 1000).toFixed(1)} ms` : value < 10 ? `${value.toFixed(2)} s` : `${Math.round(value)} s`

export function lasting(value) {
  if (value < 60) return `${Math.max(0, Math.floor(value))} s`
  if (value < 3600) return `${Math.floor(value / 60)} min`
  return value < 86400 ? `${Math.floor(value / 3600)} h` : `${Math.floor(value / 86400)} d`
}

export const ago = at => (at ? `${lasting(Date.now() / 1000 - at)} ago` : '')

// A time in the local format; `when` is in seconds, or as the gateway wrote it.
export function moment(when) {
  if (when == null || when === '') return ''
  const at = new Date(typeof when === 'number' ? when * 1000 : when)
  return el('time', { dateTime: at.toISOString(), title: at.toISOString() }, at.toLocaleString())
}

export const bytes = value =>
  value > 1e9 ? `${(value / 1e9).toFixed(1)} GB` : value > 1e6 ? `${(value / 1e6).toFixed(1)} MB` : `${Math.round(value / 1e3)} kB`

// `1 call`, `2,000 calls`.
export const counted = (number, noun, nouns = `${noun}s`) => `${number.toLocaleString()} ${number === 1 ? noun : nouns}`

export const dot = kind => el('i', { className: `dot ${kind}`, 'aria-hidden': 'true' })

export const panel = (title, ...children) => el('section', { className: 'panel' }, el('h2', {}, ...[title].flat()), ...children)

export const fact = (name, value, more = '') =>
  el('div', { className: 'panel' }, el('p', { textContent: name }), el('strong', { textContent: value }), el('small', { textContent: more }))

// Each row is a list of cells: texts, nodes, or {node, className}. On a phone a row becomes a card with these labels.
export function table(heads, rows, empty) {
  if (!rows.length) return el('p', { className: 'soft', textContent: empty })
  const cell = (value, index) => {
    const { node = value, className = heads[index].className ?? '' } = value instanceof Node || typeof value !== 'object' || value === null ? {} : value
    return el('td', { className, 'data-label': heads[index].name }, node ?? '')
  }
  const head = el('tr', {}, ...heads.map(one => el('th', { scope: 'col', className: one.className ?? '', textContent: one.name })))
  return el('table', {}, el('thead', {}, head), el('tbody', {}, ...rows.map(row => el('tr', {}, ...row.map(cell)))))
}

export const column = (name, className = '') => ({ name, className })
export const number = name => column(name, 'n')

// Links to other pages of a list: [name, address] of each page that exists.
export const pager = links =>
  el('p', { className: 'pager' }, ...links.filter(Boolean).map(([name, href]) => el('a', { href }, name)))

// The address of a place in a paged list, perhaps one that is searched for a text; and the reading of such an address.
export function placeIn(room, { first, text }) {
  const place = new URLSearchParams({ ...(first && { first }), ...(text && { text }) }).toString()
  return `#${room}${place && `/${encodeURIComponent(`?${place}`)}`}`
}

export const pagesFrom = (room, { first, text }, rows, count) => pager([
  first > 0 && ['the first', placeIn(room, { text })], first > rows && ['before', placeIn(room, { first: first - rows, text })],
  first + rows < count && ['further', placeIn(room, { first: first + rows, text })]])

export function placeFrom(rest) {
  const place = new URLSearchParams(rest.slice(1))
  return { first: Number(place.get('first')) || 0, text: place.get('text') ?? '' }
}

// `addressOf` returns the address of the results for these words.
export function searchFor(label, text, addressOf) {
  const field = el('input', { type: 'search', defaultValue: text, placeholder: label, 'aria-label': label })
  const search = event => {
    event.preventDefault()
    location.hash = addressOf(event.currentTarget.querySelector('input').value.trim())
  }
  return el('form', { className: 'search', role: 'search', onsubmit: search }, field, el('button', {}, 'Search'))
}

// On a phone rows are cards, so a page has fewer of them.
const phone = matchMedia('(max-width: 900px)')
export const rowsOf = (wide, narrow) => (phone.matches ? narrow : wide)

export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== '' && value != null)
  return el('dl', {}, ...shown.flatMap(([name, value]) => [el('dt', { textContent: name }), el('dd', {}, value)]))
}

const SVG = 'http://www.w3.org/2000/svg'

export function spark(traces) {
  const drawn = document.createElementNS(SVG, 'svg')
  const failed = traces.filter(one => one.error).length
  drawn.setAttribute('class', 'spark')
  drawn.setAttribute('viewBox', '0 0 92 20')
  drawn.setAttribute('role', 'img')
  drawn.setAttribute('aria-label', `${traces.length === 1 ? 'the last call' : `the last ${traces.length} calls`}, ${failed} failed`)
  traces.slice(-23).forEach((trace, index) => {
    const bar = document.createElementNS(SVG, 'rect')
    const height = Math.max(2, Math.min(20, 4 * Math.log10(1 + trace.seconds * 1000) + 2))
    for (const [name, value] of Object.entries({ x: index * 4, y: 20 - height, width: 3, height, rx: 1 })) bar.setAttribute(name, value)
    if (trace.error) bar.setAttribute('class', 'failed')
    drawn.append(bar)
  })
  return drawn
}

// Updates the shown nodes to the new ones, and keeps each node that stays: with its focus, its scrolling, its unfolded
// state and its input. `data-key` identifies a node; one with `data-own` updates itself.
const HANDLERS = ['onclick', 'onsubmit', 'oninput', 'onchange', 'ontoggle']
const keyOf = node => node.dataset?.key

export function renew(old, made) {
  if (old.nodeName !== made.nodeName || keyOf(old) !== keyOf(made)) return old.replaceWith(made)
  if (old.nodeType === Node.TEXT_NODE) { if (old.data !== made.data) old.data = made.data; return }
  for (const { name, value } of [...made.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  for (const { name } of [...old.attributes]) if (name !== 'open' && !made.hasAttribute(name)) old.removeAttribute(name)
  for (const name of HANDLERS) old[name] = made[name]
  if (!made.dataset || !('own' in made.dataset)) renewChildren(old, made)
}

function renewChildren(old, made) {
  const wanted = new Set([...made.children].map(keyOf).filter(Boolean))
  for (const child of [...old.children]) if (keyOf(child) && !wanted.has(keyOf(child))) child.remove()
  const keyed = new Map([...old.children].filter(keyOf).map(child => [keyOf(child), child]))
  let at = old.firstChild
  for (const child of [...made.childNodes]) {
    const same = keyOf(child) ? keyed.get(keyOf(child)) : at && !keyOf(at) && at.nodeName === child.nodeName ? at : null
    if (!same) { old.insertBefore(child, at); continue }
    if (same === at) at = at.nextSibling
    else old.insertBefore(same, at)
    renew(same, child)
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next }
}
