// Events as they happen, by one connection for all tabs: the tab that holds the lock has it, and passes events on. Each
// event has a number. A tab knows the last number that it saw: a duplicate counts once, and a tab that missed an event,
// or hears nothing from a sleeping tab, takes over the connection and gets all later events.

import { mayLook } from './asking.js'
import { follow as hear } from './streams.js'

const NAME = 'hermes-gateway-events'
const BEAT = 4000  // milliseconds between signs of life from the tab with the connection
const SILENCE = 13000  // milliseconds without a sign, after which a visible tab takes over
const AGAIN = 1500

const channel = new BroadcastChannel(NAME)
const listeners = new Set()
let seen = null
let source = null
let heardAt = Date.now()
let isTaking = false
let release = () => {}

export function listen(listener) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

channel.onmessage = message => take(message.data)

// Sends an event, or an action here, to all rooms of all tabs.
export function tellAll(message) {
  take(message)
  channel.postMessage(message)
}

function take(message) {
  heardAt = Date.now()
  if (message.kind === 'beat') return
  if (message.kind === 'gap') seen = null
  if (message.kind === 'event') {
    const { run, number } = message
    if (seen?.run === run && number <= seen.number) return
    if (seen?.run === run && number > seen.number + 1) { lead(); return }
    seen = { run, number }
  }
  listeners.forEach(listener => listener(message))
}

function connect() {
  source?.close()
  const mine = source = hear(seen ? `/live?seen=${seen.run}-${seen.number}` : '/live', (kind, data, id) => {
    if (kind === 'hello') tellAll({ kind: 'up' })
    if (kind === 'gap') tellAll({ kind: 'gap' })
    if (kind !== 'event') return
    const [run, number] = id.split('-')
    tellAll({ kind: 'event', run, number: Number(number), ...data })
  }, () => {
    tellAll({ kind: 'down' })
    setTimeout(() => source === mine && connect(), AGAIN * (0.5 + Math.random()))  // not all pages at one moment
  })
}

function leave() {
  source?.close()
  source = null
  release()
}

// The lock is held until this tab closes or sleeps, or until another one takes it.
const hold = () => new Promise(done => { release = done; isTaking = false; connect() })

async function follow() {
  for (;;) {
    await navigator.locks.request(NAME, hold).catch(() => {})
    leave()
  }
}

function lead() {
  if (source || isTaking) return
  isTaking = true
  navigator.locks.request(NAME, { steal: true }, hold).catch(leave)
}

function watch() {
  const isLate = Date.now() - heardAt > SILENCE && !document.hidden
  if (source) channel.postMessage({ kind: 'beat' })
  if (source && isLate) connect()  // this tab slept, and its connection may be dead
  if (source || isLate) heardAt = Date.now()
  if (isLate) lead()
}

if (mayLook && navigator.locks) {
  follow()
  setInterval(watch, BEAT)
  document.addEventListener('freeze', leave)
} else if (mayLook) connect()  // without TLS browsers have no locks: each tab has its own connection
