// The frame: the open room, the way to the others, and the times of drawing.

import { endLogin, ask, may, mayLook, me } from './asking.js'
import { catchUp, forgetActions, keepFocus, perform, saidElsewhere } from './acting.js'
import { el, head, phone, plain, quiet, renew, roomOf, setProgram, signButton } from './dom.js'
import { listen } from './live.js'
import { openPalette } from './palette.js'
import { avatar, icon, mark } from './signs.js'
import * as chat from './chat.js'
import * as conversations from './conversations.js'
import * as costs from './costs.js'
import * as deeds from './deeds.js'
import * as events from './events.js'
import * as hooks from './hooks.js'
import * as jobs from './jobs.js'
import * as logs from './logs.js'
import { findOpen } from './needs.js'
import * as networks from './networks.js'
import * as overview from './overview.js'
import * as people from './people.js'
import * as settings from './settings.js'
import * as undelivered from './undelivered.js'

const MAIN = { overview, chat, conversations, hooks, jobs, people, settings }
const MORE = { networks, costs, live: events, logs, deeds }
const BAR = ['overview', 'chat', 'conversations', 'hooks']  // at the thumb, on a phone
const ALL = { ...MAIN, ...MORE, undelivered }
const WITHIN = { undelivered: 'hooks' }  // rooms without a way of their own
const EARLIER = { inbox: 'overview', letters: 'undelivered', events: 'live', usage: 'costs', configuration: 'settings', activity: 'deeds' }
const isMine = ([name, room]) => (mayLook || name === 'chat') && (!room.needs || may(room.needs))
const ROOMS = Object.fromEntries(Object.entries(ALL).filter(isMine))
const FIRST = Object.keys(ROOMS)[0]
const PAUSE = 2000  // milliseconds between two refreshes, at least
const BEAT = 15000  // milliseconds between two refreshes without an event

const byId = id => document.getElementById(id)
let open = { room: ROOMS[FIRST], name: FIRST, rest: '', due: 0 }
let isUp = true
let due = null
let isDrawn = false  // true once the open room is drawn, and not only loading

setProgram(me.program)

async function look() {
  const looked = open
  const isDue = performance.now() >= looked.due
  const asked = mayLook ? ask('status') : null
  const found = mayLook ? findOpen() : null
  try {
    // All at once, so that none waits for another one's request.
    const frame = Promise.all([asked, found]).then(([status, needs]) => status && showFrame(status, needs))
    const [shown] = await Promise.all([isDue ? looked.room.show(looked.rest, asked, found) : null, frame])
    if (isDue) looked.due = performance.now() + (looked.room.calm ?? 0)
    if (looked === open && shown) draw(shown)
  } catch (error) {
    if (error instanceof TypeError) showLost()
    else if (looked === open) draw(el('div', head(looked.room.title), el('p.bad-text', { role: 'alert' }, error.message)))
  }
}

// Unfolded parts, input and the focus stay as they are.
function draw(shown) {
  const drawn = byId('room').firstElementChild
  if (byId('room').querySelector('.whole')) return
  catchUp(shown)
  if (drawn?.isConnected && isDrawn) keepFocus(() => renew(drawn, shown))
  else byId('room').replaceChildren(shown)
  if (!isDrawn) open.room.drawn?.()
  isDrawn = true
  byId('done').textContent = plain(saidElsewhere())
  document.title = `${byId('room').querySelector('h1')?.textContent || open.room.title} · hermes-gateway`
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

function showFrame(status, needs) {
  const isWell = status.journal.ok && status.intake === 'open'
  const kind = !isWell ? 'bad' : status.attention.length ? 'warn' : 'ok'
  byId('light').replaceChildren(mark(kind, { bad: 'takes no messages', warn: 'something needs you', ok: 'all is well' }[kind]))
  byId('role').textContent = `${me.role} · ${plain(status.version)}`
  byId('role').title = plain(status.home)
  const count = status.attention.length + needs.count
  byId('count-overview').textContent = count || ''
  byId('count-overview').title = count ? `${count} need you` : ''
  if (!isUp) return showLost()
  byId('line').hidden = true
  byId('line').textContent = plain(status.state)
}

function showLost() {
  byId('light')?.replaceChildren(mark('bad', 'the line is lost'))
  byId('line').hidden = false
  byId('line').textContent = 'Reconnecting: the line to the gateway is lost. What you see may be old.'
}

// The ways to the rooms: a column, which on a phone is a bar at the thumb.
function drawNav() {
  const way = ([name, room]) => el('li', { className: BAR.includes(name) ? '' : 'desk' },
    el('a', { href: `#${name}`, id: `to-${name}` }, icon(name), el('span', room.title), ...(name === 'overview' ? [el('b', { id: 'count-overview' })] : [])))
  const those = rooms => Object.entries(rooms).filter(([name]) => name in ROOMS).map(way)
  const more = those(MORE)
  const folded = el('li.desk', el('details', { id: 'more' }, el('summary', icon('more'), 'More'), el('ul.rooms', ...more)))
  const thumb = el('li.thumb', el('button', { type: 'button', onclick: seek }, icon('more'), el('span', 'More')))
  const out = me.is_named ? [] : [signButton('door', 'Log out', { onclick: leave })]
  byId('nav').replaceChildren(
    el('a.house', { href: `#${FIRST}` }, el('img', { src: '/static/icon.svg', alt: '', width: 22, height: 22 }), 'hermes-gateway', el('span', { id: 'light' })),
    el('button', { type: 'button', className: 'seek', onclick: seek }, icon('search'), 'Search', el('kbd', 'Ctrl K')),
    el('ul.rooms', { id: 'rooms' }, ...those(MAIN), ...(more.length ? [folded] : []), thumb),
    el('div.me', avatar(me.person), el('span', me.person, el('small', { id: 'role' }, me.role)), ...out))
}

async function leave() {
  await endLogin()
  location.reload()
}

const act = (verb, params, said) => perform(`palette ${verb}`, verb, params, said, ({ text }) => { byId('done').textContent = plain(text) })

function seek() {
  const rooms = Object.entries(ROOMS).filter(([name]) => !(name in WITHIN)).map(([name, room]) => ({ group: 'Rooms', name: room.title, sign: name, act: () => { location.hash = name } }))
  const barred = rooms.filter((_, at) => !(phone.matches && BAR.includes(Object.keys(ROOMS)[at])))
  const deeds = [
    { name: 'New chat', sign: 'plus', act: () => { location.hash = chat.freshAddress() } },
    ...(may('reload') ? [{ name: 'Reload settings', sign: 'reload', act: () => act('reload', {}, settings.saidReloaded) }] : []),
    ...(me.is_named ? [] : [{ name: 'Log out', sign: 'door', act: leave }]),
  ]
  openPalette([...barred, ...deeds.map(one => ({ group: 'Actions', ...one }))], mayLook ? findNames : null)
}

async function findNames() {
  const listed = (room, all, show) => all.map(one => {
    const [name, more, id] = show(one)
    return { group: ALL[room].title, name, more, sign: room, act: () => { location.hash = roomOf(room, id) } }
  })
  const [{ people = [] }, { hooks: found }, { jobs: planned }, { sessions }] = await Promise.all([
    may('people.list') ? ask('people.list', { limit: 500 }) : {}, ask('hooks.list', { limit: 500 }), ask('jobs.list'), ask('sessions.list', { limit: 200 }),
  ])
  return [
    ...listed('people', people, one => [one.name || one.person, one.role, one.person]), ...listed('hooks', found, one => [one.label, one.description, one.name]),
    ...listed('jobs', planned, one => [one.name, jobs.whenOf(one), jobs.keyOf(one)]),
    ...listed('conversations', may('sessions.show') ? sessions : [], one => [conversations.called(one), one.platform, one.session_id]),
  ]
}

function decode(text) {
  try { return decodeURIComponent(text) } catch { return text }  // typed by hand
}

function enter() {
  open.room.leave?.()
  forgetActions()
  byId('done').textContent = ''
  isDrawn = false
  const [asked, ...rest] = location.hash.slice(1).split('/')
  const name = EARLIER[asked] ?? asked
  const isThere = Boolean(ROOMS[name])
  const room = ROOMS[isThere ? name : FIRST]
  open = { room, name: isThere ? name : FIRST, rest: decode(rest.join('/')), due: 0 }
  const way = WITHIN[open.name] ?? open.name
  for (const link of byId('rooms').querySelectorAll('a')) link.removeAttribute('aria-current')
  byId(`to-${way}`)?.setAttribute('aria-current', 'page')
  if (way in MORE) byId('more').open = true
  document.body.classList.toggle('chatting', open.name === 'chat')
  byId('rooms').querySelector('.thumb button').classList.toggle('here', !BAR.includes(way))
  document.title = `${room.title} · hermes-gateway`
  byId('room').replaceChildren(el('div', head(room.title), quiet('Loading …')))
  scrollTo(0, 0)
  if (looking) again = false
  look()
}

document.addEventListener('seek', seek)
document.addEventListener('late', refresh)
addEventListener('keydown', event => {
  if ((event.ctrlKey || event.metaKey) && event.key === 'k') { event.preventDefault(); seek() }
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /INPUT|TEXTAREA|SELECT/.test(event.target.tagName)) return
  const field = byId('room').querySelector('input[type=search]')
  if (field) { event.preventDefault(); field.focus() }
})
listen(message => {
  const was = isUp
  if (message.kind === 'up' || message.kind === 'down') isUp = message.kind === 'up'
  if (was !== isUp && !isUp) showLost()
  if (message.kind === 'done') { open.due = 0; refresh() }
  else if (message.kind !== 'down') soon()
})
window.addEventListener('hashchange', () => { enter(); if (open.name !== 'chat') byId('content').focus({ preventScroll: true }) })
document.querySelector('.skip').addEventListener('click', event => { event.preventDefault(); byId('content').focus() })
drawNav()
setInterval(refresh, BEAT)
enter()
