// The frame: the open room, the parts beside it, and the times of drawing.

import { ask, endLogin, may, mayLook, me } from './asking.js'
import { catchUp, forgetActions, keepFocus, saidElsewhere } from './acting.js'
import { el, lasting, plain, renew } from './dom.js'
import { listen } from './live.js'
import * as activity from './activity.js'
import * as chat from './chat.js'
import * as configuration from './configuration.js'
import * as conversations from './conversations.js'
import * as events from './events.js'
import * as hooks from './hooks.js'
import * as inbox from './inbox.js'
import { findOpen } from './inbox.js'
import * as letters from './letters.js'
import * as logs from './logs.js'
import * as networks from './networks.js'
import * as overview from './overview.js'
import * as people from './people.js'
import * as usage from './usage.js'

const ROOMS = mayLook ? { overview, inbox, hooks, conversations, letters, networks, events, chat, people, usage, logs, configuration, activity } : { chat }
const FIRST = Object.keys(ROOMS)[0]
const PAUSE = 2000  // milliseconds between two refreshes, at least
const BEAT = 15000  // milliseconds between two refreshes without an event

const byId = id => document.getElementById(id)
let open = { room: ROOMS[FIRST], name: FIRST, rest: '', due: 0 }
let isUp = true
let due = null
let isDrawn = false  // true once the open room is drawn, and not only loading

for (const [name, room] of Object.entries(ROOMS)) {
  if (room.needs && !may(room.needs)) continue
  byId('rooms').append(el('li', {}, el('a', { href: `#${name}`, id: `to-${name}` }, room.title, el('b', { id: `count-${name}` }))))
}

async function look() {
  const looked = open
  const isDue = performance.now() >= looked.due
  const asked = mayLook ? ask('status') : null
  try {
    // All at once, so that none waits for another one's request.
    const [, , shown] = await Promise.all([
      asked?.then(showFrame), asked && findOpen().then(({ count }) => showCount('inbox', count)),
      isDue ? looked.room.show(looked.rest, asked) : null,
    ])
    if (isDue) looked.due = performance.now() + (looked.room.calm ?? 0)
    if (looked === open && shown) draw(shown)
  } catch (error) {
    if (error instanceof TypeError) showLost()
    else if (looked === open) draw(el('p', { className: 'bad-text' }, error.message))
  }
}

// Unfolded parts, input and the focus stay as they are.
function draw(shown) {
  const drawn = byId('room').firstElementChild
  if (byId('room').querySelector('.whole')) return
  catchUp(shown)
  if (drawn?.isConnected && isDrawn) keepFocus(() => renew(drawn, shown))
  else byId('room').replaceChildren(shown)
  isDrawn = true
  byId('done').textContent = plain(saidElsewhere())
}

// At most one refresh at a time, and one more if an event came meanwhile.
let looking = null
let again = false
function refresh() {
  if (looking) { again = true; return looking }
  looking = look().finally(() => { looking = null; if (again) { again = false; soon() } })
  return looking
}

function soon() {
  due ??= setTimeout(() => { due = null; refresh() }, PAUSE * (0.75 + Math.random() / 2))  // not all pages at one moment
}

function showFrame(status) {
  const isWell = status.journal.ok && status.intake === 'open'
  byId('light').className = `dot ${!isWell ? 'bad' : status.attention.length ? 'warn' : 'ok'}`
  byId('line').textContent = plain(`${status.state}, up ${lasting(Date.now() / 1000 - status.since)}, model ${status.model}`)
  if (!isUp) showLost()
  byId('foot').textContent = plain(`version ${status.version}\n${status.home}`)
  showCount('overview', status.attention.length)
}

function showCount(name, count) {
  const shown = byId(`count-${name}`)
  if (shown) shown.textContent = count || ''
}

function showLost() {
  byId('light').className = 'dot bad'
  byId('line').textContent = 'the line to the gateway is lost: what is shown may be old; trying again'
}

function decode(text) {
  try { return decodeURIComponent(text) } catch { return text }  // typed by hand
}

function enter() {
  open.room.leave?.()
  forgetActions()
  byId('done').textContent = ''
  isDrawn = false
  const [name, ...rest] = location.hash.slice(1).split('/')
  const isThere = ROOMS[name] && byId(`to-${name}`)
  const room = ROOMS[isThere ? name : FIRST]
  open = { room, name: isThere ? name : FIRST, rest: decode(rest.join('/')), due: 0 }
  for (const link of byId('rooms').querySelectorAll('a')) link.removeAttribute('aria-current')
  byId(`to-${open.name}`).setAttribute('aria-current', 'page')
  byId('rooms').scrollLeft = byId(`to-${open.name}`).offsetLeft - 30  // on a phone this is a strip
  byId('heading').textContent = room.title
  document.title = `${room.title} · hermes-gateway`
  byId('room').replaceChildren(el('p', { className: 'soft', textContent: 'Loading …' }))
  if (looking) again = false
  look()
}

listen(message => {
  const was = isUp
  if (message.kind === 'up' || message.kind === 'down') isUp = message.kind === 'up'
  if (was !== isUp && !isUp) showLost()
  if (message.kind === 'done') refresh()
  else if (message.kind !== 'down') soon()
})
window.addEventListener('hashchange', () => { enter(); byId('content').focus() })
document.querySelector('.skip').addEventListener('click', event => { event.preventDefault(); byId('content').focus() })
byId('end').hidden = me.is_named
byId('end').addEventListener('click', async () => { await endLogin(); location.reload() })
setInterval(refresh, BEAT)
enter()
