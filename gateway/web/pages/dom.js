// The elements that rooms are made of. Text from outside is set as text, never as markup; characters that would affect the reader
// (control characters, changes of the writing direction) are shown as their numbers.

import { icon, mark } from './signs.js'

const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

export const plain = text => String(text ?? '').replace(ODD, sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)

// `el('p.soft.small', { title }, ...)`: the tag with its classes, then properties, if any, and children.
export function el(tag, ...children) {
  const [kind, ...classes] = tag.split('.')
  const made = document.createElement(kind)
  const properties = children[0]?.constructor === Object ? children.shift() : {}
  if (classes.length) made.className = classes.join(' ')
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role') made.setAttribute(name, value)
    else made[name] = name === 'textContent' || name === 'title' ? plain(value) : value
  }
  made.append(...children.map(child => (child instanceof Node ? child : plain(child))))
  return made
}

export const seconds = value =>
  value == null ? '' : value < 0.0995 ? `${(value * 1000).toFixed(1)} ms` : value < 10 ? `${value.toFixed(1)} s` : lasting(value)

export function lasting(value) {
  if (value < 60) return `${Math.max(0, Math.floor(value))} s`
  if (value < 3600) return `${Math.floor(value / 60)} min`
  return value < 86400 ? `${Math.floor(value / 3600)} h` : `${Math.floor(value / 86400)} d`
}

const isSame = (one, other, ...parts) => parts.every(part => one[part]() === other[part]())

// The one form of times: the hour today, else the day too; the whole of it, and the zone, stand in the title.
export function timeOf(at) {
  const now = new Date()
  const hour = at.toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' })
  if (isSame(at, now, 'getDate', 'getMonth', 'getFullYear')) return hour
  const year = isSame(at, now, 'getFullYear') ? undefined : 'numeric'
  return `${at.toLocaleDateString([], { day: 'numeric', month: 'short', year })}, ${hour}`
}

// A day such as `2026-11-30`.
export const dayOf = text => new Date(`${text}T00:00`).toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })

// The time of a line that is one of many in a minute.
export const clockOf = at => at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' })

// `when` is in seconds, or as the gateway wrote it; `shown` returns the text.
export function moment(when, shown = timeOf) {
  if (!when) return ''
  const at = new Date(typeof when === 'number' ? when * 1000 : when)
  return el('time', { dateTime: at.toISOString(), title: at.toLocaleString([], { dateStyle: 'full', timeStyle: 'long' }) }, shown(at))
}

export const ago = when => moment(when, at => `${lasting((Date.now() - at) / 1000)} ago`)

export const bytes = value =>
  value > 1e9 ? `${(value / 1e9).toFixed(1)} GB` : value > 1e6 ? `${(value / 1e6).toFixed(1)} MB` : `${Math.round(value / 1e3)} kB`

// Small prices have four digits. Without one it is unknown, and not zero.
export const price = value => (value == null ? 'unknown' : value.toFixed(value && value < .1 ? 4 : 2))
export const spentOf = ({ used, limit, unit }) => (unit === 'money' ? `${price(used)} of ${price(limit)}` : `${Math.round(used).toLocaleString()} of ${Math.round(limit).toLocaleString()} ${unit}`)

// `1 call`, `2,000 calls`.
export const counted = (number, noun, nouns = `${noun}s`) => `${number.toLocaleString()} ${number === 1 ? noun : nouns}`

// The beginning of a room: its first line, which is an answer, facts below, and its buttons; `back` is the name of the room above.
export function head(title, { facts: some = [], acts = [], back } = {}) {
  const crumb = back ? [el('a.crumb', { href: `#${back.toLowerCase()}`, 'aria-label': `Back to ${back}` }, el('span', `${back} /`))] : []
  const line = some.filter(Boolean)
  return el('div',
    el('header.head', ...crumb, el('h1', { dir: 'auto' }, title), el('div.acts', ...acts.filter(Boolean))),
    ...(line.length ? [el('p.line', ...line.map(one => el('span', one)))] : []))
}

export const panel = (title, ...children) =>
  el('section.panel', ...(title ? [el('h2', ...[title].flat())] : []), ...children)

export const pad = (...children) => el('div.pad', ...children)
export const columns = (kind, ...children) => el('div', { className: `cols ${kind}` }, ...children)
export const stack = (...children) => el('div.stack', ...children)
export const quiet = text => el('p.pad.soft', text)
export const fold = (title, ...children) => el('details.fold', el('summary', icon('next'), title), ...children)
export const stateOf = (kind, words) => el('span.s', mark(kind, ''), el('span', words))

// Each row is a list of cells: texts, nodes, or {node, className}. On a phone a row becomes a card, in which numbers have their column's name.
export function table(heads, rows, empty) {
  if (!rows.length) return quiet(empty)
  const cell = (value, index) => {
    const { node = value, className = heads[index].className ?? '' } = value instanceof Node || typeof value !== 'object' || value === null ? {} : value
    return el('td', { className, 'data-label': heads[index].name }, node ?? '')
  }
  const head = el('tr', ...heads.map(one => el('th', { scope: 'col', className: one.className ?? '' }, one.name || el('span.unseen', 'Actions'))))
  return el('table', el('thead', head), el('tbody', ...rows.map(row => el('tr', ...row.map(cell)))))
}

export const column = (name, className = '') => ({ name, className })
export const number = (name, more = '') => column(name, `num ${more}`.trim())

// A name in a list with a small line below it, and a mark or initials before it.
export const named = (sign, name, small, href) => {
  const words = [el('b', { dir: 'auto' }, name), ...(small ? [el('span.sub', { dir: 'auto' }, small)] : [])]
  return el('span.named', sign, href ? el('a', { href }, ...words) : el('span', ...words))
}

// Links to other pages of a list: [name, address] of each page that exists.
export const pager = links =>
  el('p.pager', ...links.filter(Boolean).map(([name, href]) => el('a', { href }, name)))

// The address of one thing's room.
export const roomOf = (room, name) => `#${room}/${encodeURIComponent(name)}`

// The address of a place in a list: the page, the words that it is searched for, and the chosen tab.
export function placeIn(room, wanted) {
  const place = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)).toString()
  return place ? roomOf(room, `?${place}`) : `#${room}`
}

export const pagesFrom = (room, { first, ...others }, rows, count) => pager([
  first > 0 && ['first', placeIn(room, others)], first > rows && ['previous', placeIn(room, { first: first - rows, ...others })],
  first + rows < count && ['next', placeIn(room, { first: first + rows, ...others })]])

export function placeFrom(rest) {
  const { first, text = '', tab = '' } = Object.fromEntries(new URLSearchParams(rest.slice(1)))
  return { first: Number(first) || 0, text, tab }
}

// A field of a form, which has to be filled.
export const fieldOf = (name, label, more) => el('input', { name, required: true, autocomplete: 'off', 'aria-label': label, placeholder: label, 'data-key': name, ...more })

// `addressOf` returns the address of the results for these words.
export function searchFor(label, text, addressOf) {
  const field = el('input', { type: 'search', defaultValue: text, placeholder: label, 'aria-label': label })
  const search = event => {
    event.preventDefault()
    location.hash = addressOf(event.currentTarget.querySelector('input').value.trim())
  }
  return el('form.find', { role: 'search', onsubmit: search }, icon('search'), field)
}

// `tabs` are [name, address, is open, count]. Beside them is the field to search in the room.
export const tabs = (rows, ...beside) => el('div.tabs',
  el('nav.set', { 'aria-label': 'Which' }, ...rows.map(([name, href, isOpen, count]) =>
    el('a', { href, ...(isOpen && { 'aria-current': 'true' }) }, name, ...(count == null ? [] : [el('small', count.toLocaleString())])))), ...beside)

// The tabs of a list, {tab: name}, with the search beside them; `counts` has the rows behind each tab, if all are known.
export const sieve = (room, names, { tab, text }, label, counts = {}) => tabs(
  Object.entries(names).map(([one, name]) => [name, placeIn(room, { tab: one, text }), one === tab, counts[one]]), searchFor(label, text, words => placeIn(room, { text: words, tab })))

// On a phone rows are cards, so a page has fewer of them.
export const phone = matchMedia('(max-width: 800px)')
export const rowsOf = (wide, narrow) => (phone.matches ? narrow : wide)

export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== '' && value != null)
  return el('dl.facts', ...shown.flatMap(([name, value]) => [el('dt', name), el('dd', value)]))
}

export function button(label, { sign, ...properties } = {}) {
  return el('button', { type: 'button', className: 'btn', ...properties }, ...(sign ? [icon(sign)] : []), label)
}

// A button of which only the sign is seen.
export const signButton = (sign, label, properties = {}) =>
  el('button', { type: 'button', className: 'btn bare', 'aria-label': label, title: label, ...properties }, icon(sign))

// A line to type, in the words with which the program was called, and a button that copies it.
let program = 'hermes-gateway'
export const setProgram = name => { program = name }

export const command = words => literal(`${program} ${plain(words)}`)

// A text of the gateway: what it says, and its lines to type. What leads to such a line is left out: it stands by itself.
export function spell(text) {
  const [told, ...lines] = text.split(/(?=hermes-gateway [a-z])/)
  const said = told.replace(/(?:[;,:]?\s*(?:read it, )?(?:then )?run)?[;:,]?\s*$/, '')
  return [said, lines.map(line => command(line.replace('hermes-gateway ', '').trim()))]
}

// A text that is typed or run, exactly as it is.
export function literal(text) {
  const line = plain(text)
  const copy = event => {
    const pressed = event.currentTarget
    navigator.clipboard?.writeText(line).then(() => { pressed.replaceChildren(icon('check')); pressed.title = 'Copied' }, () => {})
  }
  return el('div.cmd', { 'data-key': `cmd ${line}`, 'data-own': '' }, el('span', line), signButton('copy', 'Copy', { onclick: copy }))
}

// Saves a text as a file of the reader.
export function saveAs(name, text, type = 'text/plain') {
  const address = URL.createObjectURL(new Blob([text], { type }))
  el('a', { href: address, download: name.replace(/[^\w.-]/g, '_') }).click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
  return `Saved as ${name}.`
}

// Updates the shown nodes to the new ones, and keeps each node that stays: with its focus, its scrolling, its unfolded
// state and its input. `data-key` identifies a node; one with `data-own` updates itself.
const HANDLERS = ['onclick', 'onsubmit', 'oninput', 'onchange', 'ontoggle', 'onpointermove', 'onpointerleave', 'onkeydown', 'onblur']
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
