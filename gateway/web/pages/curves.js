// Curves over 24 hours, all on one axis: the last 48 half hours. One cursor stands over all of them, moved by the pointer
// or by the arrow keys; the figures show its half hour as long as there is one.

import { el } from './dom.js'
import { svg } from './signs.js'

export const HALF_HOUR = 1800
export const SPANS = 48
const TICKS = [18, 0, 6, 12]  // hours of the reader's clock

export const percent = part => `${(part * 100).toFixed(2)}%`
export const sumOf = list => list.reduce((sum, one) => sum + one, 0)

// What the shown figures say at a half hour, by name; `said(null)` is what they say without a cursor.
const figures = new Map()
let cursor = null

const hourAt = at => new Date(at * 1000).toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' })

function show(index) {
  cursor = index
  for (const drawn of document.querySelectorAll('[data-figure]')) {
    const { said, begin } = figures.get(drawn.dataset.figure) ?? {}
    const line = drawn.querySelector('.cursor')
    if (!said || !line) continue
    line.setAttribute('visibility', index == null ? 'hidden' : 'visible')
    if (index != null) for (const end of ['x1', 'x2']) line.setAttribute(end, percent((index + .5) / SPANS))
    const [big, small, far] = said(index)
    drawn.querySelector('.value').textContent = big
    drawn.querySelector('.small').textContent = small
    drawn.querySelector('.far').textContent = index == null ? far : hourAt(begin + index * HALF_HOUR)
  }
}

const clamp = index => Math.max(0, Math.min(SPANS - 1, index))
const follow = event => {
  const box = event.currentTarget.getBoundingClientRect()
  show(clamp(Math.floor(((event.clientX - box.left) / box.width) * SPANS)))
}
const step = event => {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
  if (way) { event.preventDefault(); show(clamp((cursor ?? SPANS) + way)) }
  if (event.key === 'Escape') show(null)
}
const USED = { tabindex: 0, onpointermove: follow, onpointerleave: () => show(null), onblur: () => show(null), onkeydown: step }

// The parts of a line without a gap, and without a fall where it begins anew; one value alone is a short stroke.
function runsOf(list, beginsAnew) {
  const runs = []
  list.forEach((value, at) => {
    if (value == null) return
    const isNext = at && list[at - 1] != null && !(beginsAnew && value < list[at - 1])
    isNext ? runs.at(-1).push([at, at]) : runs.push([[at, at]])
  })
  return runs.map(run => (run.length > 1 ? run : [[run[0][0] - .4, run[0][1]], [run[0][0] + .4, run[0][1]]]))
}

// The parts of a curve, each a list of values a half hour: `bars` with `fails` in them and `ghost` behind them, or a
// `line` with a `band` above it; `limit` is [value, name]. `end` is the moment of the right edge, in seconds.
export function plot({ height = 72, label, bars, fails, ghost, line, band, limit, end, isUsed }) {
  const all = (bars ?? line).length
  const top = Math.max(...(band ?? line ?? bars).map(value => value ?? 0), ...(fails ?? []), ...(limit ? [limit[0]] : []), 1e-9) * 1.08
  const y = value => height - (value / top) * (height - 4)
  const points = (list, run) => run.map(([x, at]) => `${x} ${y(list[at]).toFixed(1)}`)
  const inner = (...children) => svg('svg', { viewBox: `0 0 ${all - 1} ${height}`, preserveAspectRatio: 'none', width: '100%', height, overflow: 'visible' }, children)
  const area = run => (band ? [...points(band, run), ...points(line, run).reverse()] : [`${run[0][0]} ${height}`, ...points(line, run), `${run.at(-1)[0]} ${height}`])
  const bar = (kind, list) => list.map((value, at) => value > 0 && svg('rect',
    { class: kind, x: percent((at + .16) / all), width: percent(.68 / all), y: y(value), height: Math.max(1.5, height - y(value)), rx: 1 }))
  return svg('svg', { class: 'plot', height: height + (end ? 18 : 0), role: 'img', 'aria-label': label, ...(isUsed && USED) },
    svg('line', { class: 'base', x1: 0, x2: '100%', y1: height, y2: height }),
    ghost && bar('ghost', ghost),
    line && inner(runsOf(line, !band).map(run => [svg('path', { class: 'area', d: `M${area(run).join('L')}Z` }), svg('path', { class: 'stroke', d: `M${points(line, run).join('L')}` })])),
    bars && bar('bar', bars), fails && bar('fail', fails),
    limit && [svg('line', { class: 'limit', x1: 0, x2: '100%', y1: y(limit[0]), y2: y(limit[0]) }), text('100%', y(limit[0]) + 13, 'end', limit[1])],
    svg('line', { class: 'cursor', y1: 0, y2: height, visibility: 'hidden' }),
    end && axis(end, height))
}

export function text(x, y, anchor, words, kind) {
  const made = svg('text', { x, y, 'text-anchor': anchor, class: kind })
  made.textContent = words
  return made
}

// `18:00`, or `6 PM` where the reader's clock has twelve hours.
const has12 = new Intl.DateTimeFormat([], { hour: 'numeric' }).resolvedOptions().hour12
const hourOf = at => at.toLocaleTimeString([], { hour: 'numeric', ...(has12 ? {} : { minute: '2-digit' }) })

function axis(end, height) {
  const day = SPANS * HALF_HOUR
  const now = new Date(end * 1000)
  const marks = TICKS.map(hour => {
    const at = new Date(now)
    at.setHours(hour, 0, 0, 0)
    if (at > now) at.setDate(at.getDate() - 1)
    return [hour, 1 - (end - at / 1000) / day, at]
  }).filter(([, x]) => x > 0.02 && x < 0.82)  // behind that stands `now`
  return [
    ...marks.filter(([hour]) => !hour).map(([, x]) => svg('line', { class: 'midnight', x1: percent(x), x2: percent(x), y1: 0, y2: height })),
    ...marks.map(([hour, x, at]) => text(percent(x), height + 15, x < 0.06 ? 'start' : 'middle', hourOf(at), `t${hour}`)),
    text('100%', height + 15, 'end', 'now'),
  ]
}

// A figure with its curve. `said(index)`: [the number, what stands beside it, what stands far from it].
export function figure(name, title, spec, said) {
  figures.set(name, { said, begin: spec.end - SPANS * HALF_HOUR })
  const [big, small, far] = said(null)
  return el('section.panel.fig', { 'data-key': `figure ${name}`, 'data-figure': name },
    el('h2.title', title, el('small.far', far)),
    el('p.big', el('span.value', big), ' ', el('small.small', small)),
    plot({ ...spec, isUsed: true }))
}

// Calls of a hook an hour, from those of half hours, and how many of them failed, at the height of a line.
export function spark(halves, failedHalves, label) {
  const [calls, fails] = [halves, failedHalves].map(list => list.filter((_, at) => at % 2 === 0).map((one, at) => one + (list[2 * at + 1] ?? 0)))
  const [top, wide] = [Math.max(...calls, 1), 96 / calls.length]
  const bar = (kind, at, height) => svg('rect', { class: kind, x: at * wide, width: Math.max(.6, wide - 1), rx: 1, y: 22 - height, height })
  return svg('svg', { class: 'spark', viewBox: '0 0 96 22', role: 'img', 'aria-label': label }, calls.map((count, at) => (count
    ? [bar('bar', at, Math.max(2, (count / top) * 22)), fails[at] > 0 && bar('fail', at, Math.max(4, Math.min(22, (fails[at] / top) * 22)))]
    : bar('none', at, 1.5))))
}

export const meter = part => svg('svg', { class: 'meter', width: 72, height: 6, role: 'img', 'aria-label': `${Math.round(part * 100)} % used` },
  svg('rect', { class: 'rest', width: 72, height: 6, rx: 3 }), svg('rect', { class: part < 1 ? 'used' : 'over', width: 72 * Math.min(1, part), height: 6, rx: 3 }))
