// All hooks, failing ones first; and one hook: its state and reason, its last calls, its last error, its log, and its
// actions. The page adds no hook: for a new one it shows the command line to type.

import { actionForm, actions } from './acting.js'
import { ask, may } from './asking.js'
import { ago, bytes, column, counted, dot, el, facts, number, pagesFrom, panel, placeFrom, placeIn, plain, rowsOf, searchFor, seconds, spark, table } from './dom.js'
import { drawLetters } from './letters.js'

export const title = 'Hooks'

const PAUSE = 1500  // milliseconds between two reads of a hook's output
const LONGEST = 60  // characters of a reason, beside other content

function lightOf(hook) {
  if (['broken', 'tripped', 'refused'].includes(hook.state)) return 'bad'
  if (hook.state === 'disabled') return 'off'
  return hook.state !== 'loaded' && hook.state !== 'registered' || hook.failures || hook.behind >= 60 || hook.breaker !== 'closed' ? 'warn' : 'ok'
}

const linkTo = hook => el('span', {}, dot(lightOf(hook)), el('a', { href: `#hooks/${encodeURIComponent(hook.name)}` }, hook.label))

// `isBrief`: beside other content, without the events of each hook.
export function drawHooks(hooks, { isBrief = false, empty = 'There is no hook yet.' } = {}) {
  const heads = [column('hook'), column('state'), ...(isBrief ? [] : [column('listens to', 'events')]), number('calls'), column('last calls', 'brief'), number('p50'), number('p95'), number('failed')]
  return table(heads, hooks.map(hook => [
    linkTo(hook),
    hook.reason ? `${hook.state}: ${isBrief && hook.reason.length > LONGEST ? `${hook.reason.slice(0, LONGEST)}…` : hook.reason}` : { node: hook.state, className: 'brief' },
    ...(isBrief ? [] : [[...hook.intercepts.map(name => `◆ ${name}`), ...hook.events].join('  ')]),
    hook.calls, hook.traces.length ? spark(hook.traces) : '', seconds(hook.p50), seconds(hook.p95), hook.failures || '',
  ]), empty)
}

export async function show(name) {
  if (!name || name.startsWith('?')) return showAll(placeFrom(name))
  const hook = await ask('hooks.info', { name })
  const { lines } = may('hooks.logs') ? await ask('hooks.logs', { name: hook.name }) : { lines: [] }
  const { letters } = hook.dead ? await ask('hooks.dead_letters', { name: hook.name }) : { letters: [] }
  return el('div', {},
    panel(hook.label, el('p', { className: 'soft' }, hook.description ?? ''), drawSwitches(hook), drawFacts(hook)),
    ...drawError(hook.last_error),
    panel('Last calls', drawCalls(hook.traces, hook.given ?? [])),
    ...(may('hooks.logs') ? [drawLog(hook.name, lines)] : []),
    ...(letters.length ? [drawLetters(letters)] : []),
    ...(may('hooks.fire') ? [drawTrial(hook)] : []),
    panel('At the terminal', el('pre', { tabIndex: 0 }, `hermes-gateway hooks logs ${hook.name} -f\nhermes-gateway hooks test ${hook.name}\nhermes-gateway hooks trust ${hook.name}`)))
}

async function showAll({ first, text }) {
  const rows = rowsOf(100, 30)
  const { hooks, count } = await ask('hooks.list', { by: 'worst', first, limit: rows, text })
  const isOff = hook => hook.origin === 'built-in' && hook.state === 'disabled'
  const off = hooks.filter(isOff)
  return el('div', {}, ...(count > rows || text ? [searchFor('Name, description or event', text, words => placeIn('hooks', { text: words }))] : []),
    panel([text ? `Hooks with ${text}` : 'Hooks', el('small', {}, '◆ intercepts: it is waited for, and may change or stop')], drawHooks(hooks.filter(hook => !isOff(hook)), text ? { empty: 'There is none.' } : {}),
      ...(off.length ? [el('details', {}, el('summary', {}, counted(off.length, 'that comes with the gateway is off', 'that come with the gateway are off')), drawHooks(off))] : [])), pagesFrom('hooks', { first, text }, rows, count),
    panel(['A new one', el('small', {}, 'at the terminal: nothing is installed from here')],
      el('pre', { tabIndex: 0 }, 'hermes-gateway hooks new NAME\nhermes-gateway hooks check NAME\nhermes-gateway hooks test NAME')))
}

function drawSwitches(hook) {
  const params = { name: hook.name }
  const said = found => `it is ${found.state}${found.reason ? `: ${found.reason}` : ''}`
  const isOff = hook.state === 'disabled'
  const reset = hook.breaker === 'closed' ? [] : [{ label: 'Close its breaker', verb: 'hooks.reset', params, said }]
  return actions(`hook ${hook.name}`, [
    isOff ? { label: 'Switch on', verb: 'hooks.enable', params, said } : { label: 'Switch off', verb: 'hooks.disable', params, said },
    { label: 'Reload', verb: 'hooks.reload', params, said }, ...reset,
  ])
}

const drawFacts = hook => facts([
  ['state', el('span', {}, dot(lightOf(hook)), hook.state)], ['why', hook.reason],
  ['observes', hook.events.join(', ')], ['intercepts', hook.intercepts.join(', ')],
  ['calls', `${hook.calls}, ${hook.failures} failed, ${hook.skipped} skipped`],
  ['answers', hook.calls ? `half within ${seconds(hook.p50)}, 95 % within ${seconds(hook.p95)}` : ''],
  ['last called', ago(hook.last_fired)], ['waiting', hook.queued || ''], ['owed', hook.owed ? `${hook.owed}, ${seconds(hook.behind)} behind` : ''], ['lost', hook.dropped || ''],
  ['breaker', hook.breaker === 'closed' ? '' : hook.breaker_opens_in ? `${hook.breaker}, tried again in ${seconds(hook.breaker_opens_in)}` : hook.breaker],
  ['dead letters', hook.dead || ''],
  ['where it cannot decide', hook.on_error], ['delivery', hook.delivery], ['schedule', hook.schedule], ['webhook', hook.webhook],
  ['written for', hook.written_for], ['from', hook.origin], ['folder', hook.path], ['version', hook.version],
  ['memory', hook.memory ? bytes(hook.memory) : ''], ['restarts', hook.restarts || ''], ['restricted', hook.restricted],
  ['found', (hook.findings ?? []).join('\n')],
])

const drawError = error => (error?.message
  ? [panel(['Last error', el('small', {}, `${error.event}, ${ago(error.at)}`)], el('p', { className: 'bad-text' }, error.message), ...(error.traceback ? [el('pre', { tabIndex: 0 }, error.traceback)] : []))]
  : [])

// The log updates itself, even if the hook prints without any event.
function drawLog(name, lines) {
  const printed = el('pre', { tabIndex: 0, 'data-own': '' }, linesOf(lines))
  setTimeout(followLog, PAUSE, name, printed)
  const drawn = panel(['Log', el('small', {}, 'what it printed last, as it prints it')], printed)
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

// The latest calls also have their fields.
function drawCalls(traces, given) {
  const heads = [column('when'), column('event'), number('took'), column('outcome'), column('error', 'bad-text'), column(may('hooks.logs') ? 'given' : '')]
  const fieldsOf = trace => given.find(one => one.at === trace.at)?.fields
  const unfold = fields => (fields ? el('details', {}, el('summary', {}, 'show'), el('pre', { tabIndex: 0 }, JSON.stringify(fields, null, 1))) : '')
  return table(heads, [...traces].reverse().map(one => [ago(one.at), one.event, seconds(one.seconds), one.outcome ?? 'ok', one.error ?? '', unfold(fieldsOf(one))]), 'It was not called yet.')
}

// Sends one event to the hook on purpose, with sample fields: the hook is really called.
function drawTrial(hook) {
  const names = [...hook.intercepts, ...hook.events].filter(name => !name.includes('*'))
  const field = el('input', { name: 'event', required: true, 'aria-label': 'Event', placeholder: 'Event, such as agent:end', defaultValue: names[0] ?? '', autocomplete: 'off', 'data-key': 'event' })
  const said = trial => [
    `${trial.event}: ${trial.ok ? 'ok' : 'failed'} in ${seconds(trial.seconds)}`, trial.error, trial.result == null ? '' : `it answered ${JSON.stringify(trial.result)}`,
    ...Object.entries(trial.changed).map(([name, value]) => `it changed ${name} to ${JSON.stringify(value)}`), ...trial.remarks, trial.output,
  ].filter(Boolean).join('\n')
  return panel(['Fire a sample', el('small', {}, 'it is told of an event that did not happen, with sample fields')],
    actionForm(`fire ${hook.name}`, 'Fire', 'hooks.fire', [field], form => ({ name: hook.name, event: form.get('event').trim() }), said),
    actionForm(`replay ${hook.name}`, 'Replay', 'events.replay', [el('span', {}, 'Tell it again of what the journal keeps, of the last'), drawSpan()],
      form => ({ name: hook.name, since: Date.now() / 1000 - Number(form.get('since')) }), done => `${done.count} told again, ${done.failed} failed`))
}

const drawSpan = () => el('select', { name: 'since', 'aria-label': 'Since', 'data-key': 'since' },
  ...[['hour', 3600], ['day', 86400], ['week', 604800]].map(([label, value]) => el('option', { value }, label)))
