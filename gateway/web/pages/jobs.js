// The jobs: each with its moments of the last twelve hours and of the next; and one job with its history and its rules.

import { actions } from './acting.js'
import { act, ask, may } from './asking.js'
import { percent, sumOf, text } from './curves.js'
import { openForm } from './dialog.js'
import { button, column, columns, counted, el, facts, fold, head, lasting, moment, named, number, pad, panel, roomOf, stack, stateOf, table, timeOf } from './dom.js'
import { tellAll } from './live.js'
import { mark, svg } from './signs.js'

export const title = 'Jobs'
export const needs = 'jobs.list'
export const calm = 5000

const HALF_DAY = 43200
const MOST = 48  // moments on one side of a strip
const RUNS = 30
const DENSE = 12
const MARKS = { ran: 'ok', failed: 'bad', missed: 'miss', skipped: 'off', running: 'run' }
export const keyOf = one => `${one.maker}/${one.name}`

// `every 2 hours`, `weekdays at 9:00`; a timetable of another form stands as it was written.
const DAYS = { '* *': 'daily', '* 1-5': 'weekdays', '* 0,6': 'weekends', '* 6,0': 'weekends' }
const UNITS = { s: 'second', m: 'minute', h: 'hour', d: 'day' }
export function whenOf({ when }) {
  const [, count, unit] = /^every (\d+)([smhd])$/.exec(when) ?? []
  if (count) return count === '1' ? `every ${UNITS[unit]}` : `every ${count} ${UNITS[unit]}s`
  const [, minute, hour, day, days] = /^(\d+) (\d+) (\d+|\*) (\* \S+)$/.exec(when) ?? []
  const words = day === '*' ? DAYS[days] : days === '* *' && `monthly on day ${day}`
  if (words) return `${words} at ${hour}:${minute.padStart(2, '0')}`
  return /^(every|@)|^(\S+ ){4}\S+$/.test(when) ? when : 'once'
}

// The kind of mark, and what there is to say beside it.
const markOf = one => (one.state === 'running' ? 'run' : one.state === 'paused' ? 'paused' : one.last?.state === 'failed' ? 'bad' : one.state === 'over' ? 'off' : one.last ? 'ok' : 'wait')
const saidOf = row => (row.state === 'ran' ? 'ran' : row.state === 'running' ? 'runs now' : row.state === 'failed' ? row.reason : [row.count > 1 ? `${row.state} ${row.count} times` : row.state, row.reason].filter(Boolean).join(': '))
const nextOf = one => (one.state === 'paused' ? one.paused || 'paused' : one.next ? moment(one.next, soonOf) : one.state === 'over' ? 'over' : '')
const soonOf = at => [timeOf(at), ...(at - Date.now() < 3_600_000 ? [`in ${lasting((at - Date.now()) / 1000)}`] : [])].join(', ')
const placeOf = one => (one.to ? `to ${one.to}` : one.to === '' ? 'to its history' : '')

export async function show(name) {
  const { jobs } = await ask('jobs.list', { moments: MOST })
  const one = jobs.find(job => [keyOf(job), job.name].includes(name)) ?? (name ? null : jobs.find(job => markOf(job) === 'bad') ?? jobs[0])
  const below = one ? drawOne(one, (await ask('jobs.history', { name: keyOf(one), limit: RUNS })).moments) : []
  if (name) return el('div', head(one?.name ?? 'This job is not there any more', { facts: one ? [whenOf(one), placeOf(one)] : [], acts: one ? [drawActs(one)] : [], back: 'Jobs' }), ...(one ? [panel('', drawTable([one])), ...below] : []))
  const failing = jobs.filter(job => markOf(job) === 'bad').length
  const paused = jobs.filter(job => job.state === 'paused').length
  return el('div',
    head(title, { facts: [counted(jobs.length, 'job'), failing && `${failing} failing`, paused && `${paused} paused`, drawNext(jobs)], acts: may('jobs.add') ? [button('Add', { sign: 'plus', className: 'btn go', onclick: add })] : [] }),
    panel('', drawTable(jobs)), ...below)
}

function drawNext(jobs) {
  const next = Math.min(...jobs.map(one => one.next || Infinity))
  return next === Infinity ? '' : el('span', 'next at ', moment(next), `: ${jobs.filter(one => one.next === next).map(one => one.name).join(', ')}`)
}

function drawTable(jobs) {
  const heads = [column('Job'), column(drawHours(), 'stripe'), column('Last', 'off-phone'), column('Next', 'next'), column('', 'num')]
  return table(heads, jobs.map(one => [
    named(mark(markOf(one)), one.name, whenOf(one), roomOf('jobs', keyOf(one))), drawStrip(one),
    el('div', el('p', ...(one.last ? [timeOf(new Date(one.last.due * 1000)), one.last.state === 'ran' ? '' : `, ${saidOf(one.last)}`] : ['–'])), el('p.sub', placeOf(one))), nextOf(one), drawSteering(one),
  ]), 'No jobs yet: texts that the agent gets at their times.')
}

export const resume = name => ({ label: 'Resume', verb: 'jobs.resume', params: { name }, said: () => 'Resumed.' })
export const runNow = name => ({ label: 'Run now', verb: 'jobs.run', params: { name }, said: () => 'It runs.' })
const isPaused = one => one.state === 'paused'
const steer = one => (isPaused(one)
  ? { ...resume(keyOf(one)), label: `Resume ${one.name}` }
  : { label: `Pause ${one.name}`, verb: 'jobs.pause', params: { name: keyOf(one) }, said: () => 'Paused.' })

const drawSteering = one => actions(`job ${keyOf(one)}`, [
  ...(one.state === 'over' ? [] : [{ ...steer(one), sign: isPaused(one) ? 'play' : 'pause', kind: 'bare' }]), { ...runNow(keyOf(one)), kind: 'bare' }])

function drawActs(one) {
  const gone = async () => { location.hash = '#jobs'; return `The job ${one.name} is removed.` }
  return actions(`remove ${keyOf(one)}`, [{ label: 'Remove', verb: 'jobs.remove', params: { name: keyOf(one) }, sure: `Remove ${one.name} for good?`, said: gone }])
}

// From twelve hours ago to twelve hours from now, on one axis.
const partOf = (at, now) => percent((at - now + HALF_DAY) / (2 * HALF_DAY))

const drawHours = () => svg('svg', { class: 'strip', height: 26, role: 'img', 'aria-label': 'From 12 hours ago to 12 hours from now' }, [-12, -6, 0, 6, 12].map(hour => text(
  percent((hour + 12) / 24), 18, { '-12': 'start', 12: 'end' }[hour] ?? 'middle', hour ? `${hour > 0 ? '+' : '−'}${Math.abs(hour)} h` : `now, ${timeOf(new Date())}`, hour ? 'far' : 'now')))

// Moments that were missed in a row are one row of the history.
const spread = row => (row.state === 'missed' ? Array.from({ length: Math.min(row.count, MOST) }, (_, at) => row.to - (row.count > 1 ? at * (row.to - row.from) / (row.count - 1) : 0)) : [row.due])

function drawStrip(one) {
  const now = Date.now() / 1000
  const past = one.past.flatMap(row => spread(row).map(at => [at, row.state])).filter(([at]) => at > now - HALF_DAY && at <= now)
  const ahead = one.ahead.filter(at => at > now && at < now + HALF_DAY)
  const dot = (kind, at, r) => (kind === 'failed'
    ? svg('svg', { x: partOf(at, now), y: 13, overflow: 'visible' }, svg('path', { class: kind, d: 'M0-6.5L6.5 0 0 6.5-6.5 0z' }))
    : svg('circle', { class: kind, cx: partOf(at, now), cy: 13, r }))
  const far = isPaused(one) ? 'paused' : one.next > now + HALF_DAY ? `in ${lasting(one.next - now)} →` : ''
  const said = `${counted(past.length, 'moment')} in the last 12 hours${past.length ? `, ${countStates(past.map(([, state]) => ({ state }))).map(([, words]) => words).join(', ')}` : ''}; ${ahead.length} in the next`
  return svg('svg', { class: 'strip', height: 26, role: 'img', 'aria-label': said },
    svg('line', { class: isPaused(one) ? 'rail still' : 'rail', x1: 0, x2: '100%', y1: 13, y2: 13 }),
    svg('line', { class: 'now', x1: '50%', x2: '50%', y1: -10, y2: 36 }), far && text('100%', 7, 'end', far, 'far'),
    past.map(([at, state]) => dot(state, at, past.length > DENSE ? 3.5 : 4.5)), ahead.map(at => dot('ahead', at, ahead.length > DENSE ? 2.5 : 4)))
}

// The last runs as bars, the oldest first: one that failed is broken, one that was missed is hollow.
const BEATS = {
  ran: [{ height: 30 }], failed: [{ height: 12 }, { y: 18, height: 12 }], missed: [{ x: 1, y: 1, width: 6, height: 28 }], skipped: [{ y: 20, height: 10 }], running: [{ y: 10, height: 20 }],
}
const countStates = rows => Object.keys(BEATS).map(state => [state, sumOf(rows.filter(row => row.state === state).map(row => row.count ?? 1))]).filter(([, count]) => count).map(([state, count]) => [state, `${count} ${state}`])
const beat = state => svg('svg', { class: `beat ${state}`, viewBox: '0 0 8 30', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, BEATS[state].map(one => svg('rect', { width: 8, rx: 2, ...one })))

function drawOne(one, rows) {
  const counts = countStates(rows)
  const heads = [column('Due'), column('Result'), number('Late', 'off-phone'), column('', 'full')]
  const shown = rows.map(row => [
    moment(row.due), stateOf(MARKS[row.state], saidOf(row)), row.late_by >= 1 ? lasting(row.late_by) : 'on time',
    row.answer ? fold('Answer', el('pre', { tabIndex: 0 }, row.answer)) : '',
  ])
  return [columns('c53',
    panel([`History of ${one.name}`, el('small', `last ${counted(rows.length, 'run')}`)],
      ...(rows.length ? [pad(el('div.beats', { role: 'img', 'aria-label': counts.map(([, words]) => words).join(', ') }, ...rows.map(row => beat(row.state)).reverse()),
        el('ul.key', ...counts.map(([state, words]) => el('li', beat(state), words))))] : []),
      table(heads, shown, 'None has come yet.')),
    panel(one.name, pad(stack(...drawTrouble(one), drawFacts(one), el('p.soft.small', 'It pauses after 5 failures in a row.')))))]
}

function drawTrouble(one) {
  const why = one.state === 'paused' ? one.paused : one.last?.state !== 'failed' ? '' : one.failures > 1 ? `It failed ${one.failures} times in a row: ${one.last.reason}` : `It failed: ${one.last.reason}`
  return why ? [el('p', { className: one.state === 'paused' ? 'soft' : 'bad-text' }, why)] : []
}

const drawFacts = one => facts([
  ['When', [whenOf(one) === 'once' ? `once, ${one.when}` : whenOf(one), one.zone].filter(Boolean).join(', ')], ['What', one.command ? el('code', one.command) : one.text], ['Sends to', one.to ?? null],
  ['Agent', one.agent], ['Model', one.model], ['Calls when well', one.ping], ['If missed', { once: 'run once when back', skip: 'skip' }[one.missed]], ['If still running', { skip: 'skip', queue: 'wait' }[one.overlap]],
  ['Time limit', lasting(one.max_time)], ['Made by', one.maker],
])

const FIELDS = [
  { name: 'name', label: 'Name', isNeeded: true }, { name: 'text', label: 'What the agent is to do', isNeeded: true, isLong: true },
  { name: 'when', label: 'When: 20m, 2030-12-31T09:00, every 2h, or a cron line such as 0 9 * * 1-5', isNeeded: true }, { name: 'to', label: 'Send the answer to, such as telegram or telegram:123; empty: its history alone' },
]

function add() {
  openForm({
    title: 'Add a job', label: 'Add', fields: FIELDS, why: 'It runs with your rights. Times are those of your browser.',
    async send(form) {
      const given = Object.fromEntries([...form].map(([name, value]) => [name, value.trim()]))
      await act('jobs.add', { ...given, name: given.name.replace(/\s+/g, '-'), zone: Intl.DateTimeFormat().resolvedOptions().timeZone })
      tellAll({ kind: 'done' })
    },
  })
}
