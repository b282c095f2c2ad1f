// Events as they happen: the newest first, in words where a sentence is known, with their fields; a pause, and filters by
// name, hook or session.

import { el, head, panel, plain, seconds, timeOf } from './dom.js'
import { listen } from './live.js'
import { mark } from './signs.js'

export const title = 'Live'

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

// What happened in words, by the event's name: [the mark, who, what]. Others keep their name.
const who = one => one.user_name || one.user_id || 'Somebody'
const WORDS = {
  'message:received': one => ['run', who(one), `wrote on ${one.platform}`],
  'message:sent': one => ['ok', 'An answer', `was sent on ${one.platform}`],
  'agent:start': one => ['run', 'A turn', `began${one.user_name ? ` for ${one.user_name}` : ''}`],
  'agent:end': one => (one.completed === false ? ['off', 'A turn', `ended: ${one.stop ?? ''}`] : ['ok', who(one), 'got an answer']),
  'tool:before': one => ['run', one.tool, 'is called'],
  'tool:after': one => [one.error ? 'bad' : 'ok', one.tool, one.error ? 'failed' : `ended${one.duration ? ` in ${seconds(one.duration)}` : ''}`],
  'llm:before': () => ['run', 'The model', 'is asked'],
  'llm:after': () => ['ok', 'The model', 'answered'],
  'hook:failed': one => ['bad', one.hook, 'failed'],
  'hook:tripped': one => ['bad', one.hook, 'failed so often that it is left alone for a while'],
  'hook:loaded': one => ['ok', one.hook, 'was loaded'],
  'message:failed': one => ['bad', 'An answer', `could not be sent on ${one.platform}`],
  'platform:up': one => ['ok', one.platform, 'is up'],
  'platform:down': one => ['warn', one.platform, 'is down'],
  'access:denied': one => ['warn', who(one), `was turned away on ${one.platform}`],
  'access:paired': one => ['ok', who(one), `can write on ${one.platform}`],
  'interrupt:before': one => ['wait', who(one), 'is waiting for an approval'],
  'job:due': one => ['run', one.job, 'is due'],
  'job:done': one => ['ok', one.job, 'ran'],
  'job:failed': one => ['bad', one.job, `failed: ${one.reason}`],
  'job:skipped': one => ['off', one.job, `was skipped: ${one.reason}`],
  'job:missed': one => ['warn', one.job, `was missed: ${one.reason}`],
  'gateway:startup': () => ['ok', 'The gateway', 'started'],
  'gateway:shutdown': () => ['off', 'The gateway', 'stops'],
  'session:start': () => ['run', 'A conversation', 'began'],
  'session:end': () => ['off', 'A conversation', 'ended'],
  'budget:warning': one => ['warn', one.budget, 'is nearly used up'],
}

function drawEvent(message) {
  if (message.kind === 'gap') return el('li.gap', 'some events before this were missed')
  const { fields, event } = message
  const [kind, subject, words] = WORDS[event]?.(fields) ?? ['off', event, '']
  const about = [fields.tool, fields.command, fields.hook, fields.text, fields.message, WORDS[event] ? '' : fields.session_key].find(one => typeof one === 'string' && one !== subject)
  const time = new Date(fields.time * 1000)
  const summary = el('summary', { title: event },
    mark(kind, ''), el('span', el('b', { dir: 'auto' }, subject), ' ', el('i', words, ' ', plain(about).slice(0, 120))),
    el('time', { dateTime: time.toISOString() }, timeOf(time)))
  const details = el('details', summary)
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(el('pre', { tabIndex: 0, textContent: `${event}\n${JSON.stringify(fields, null, 1)}` }))
  })
  return el('li', details)
}

// The list updates itself: if it is shown already, the returned node only holds its place.
export function drawTail(most, only = ALL) {
  const list = el('ol.events', { tabIndex: 0, 'aria-label': 'Events, the newest first', 'data-key': 'tail', 'data-own': '' })
  if (drawn?.list.isConnected && drawn.most === most) return list
  list.append(...heard.filter(one => isWanted(one, only)).slice(0, most).map(drawEvent))
  drawn = { list, most, wanted: only }
  return list
}

export async function show() {
  if (drawn?.list.isConnected && drawn.most === MOST) return null  // it updates itself
  const place = panel('', drawTail(MOST, wanted))
  const draw = () => { drawn = null; place.replaceChildren(drawTail(MOST, wanted)) }
  const filter = (name, label) => el('input', { type: 'search', className: 'field', value: wanted[name], placeholder: label, 'aria-label': label, oninput: event => { wanted[name] = event.target.value.trim(); draw() } })
  const pause = el('button', { type: 'button', className: 'btn', 'aria-pressed': String(isPaused) }, isPaused ? 'Resume' : 'Pause')
  pause.onclick = () => { isPaused = !isPaused; pause.setAttribute('aria-pressed', String(isPaused)); pause.textContent = isPaused ? 'Resume' : 'Pause'; draw() }
  return el('div',
    head(title, { facts: ['Events as they happen, while the page is open'], acts: [pause] }),
    el('div.filters', filter('name', 'Names, such as tool:*'), filter('hook', 'Of this hook'), filter('session', 'Of this session')), place)
}
