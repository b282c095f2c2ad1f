// Events as they happen: the newest first, with their fields; a pause, and filters by name, hook or session.

import { el, panel, plain } from './dom.js'
import { listen } from './live.js'

export const title = 'Events'

const MOST = 500
const heard = []
const wanted = { name: '', hook: '', session: '' }
let isPaused = false
let drawn = null

listen(message => {
  if (message.kind !== 'event' && message.kind !== 'gap') return
  heard.unshift(message)
  heard.length = Math.min(heard.length, MOST)
  if (!drawn?.list.isConnected || isPaused || !isWanted(message, drawn.wanted)) return
  drawn.list.prepend(drawEvent(message))
  while (drawn.list.childElementCount > drawn.most) drawn.list.lastChild.remove()
})

// `tool:*`, `*:end`, or a part of a name; a part of the name of a hook or a session.
function isWanted({ kind, event, fields }, { name, hook, session }) {
  if (kind === 'gap') return true
  const isNamed = name.includes('*') ? new RegExp(`^${name.split('*').map(escape).join('.*')}$`).test(event) : event.includes(name)
  const has = (part, ...values) => !part || values.some(value => typeof value === 'string' && value.includes(part))
  return isNamed && has(hook, fields.hook, fields.cause, fields.origin) && has(session, fields.session_key, fields.session_id)
}

const escape = text => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
const ALL = { name: '', hook: '', session: '' }

function drawEvent(message) {
  if (message.kind === 'gap') return el('li', { className: 'gap' }, 'some events before this were missed')
  const { fields } = message
  const about = [fields.tool, fields.command, fields.hook, fields.text, fields.message, fields.session_key].find(one => typeof one === 'string')
  const time = new Date(fields.time * 1000).toTimeString().slice(0, 8)
  const summary = el('summary', {}, el('time', {}, time), el('span', {}, message.event, ' ', el('i', {}, plain(about).slice(0, 120))))
  const details = el('details', {}, summary)
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(el('pre', { textContent: JSON.stringify(fields, null, 1) }))
  })
  return el('li', {}, details)
}

// The list updates itself: if it is shown already, the returned node only holds its place.
export function drawTail(most, only = ALL) {
  const list = el('ol', { className: 'tail', tabIndex: 0, 'aria-label': 'Events, the newest first', 'data-key': 'tail', 'data-own': '' })
  if (drawn?.list.isConnected && drawn.most === most) return list
  list.append(...heard.filter(one => isWanted(one, only)).slice(0, most).map(drawEvent))
  drawn = { list, most, wanted: only }
  return list
}

export async function show() {
  if (drawn?.list.isConnected && drawn.most === MOST) return null  // it updates itself
  const place = el('div', {}, drawTail(MOST, wanted))
  const draw = () => { drawn = null; place.replaceChildren(drawTail(MOST, wanted)) }
  const filter = (name, label) => el('input', { type: 'search', value: wanted[name], placeholder: label, 'aria-label': label, oninput: event => { wanted[name] = event.target.value.trim(); draw() } })
  const pause = el('button', { type: 'button', 'aria-pressed': String(isPaused) }, 'Pause')
  pause.onclick = () => { isPaused = !isPaused; pause.setAttribute('aria-pressed', String(isPaused)); pause.textContent = isPaused ? 'Go on' : 'Pause'; draw() }
  return el('div', {},
    el('div', { className: 'search' }, filter('name', 'Names, such as tool:*'), filter('hook', 'Of this hook'), filter('session', 'Of this session'), pause),
    panel(['Events', el('small', {}, 'as they happen, while the page is open; a hook is told again of its own in its room')], place))
}
