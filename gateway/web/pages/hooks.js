// All hooks, failing ones first; and one hook in its room: what is wrong, its calls over time, what it can do, its last
// calls, its output, and its actions. The page adds no hook: it proposes one, or shows the line to type.

import { actionForm, actions } from './acting.js'
import { ask, may } from './asking.js'
import { plot, spark, sumOf } from './curves.js'
import { ago, bytes, column, columns, command, counted, el, facts, fieldOf, fold, head, lasting, moment, named, number, pad, pagesFrom, panel, placeFrom, plain, roomOf, rowsOf, seconds, sieve, spell, stack, stateOf, table } from './dom.js'
import { readDay } from './figures.js'
import { proposal } from './proposals.js'
import { icon, mark } from './signs.js'
import { drawLetters } from './undelivered.js'

export const title = 'Hooks'

const PAUSE = 1500  // milliseconds between two reads of a hook's output
const LONGEST = 80  // characters of a reason, beside other content

export function lightOf(hook) {
  if (['broken', 'tripped', 'refused'].includes(hook.state)) return 'bad'
  if (hook.state === 'disabled') return 'off'
  return (hook.state !== 'loaded' && hook.state !== 'registered') || hook.failures || hook.behind >= 60 || hook.breaker !== 'closed' ? 'warn' : 'ok'
}

// What a hook can do that intercepts an event: in words, and in short.
const GUARDS = {
  'tool:before': ['Check every tool call, change and block it', 'block tools'], 'message:received': ['Read every message, change and block it', 'block messages'],
  'message:sending': ['Read every answer, change and hold it back', 'change answers'], 'llm:before': ['Change what the model reads', 'change what the model reads'],
  'llm:after': ['Change what the model says', 'change what the model says'], 'agent:start': ['Change and stop a turn before it begins', 'change or stop turns'],
}
// Its rights: [what it can do, where that is said].
const listAll = hook => [
  ...hook.intercepts.map(name => [GUARDS[name]?.[0] ?? `Change or stop ${name}`, name]),
  ...(hook.events.length ? [['Watch events', hook.events.join(', ')]] : []),
  ...(hook.schedule ? [['Run on a schedule', hook.schedule]] : []),
  ...(hook.webhook ? [['Receive webhooks', hook.webhook.url ?? '']] : []),
]
const listReach = hook => (hook.restricted ? [
  ...(hook.net && hook.net !== 'none' ? [['Reach the network', hook.net]] : []),
  ...(hook.reads?.length ? [['Read these files', hook.reads.join(', ')]] : []), ...(hook.writes?.length ? [['Write these files', hook.writes.join(', ')]] : []),
] : [['Reach everything that the gateway’s user can', 'not restricted']])
const listCannot = hook => (hook.restricted ? [...(hook.net && hook.net !== 'none' ? [] : ['Reach the network']), ...(hook.writes?.length ? [] : ['Write files of yours']), 'Read other files of yours'] : [])

const pillsOf = hook => [
  ...hook.intercepts.map(name => GUARDS[name]?.[1] ?? `change ${name}`),
  ...(hook.schedule ? ['run on a schedule'] : []), ...(hook.webhook ? ['receive webhooks'] : []),
]

const TABS = { '': () => true, failing: hook => hook.failures || ['bad', 'warn'].includes(lightOf(hook)), guards: hook => hook.intercepts.length, off: hook => hook.state === 'disabled' }
const NAMES = { '': 'All', failing: 'Failing', guards: 'Guards', off: 'Off' }

export async function show(name) {
  if (!name || name.startsWith('?')) return showAll(placeFrom(name))
  const [hook, day] = await Promise.all([ask('hooks.info', { name }), readDay()])
  const [{ lines }, { letters }] = await Promise.all([
    may('hooks.logs') ? ask('hooks.logs', { name: hook.name }) : { lines: [] }, hook.dead ? ask('hooks.dead_letters', { name: hook.name }) : { letters: [] }])
  return el('div',
    head(hook.label, { facts: [hook.description, hook.version && `version ${hook.version}`, hook.origin, hook.loaded_at ? el('span', 'loaded ', moment(hook.loaded_at)) : ''], acts: [drawReload(hook)], back: 'Hooks' }),
    drawMode(hook), ...drawTrouble(hook),
    columns('c53',
      stack(
        drawCurve(hook, day), ...drawError(hook.last_error),
        panel('Last calls', drawCalls(hook.traces, hook.given ?? [])),
        ...(may('hooks.logs') ? [drawLog(hook.name, lines)] : []),
        ...(letters.length ? [drawLetters(letters)] : [])),
      stack(
        panel('What it can do', pad(drawMay(hook))),
        ...(may('hooks.fire') ? [drawTrial(hook)] : []),
        panel('About it', pad(drawFacts(hook))),
        ...(may('hooks.logs') ? [panel('At the terminal', pad(...['logs', 'test', 'trust'].map(verb => command(`hooks ${verb} ${hook.name}${verb === 'logs' ? ' -f' : ''}`))))] : []))))
}

async function showAll({ first, text, tab }) {
  const rows = rowsOf(100, 30)
  const [{ hooks, count }, day] = await Promise.all([ask('hooks.list', { by: 'worst', first: tab ? 0 : first, limit: tab ? -1 : rows, text }), readDay()])
  const kept = hooks.filter(TABS[tab] ?? TABS[''])
  const isOff = hook => hook.origin === 'built-in' && hook.state === 'disabled'
  const [on, off] = tab === 'off' ? [kept, []] : [kept.filter(hook => !isOff(hook)), kept.filter(isOff)]
  const shown = tab ? on.slice(first, first + rows) : on
  const dead = sumOf(hooks.map(hook => hook.dead ?? 0))
  const failing = hooks.filter(TABS.failing).length
  const counts = hooks.length === count ? Object.fromEntries(Object.entries(TABS).map(([one, isOf]) => [one, hooks.filter(isOf).length])) : {}
  const empty = text ? 'No matches.' : tab ? 'No hooks here.' : 'There is no hook yet.'
  return el('div',
    head(text ? `Hooks with ${text}` : title, { facts: [counted(count, 'hook'), failing ? `${failing} failing` : 'none failing', ...(dead ? [el('a.link', { href: '#undelivered' }, `${counted(dead, 'event')} not delivered`)] : [])], acts: proposal('Add', ADDED, { sign: 'plus', className: 'btn go' }) }),
    sieve('hooks', NAMES, { tab, text }, 'Name, description or event', counts),
    panel('', drawHooks(shown, day, empty), ...(off.length ? [fold(counted(off.length, 'built-in hook is off', 'built-in hooks are off'), drawHooks(off, day, ''))] : [])),
    pagesFrom('hooks', { first, text, tab }, rows, tab ? on.length : count),
    ...(may('hooks.logs') ? [panel(['A new one', el('small', 'at the terminal')], pad(command('hooks search WORDS'), command('hooks new NAME')))] : []))
}

const ADDED = {
  title: 'Add a hook', kind: 'hook', why: 'You see what it can do before an owner agrees.', fields: [{ name: 'name', label: 'Its name in an index', isNeeded: true }],
  nameOf: form => form.get('name').trim(), valuesOf: () => ({}),
}

function drawHooks(hooks, day, empty) {
  const heads = [column('Hook'), column('Can', 'off-phone'), number('Last 24 h'), number('Calls', 'off-phone'), number('Failed', 'off-phone'), number('p95', 'off-phone'), column('From', 'off-phone broad')]
  return table(heads, hooks.map(hook => {
    const isOwn = ['loaded', 'registered'].includes(hook.state)
    const why = isOwn ? '' : hook.reason ? spell(hook.state === 'tripped' ? hook.reason : `${hook.state}: ${hook.reason}`)[0] : hook.state
    const [calls, fails] = day?.of(hook.name) ?? [[], []]
    return [
      named(mark(lightOf(hook)), hook.label, why.length > LONGEST ? `${why.slice(0, LONGEST)}…` : why || hook.description || '', roomOf('hooks', hook.name)),
      el('span.row', ...(pillsOf(hook).length ? pillsOf(hook) : ['watch only']).map(words => el('span.pill', words))),
      calls.length ? spark(calls, fails, `${sumOf(calls)} calls in 24 hours, ${sumOf(fails)} failed`) : '',
      hook.calls ? hook.calls.toLocaleString() : '', { node: hook.failures ? el('span.bad-text', hook.failures.toLocaleString()) : '', className: 'num off-phone' }, seconds(hook.p95),
      { node: [hook.origin, hook.version].filter(Boolean).join(' · '), className: 'soft off-phone broad' },
    ]
  }), empty)
}

function drawReload(hook) {
  const params = { name: hook.name }
  return actions(`reload ${hook.name}`, [{ label: 'Reload', verb: 'hooks.reload', params, said: saidState }])
}

const saidState = found => `It is ${found.state === 'disabled' ? 'off' : found.state}${found.reason ? `: ${found.reason}` : ''}.`

function drawMode(hook) {
  const isOff = hook.state === 'disabled'
  const params = { name: hook.name }
  const fails = { deny: 'If it fails, what it guards is blocked.', skip: hook.intercepts.length ? 'If it fails, what it guards goes through.' : '' }[hook.on_error] ?? ''
  const enforced = isOff ? 'Not called at all.' : hook.intercepts.length ? `Its decisions are enforced. ${fails}` : 'It watches, and decides nothing.'
  const reset = hook.breaker === 'closed' ? [] : [{ label: 'Close its breaker', verb: 'hooks.reset', params, said: saidState }]
  return el('div.mode', stateOf(isOff ? 'off' : 'ok', isOff ? 'Off' : 'On'), el('span', enforced),
    actions(`hook ${hook.name}`, [{ label: isOff ? 'Switch on' : 'Switch off', verb: isOff ? 'hooks.enable' : 'hooks.disable', params, said: saidState }, ...reset]))
}

function drawTrouble(hook) {
  const kind = lightOf(hook)
  if (!['bad', 'warn'].includes(kind) || !(hook.reason || hook.failures)) return []
  const since = hook.failures ? `${hook.failures} of ${counted(hook.calls, 'call')} failed.` : ''
  const [why, lines] = spell(hook.reason ? (hook.state === 'tripped' ? `It ${hook.reason}` : `It is ${hook.state}: ${hook.reason}`) : '')
  return [el('section', { className: `banner ${kind === 'warn' ? 'warn' : ''}`.trim() }, mark(kind),
    el('div', el('p', el('b', why || since)), ...(why && since ? [el('p', since)] : []), ...lines))]
}

function drawCurve(hook, day) {
  const times = hook.calls ? `${counted(hook.calls, 'call')} since it was loaded, ${hook.failures} failed; median ${seconds(hook.p50)}, p95 ${seconds(hook.p95)}` : 'It was not called yet.'
  const [calls, fails] = day?.of(hook.name) ?? [null, null]
  return panel(['Calls', el('small', times)], calls
    ? pad(plot({ height: 96, end: day.end, bars: calls, fails, label: `${sumOf(calls)} calls over 24 hours, ${sumOf(fails)} failed` }))
    : el('p.pad.soft', hook.calls ? 'Not among the ten hooks called most in 24 hours.' : 'Nothing here.'))
}

function drawMay(hook) {
  const row = (sign, kind, words, small) => el('li', el('span', { className: kind }, icon(sign)), el('span', words, ...(small ? [' ', el('span.soft.small', small)] : [])))
  return el('ul.may',
    ...[...listAll(hook), ...listReach(hook)].map(([words, small]) => row('check', 'yes', words, small)),
    ...listCannot(hook).map(words => row('cross', 'not', el('span.soft', el('span.unseen', 'It can’t: '), words))),
    ...(hook.unheld ?? []).map(words => row('shield', 'bad-text', `This machine does not hold it: ${words}`)))
}

const drawFacts = hook => facts([
  ['State', hook.state], ['Skipped', hook.skipped || ''], ['Last called', ago(hook.last_fired)],
  ['Waiting', hook.queued || ''], ['To deliver', hook.owed ? `${counted(hook.owed, 'event')}, ${lasting(hook.behind)} behind` : ''], ['Lost', hook.dropped || ''],
  ['Breaker', hook.breaker === 'closed' ? '' : hook.breaker_opens_in ? `${hook.breaker}, tried again in ${seconds(hook.breaker_opens_in)}` : hook.breaker],
  ['Not delivered', hook.dead || ''], ['If it fails', hook.on_error], ['Delivery', hook.delivery],
  ['Written for', hook.written_for], ['Folder', hook.path], ['Memory', hook.memory ? bytes(hook.memory) : ''], ['Restarts', hook.restarts || ''],
  ['Restricted', hook.restricted], ['Found', (hook.findings ?? []).join('\n')],
])

const drawError = error => (error?.message
  ? [panel(['Last error', el('small', error.event, ', ', ago(error.at))], pad(el('p.bad-text', error.message), ...(error.traceback ? [fold('Traceback', el('pre', { tabIndex: 0 }, error.traceback))] : [])))]
  : [])

// The log updates itself, even if the hook prints without any event.
function drawLog(name, lines) {
  const printed = el('pre', { tabIndex: 0, 'data-own': '' }, linesOf(lines))
  setTimeout(followLog, PAUSE, name, printed)
  const drawn = panel(['Log', el('small', 'what it printed last, as it prints it')], pad(printed))
  drawn.dataset.key = `log ${name}`
  return drawn
}

async function followLog(name, printed) {
  if (!printed.isConnected) return
  if (!document.hidden) await ask('hooks.logs', { name }).then(({ lines }) => showLines(printed, lines)).catch(() => {})  // the frame reports the lost connection
  setTimeout(followLog, PAUSE, name, printed)
}

function showLines(printed, lines) {
  const text = plain(linesOf(lines))
  if (printed.textContent === text) return
  const isAtEnd = printed.scrollHeight - printed.scrollTop - printed.clientHeight < 40
  printed.textContent = text
  if (isAtEnd) printed.scrollTop = printed.scrollHeight
}

const linesOf = lines => lines.join('\n') || 'It has printed nothing yet.'

const OUTCOMES = { ok: ['ok', 'nothing to add'], changed: ['ok', 'changed'], deny: ['wait', 'blocked'], end: ['wait', 'ended the turn'], ask: ['wait', 'asked'], retry: ['wait', 'had it done again'] }

// The latest calls also have their fields.
function drawCalls(traces, given) {
  const heads = [column('When'), column('Event'), number('Took'), column('Outcome'), column(may('hooks.logs') ? 'Given' : '', 'full')]
  const fieldsOf = trace => given.find(one => one.at === trace.at)?.fields
  const unfold = fields => (fields ? fold('Show', el('pre', { tabIndex: 0 }, JSON.stringify(fields, null, 1))) : '')
  const outcome = one => (one.error ? stateOf('bad', 'failed') : stateOf(...(OUTCOMES[one.outcome ?? 'ok'] ?? ['warn', one.outcome])))
  return table(heads, [...traces].reverse().map(one => [
    moment(one.at), el('code', one.event), seconds(one.seconds), el('div', outcome(one), ...(one.error ? [el('p.bad-text.small', one.error)] : [])), unfold(fieldsOf(one)),
  ]), 'It was not called yet.')
}

// Sends one event to the hook on purpose, with sample fields: the hook is really called.
function drawTrial(hook) {
  const names = [...hook.intercepts, ...hook.events].filter(name => !name.includes('*'))
  const field = fieldOf('event', 'Event, such as agent:end', { defaultValue: names[0] ?? '' })
  const said = trial => [
    `${trial.event}: ${trial.ok ? 'ok' : 'failed'} in ${seconds(trial.seconds)}`, trial.error, trial.result == null ? '' : `it answered ${JSON.stringify(trial.result)}`,
    ...Object.entries(trial.changed).map(([name, value]) => `it changed ${name} to ${JSON.stringify(value)}`), ...trial.remarks, trial.output,
  ].filter(Boolean).join('\n')
  return panel(['Try it', el('small', 'it is really called, with sample fields')], pad(
    actionForm(`fire ${hook.name}`, 'Fire', 'hooks.fire', [field], form => ({ name: hook.name, event: form.get('event').trim() }), said),
    actionForm(`replay ${hook.name}`, 'Replay', 'events.replay', [el('span', 'Events of the last'), drawSpan()],
      form => ({ name: hook.name, since: Date.now() / 1000 - Number(form.get('since')) }), done => `${done.count} sent again, ${done.failed} failed`)))
}

const drawSpan = () => el('select', { name: 'since', 'aria-label': 'Since', 'data-key': 'since' },
  ...[['hour', 3600], ['day', 86400], ['week', 604800]].map(([label, value]) => el('option', { value }, label)))
