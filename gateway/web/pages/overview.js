// The overview: open needs, figures, hooks, and present events.

import { ask, may } from './asking.js'
import { bytes, counted, el, fact, panel, rowsOf } from './dom.js'
import { drawTail } from './events.js'
import { drawHooks } from './hooks.js'
import { drawAsking, drawQuestions, findOpen } from './inbox.js'

export const title = 'Overview'

const MOST = 10  // lines of open needs, before they are unfolded

export async function show(_rest, asked) {
  const [status, { hooks, calls, failures, count }, open, usage] = await Promise.all([
    asked, ask('hooks.list', { by: 'worst', limit: rowsOf(30, 8) }), findOpen(), ask('usage', { by: 'day', days: 1 }),
  ])
  const owed = Object.values(status.backlog.replies).reduce((sum, count) => sum + count, 0)
  const cards = el('div', { className: 'cards' },
    fact('turns now', status.turns.running, status.turns.waiting ? counted(status.turns.waiting, 'waits', 'wait') : 'none waits'),
    fact('messages', status.intake === 'open' ? 'taken' : 'not taken', status.backlog.sessions ? `${status.backlog.sessions} to answer` : 'all answered'),
    fact('replies owed', owed),
    fact('hook calls', calls, failures ? `${failures} failed` : 'none failed'),
    fact('journal', bytes(status.journal.size), counted(status.journal.records, 'record') + (status.journal.file_size ? `; files ${bytes(status.journal.file_size)}` : '')),
    fact('memory', bytes(status.memory_kb * 1024)),
    drawCosts(usage.total))
  const running = hooks.filter(hook => hook.state !== 'disabled')
  return el('div', {}, ...drawNeeds(status, open), ...(status.notices?.length ? [panel('Good to know', listTexts(status.notices))] : []), cards,
    el('div', { className: 'two' }, panel(['Hooks', el('small', {}, el('a', { href: '#hooks' }, `all ${count}`))], drawHooks(running, { isBrief: true })), panel('Events', drawTail(40))))
}

// The costs of today; calls without a known price count with their tokens only.
function drawCosts({ cost, tokens, calls, unpriced }) {
  const more = [`${counted(tokens ?? 0, 'token')} in ${counted(calls ?? 0, 'call')}`, ...(unpriced && cost != null ? [`${unpriced} of unknown price`] : [])]
  return fact('costs today', cost == null ? 'unknown' : cost.toFixed(cost && cost < 1 ? 4 : 2), more.join(', '))
}

// Faults that need a person, and open decisions, which can be settled here.
function drawNeeds({ attention }, { asked, asking }) {
  const needs = panel('Needs you', ...(attention.length ? [listTexts(attention)] : []), ...(asked.length ? drawQuestions(asked, false) : []))
  needs.classList.add('attention')
  return [...(attention.length || asked.length ? [needs] : []), ...(asking.length && may('pairing.approve') ? [drawAsking(asking)] : [])]
}

// Even with a hundred broken hooks, the parts below stay in view.
function listTexts(texts) {
  const list = some => el('ul', {}, ...some.map(text => el('li', {}, text)))
  const more = texts.slice(MOST)
  return el('div', {}, list(texts.slice(0, MOST)), ...(more.length ? [el('details', {}, el('summary', {}, `${more.length} more`), list(more))] : []))
}
