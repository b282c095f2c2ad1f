// The log as it is written: by level, hook and words; the newest last.

import { ask, may } from './asking.js'
import { clockOf, el, head, panel, placeIn, timeOf } from './dom.js'

export const title = 'Logs'
export const needs = 'logs.read'

const LEVELS = ['debug', 'info', 'warning', 'error', 'critical']
const MOST = 1000  // lines that are kept
const PAUSE = 1500
let drawn = null

export async function show(rest) {
  if (drawn?.rest === rest && drawn.list.isConnected) return null  // it updates itself
  const { level = '', hook = '', text = '' } = Object.fromEntries(new URLSearchParams(rest.replace(/^\?/, '')))
  const list = el('ol.lines', { tabIndex: 0, 'aria-label': 'Lines of the log, the newest last' })
  const state = drawn = { rest, list, wanted: { level, hook, text }, after: '' }
  await read(state)
  setTimeout(() => { list.scrollTop = list.scrollHeight; follow(state) })
  return el('div', head(title, { facts: ['Lines as they are written, while the page is open'] }), filters(state.wanted), panel('', list))
}

async function follow(state) {
  if (drawn !== state || !state.list.isConnected) return
  if (!document.hidden) await read(state).catch(() => {})  // the frame reports the lost connection
  setTimeout(follow, PAUSE, state)
}

async function read(state) {
  const { lines, next, gap } = await ask('logs.read', { ...state.wanted, lines: 200, after: state.after })
  const { list } = state
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40
  if (gap) list.append(el('li.gap', 'some lines before this were missed'))
  list.append(...lines.map(drawLine))
  while (list.childElementCount > MOST) list.firstChild.remove()
  if (lines.length && isAtEnd) list.scrollTop = list.scrollHeight
  state.after = next
}

function drawLine(line) {
  const time = line.time ? new Date(line.time * 1000) : null
  const about = Object.entries(line.context).map(([name, value]) => `${name}=${value}`).join(' ')
  return el('li', { className: line.level },
    el('time', { title: time ? timeOf(time) : '' }, time ? clockOf(time) : ''), ' ',
    el('b', line.level), ' ', el('span', line.message ?? ''), ' ', el('i', `${line.logger} ${about}`),
    ...(line.exception ? [el('pre', { tabIndex: 0, textContent: line.exception })] : []))
}

function filters({ level, hook, text }) {
  const levels = el('select.field', { 'aria-label': 'From this level on' }, ...LEVELS.map(name => el('option', { value: name, selected: name === (level || 'debug') }, name)))
  const one = el('input.field', { value: hook, placeholder: 'hook', 'aria-label': 'Only of this hook' })
  const words = el('input', { type: 'search', className: 'field', value: text, placeholder: 'text', 'aria-label': 'Only with this text' })
  const choose = event => {
    event.preventDefault()
    location.hash = placeIn('logs', { level: levels.value === 'debug' ? '' : levels.value, hook: one.value.trim(), text: words.value.trim() })
  }
  return el('form.filters', { role: 'search', onsubmit: choose }, levels, one, ...(may('hooks.logs') ? [words] : []), el('button.btn', 'Show'))
}
