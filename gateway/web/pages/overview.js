// The overview: what needs somebody first; the last 24 hours; networks, conversations, hooks, and events as they happen.
// On the first day the next steps stand in the place of needs.

import { ask, may } from './asking.js'
import { figure, spark, sumOf, SPANS } from './curves.js'
import { columns, command, counted, el, head, lasting, panel, price, quiet, roomOf, seconds } from './dom.js'
import { drawTail } from './events.js'
import { readDay } from './figures.js'
import { called, drawTalk } from './conversations.js'
import { freshAddress } from './chat.js'
import { lightOf } from './hooks.js'
import { drawWaiting, listProposals, mayPropose, proposal } from './proposals.js'
import { drawNeeds, leave as leaveNeeds, need } from './needs.js'
import { markOf, steer } from './networks.js'
import { icon, mark } from './signs.js'
import { actions } from './acting.js'

export const title = 'Overview'
export const leave = leaveNeeds

const LATEST = 6
const PATIENCE = 300  // milliseconds for the hooks, of which there may be a thousand: what needs somebody comes first
let known = null  // the hooks of the last answer

// An answer that comes late is drawn later, once; from then on the last one stands in until the next is there.
async function listHooks() {
  const isFirst = !known
  const asked = ask('hooks.list', { by: 'worst', limit: LATEST }).then(found => { known = found })
  await Promise.race([asked, new Promise(resolve => setTimeout(resolve, PATIENCE))])
  if (isFirst && !known) asked.then(() => document.dispatchEvent(new Event('late')), () => {})
  else asked.catch(() => {})
  return known ?? { hooks: [], count: '' }
}

export async function show(_rest, asked, found) {
  const [status, open, { hooks, count }, { sessions, names = {} }, { platforms }, usage, day, proposals] = await Promise.all([
    asked, found, listHooks(), ask('sessions.list', { limit: LATEST }), ask('platform.list'), ask('usage', { by: 'day', days: 1 }), readDay(), listProposals(),
  ])
  const paused = platforms.filter(one => one.state === 'paused').map(one => drawPaused(one, status.backlog.replies[one.name] ?? 0))
  const needs = drawNeeds(status, open, [...drawWaiting(proposals), ...paused])
  const steps = needs || !isFirstDay(status, sessions) ? [] : drawSteps(status, sessions, platforms)
  const on = hooks.filter(one => one.state !== 'disabled')
  const sum = status.attention.length + open.count + paused.length
  return el('div',
    head(sum ? `${counted(sum, 'thing needs', 'things need')} you` : 'Nothing needs you', {
      facts: [`Up for ${lasting(Date.now() / 1000 - status.since)}`, status.model, networksOf(platforms), owed(status)],
      acts: [el('a.btn', { href: freshAddress() }, icon('chat'), 'New chat')],
    }),
    ...[needs ?? steps].flat(),
    ...(day ? [drawDay(day, usage)] : []),
    el('ul.chips', { 'aria-label': 'Networks' }, ...drawChips(platforms, day),
      ...(mayPropose ? [el('li', el('a.chip.soft', { href: '#networks', 'aria-label': 'Add a network' }, icon('plus'), 'Add'))] : [])),
    columns('c543',
      panel(['Recent conversations', el('a.far', { href: '#conversations' }, 'All')], el('div.list', ...sessions.map(one => drawTalk(one, names, open)))),
      panel(['Hooks today', el('a.far', { href: '#hooks' }, `All ${count}`)], on.length || count === '' ? el('div.list', ...on.map(hook => drawHook(hook, day))) : quiet('No hook is on.')),
      panel(['Live', el('small', 'as it happens'), el('a.far', { href: '#live' }, 'Open')], drawTail(40))),
    ...drawNotices(status.notices))
}

const networksOf = platforms => {
  const up = platforms.filter(one => one.state === 'up').length
  return platforms.length ? `${up} of ${counted(platforms.length, 'network')} up` : ''
}

function owed({ backlog, turns }) {
  const waiting = sumOf(Object.values(backlog.replies))
  return [turns.running ? `${counted(turns.running, 'turn')} running` : '', waiting ? `${counted(waiting, 'answer')} waiting to be sent` : ''].filter(Boolean).join(' · ')
}

const drawPaused = (one, waiting) => need(mark('paused'), `${one.name} is paused`, '',
  [el('p', waiting ? `${counted(waiting, 'answer')} waiting to be sent.` : 'Nothing is read there.')],
  [actions(`paused ${one.name}`, [steer('Resume', 'resume', one.name)])], { 'data-key': `paused ${one.name}` })

// Requests for access stand above.
function drawNotices(notices = []) {
  const shown = notices.filter(text => !(may('pairing.list') && text.endsWith('pairing list')))
  return shown.length ? [panel('Good to know', el('ul.pad', ...shown.map(text => el('li', text))))] : []
}

const DAY = 86400
const isFirstDay = (status, sessions) => sessions.length < LATEST && sessions.every(one => Date.now() / 1000 - one.began < DAY) && Date.now() / 1000 - status.since < DAY

const MODEL = [
  { name: 'provider', label: 'Provider, such as openai or anthropic' }, { name: 'name', label: 'Model' }, { name: 'base_url', label: 'Address, if it is another' }, { name: 'api_key', label: 'API key', isSecret: true },
]

function drawSteps(status, sessions, platforms) {
  const last = sessions[0]
  const isDemo = /demo/.test(status.model)
  const next = [last, !isDemo, platforms.length].findIndex(isDone => !isDone)
  const step = (at, isDone, name, text, line, acts = []) => need(mark(isDone ? 'ok' : at === next ? 'next' : 'off'), name, '', [el('p', text), ...(isDone ? [] : [command(line)])], isDone ? [] : acts)
  return el('section.panel.needs', { 'aria-label': 'Next' },
    step(0, last, 'A first conversation', last ? `“${called(last).slice(0, 60)}”, ${last.platform}.` : 'Write to the agent in the chat here, or in your terminal.', 'chat'),
    step(1, !isDemo, 'Use your own model', isDemo ? 'The demo model answers now. Any OpenAI- or Anthropic-compatible address works; it is tested before it is used.' : `${status.model} answers.`, 'setup model',
      proposal('Choose a model', { title: 'Choose a model', kind: 'model', fields: MODEL })),
    step(2, platforms.length, 'Connect a network', platforms.length ? platforms.map(one => one.name).join(', ') : 'Telegram takes two minutes; you need a bot token.', 'setup telegram',
      proposal('Connect', { title: 'Connect Telegram', kind: 'network', name: 'telegram', fields: [{ name: 'token', label: 'Bot token', isSecret: true }] })))
}

function drawDay(day, usage) {
  const [turns, failed, calls, failures] = ['turns', 'failed', 'calls', 'failures'].map(name => sumOf(day[name]))
  const [half, most] = [day.within(.5), day.within(.95)]
  const yesterday = day.before.map(one => one?.work.turns ?? 0)
  const cost = day.sinceMidnight('cost')
  const budget = usage.budgets.find(one => one.budget === 'all' && one.period === 'day' && one.unit === 'money')
  const [worst, worstFailures] = day.worst()
  const end = day.end
  const tokens = `${(usage.total.tokens ?? 0).toLocaleString()} tokens`
  const spent = price(usage.total.cost)
  const halves = day.spans.map((_, at) => day.within(.5, at))
  const ends = day.spans.map((_, at) => day.within(.95, at))
  return columns('c4',
    figure('turns', 'Turns', { end, bars: day.turns, fails: day.failed, ghost: yesterday, label: `Turns by half hour over 24 hours: ${turns}, ${failed} failed` },
      at => (at == null ? [turns.toLocaleString(), failed ? `${failed} failed` : 'none failed', compare(turns, sumOf(yesterday))] : [`${day.turns[at]}`, `in 30 min; ${yesterday[at]} the day before`])),
    figure('times', 'Time to answer', { end, line: halves, band: ends, label: `Time to answer over 24 hours: median ${seconds(half) || 'none'}, 95 percent within ${seconds(most) || 'none'}` },
      at => { const [one, other] = at == null ? [half, most] : [day.within(.5, at), day.within(.95, at)]; return [seconds(one) || '–', other == null ? '' : `p95 ${seconds(other)}`, 'median and p95'] }),
    figure('cost', 'Cost today', { end, line: cost, limit: budget && [budget.limit, 'daily budget'], label: `Cost since midnight: ${spent}${budget ? ` of ${budget.limit}` : ''}` },
      at => (at == null ? [spent, budget ? `of ${price(budget.limit)}` : usage.total.unpriced ? `${counted(usage.total.unpriced, 'call')} of unknown price` : '', tokens] : [price(cost[at]), 'that day so far'])),
    figure('failures', 'Hook failures', { end, bars: Array(SPANS).fill(0), fails: day.failures, label: `Hook failures by half hour over 24 hours: ${failures} of ${calls} calls` },
      at => (at == null ? [failures.toLocaleString(), worstFailures ? `${worstFailures} in ${worst}` : 'none', `of ${counted(calls, 'call')}`] : [`${day.failures[at]}`, `of ${counted(day.calls[at], 'call')}`])))
}

function compare(now, before) {
  if (!before) return 'in 24 hours'
  const part = Math.round(100 * (now - before) / before)
  return part ? `${Math.abs(part)}% ${part > 0 ? 'more' : 'less'} than yesterday` : 'as many as yesterday'
}

function drawChips(platforms, day) {
  const own = ['terminal', 'web'].filter(name => day?.messages(name)).map(name => ({ name, state: 'up' }))
  return [...platforms, ...own].map(one => {
    const count = day?.messages(one.name) ?? 0
    return el('li', el('a.chip', { href: '#networks' }, mark(markOf(one.state)), one.name === 'web' ? 'page' : one.name,
      el('small', one.state === 'up' ? counted(count, 'message') : one.state)))
  })
}

function drawHook(hook, day) {
  const [calls, fails] = day?.of(hook.name) ?? [null, null]
  const said = hook.state === 'disabled' ? 'off' : hook.failures ? `${hook.failures} of ${counted(hook.calls, 'call')} failed` : counted(hook.calls, 'call')
  return el('a', { href: roomOf('hooks', hook.name) }, mark(lightOf(hook)), el('span.t', el('b', hook.label), el('span', said)),
    ...(calls ? [spark(calls, fails, `${sumOf(calls)} calls in 24 hours, ${sumOf(fails)} failed`)] : []))
}
