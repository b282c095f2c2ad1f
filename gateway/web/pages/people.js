// The people who may write or have written, and the programs with a key; and one person in a room: who, seen when,
// allowed by what, at what cost. Access is changed at the terminal or by a code.

import { actionForm, actions } from './acting.js'
import { ask, may } from './asking.js'
import { plot, sumOf } from './curves.js'
import { ago, bytes, column, columns, command, counted, el, facts, fieldOf, head, moment, named, number, pad, pagesFrom, panel, placeFrom, price, quiet, roomOf, rowsOf, saveAs, sieve, spentOf, stack, table } from './dom.js'
import { drawTalk } from './conversations.js'
import { drawAsking, findOpen } from './needs.js'
import { proposal } from './proposals.js'
import { avatar, icon } from './signs.js'

export const title = 'People'
export const needs = 'people.list'
export const calm = 10000

const ROLES = ['user', 'operator', 'admin']
const DAYS = 30
const TABS = { '': 'All', owner: 'Owners', admin: 'Admins', user: 'Users' }
// What each role can do beside all that the roles before it can.
const CAN = [
  ['guest', 'Write to the agent'], ['user', 'Use the tools of a user, some after an approval'],
  ['operator', 'See the state of the gateway, without anybody’s words', 'Pause, resume and retry'],
  ['admin', 'Use every command and tool', 'Let people in, and read their conversations here'],
  ['owner', 'Approve what others ask for, and each change of a setting'],
]
const listCan = role => CAN.slice(0, CAN.findIndex(([name]) => name === role) + 1).flatMap(([, ...can]) => can)
const roleOf = role => el('span', { className: `pill ${role === 'owner' ? 'mine' : ''}`.trim() }, role || 'none')

export async function show(place) {
  if (place && !place.startsWith('?')) return showOne(place)
  const { first, text, tab } = placeFrom(place)
  const rows = rowsOf(100, 30)  // the person who wrote last is first
  const [{ people, count }, { keys }, { asking }, used] = await Promise.all([
    ask('people.list', { sort: 'latest', first, limit: rows, search: text, role: tab }), ask('keys.list'), findOpen(), ask('usage', { by: 'person', days: DAYS }),
  ])
  const costs = new Map(used.rows.map(one => [one.name, one]))
  const heads = [column('Person'), column('Role'), number('Conversations', 'off-phone'), number(`Calls, ${DAYS} days`, 'off-phone'), number('Cost', 'off-phone'), number('Last seen')]
  const shown = people.map(one => [
    named(avatar(one.name || one.person), one.name || one.person, one.name ? one.person : '', roomOf('people', one.person)), roleOf(one.role), one.sessions || '',
    costs.get(one.person)?.calls.toLocaleString() ?? '', costs.has(one.person) ? price(costs.get(one.person).cost) : '', ago(one.last_active),
  ])
  const programs = keys.map(one => [one.name, one.role, one.agent, ago(one.at)])
  return el('div',
    head(title, { facts: [counted(count, 'person', 'people'), asking.length ? `${asking.length} waiting for access` : '', counted(keys.length, 'API key')] }),
    ...(asking.length && may('pairing.approve') ? [el('section.panel.needs', { 'aria-label': 'Wait for access' }, ...asking.map(drawAsking))] : []),
    sieve('people', TABS, { tab, text }, 'Name or id'),
    panel('', table(heads, shown, text || tab ? 'No matches.' : 'No authorized people, and no messages.')),
    pagesFrom('people', { first, text, tab }, rows, count),
    columns('c53',
      panel(['Programs', el('small', 'allowed at the port by a key')], table([column('Key'), column('Role'), column('Agent', 'off-phone'), number('Made')], programs, 'No program has a key.'), pad(command('keys new NAME'))),
      panel('Give access', pad(drawCode()), pad(command('pairing invite')))))
}

function drawCode() {
  const code = fieldOf('code', 'The code that the bot sent')
  const role = el('select', { name: 'role', 'aria-label': 'As what', 'data-key': 'role' }, ...ROLES.map(one => el('option', one)))
  return actionForm('code', 'Let in', 'pairing.approve', [code, role], form => ({ code: form.get('code').trim(), role: form.get('role') }), guest => `${guest.user_name || guest.user_id} can write now, as ${guest.role}.`) || quiet('')
}

async function showOne(id) {
  const [{ people }, shown, days, { sessions, names }, open] = await Promise.all([
    ask('people.list', { search: id, limit: 50 }), may('people.show') ? ask('people.show', { person: id }) : null, ask('usage', { by: 'day', days: DAYS, person: id }),
    ask('sessions.list', { person: id, limit: 200 }), findOpen(),
  ])
  const one = people.find(found => found.person === id) ?? { person: id, name: '', role: '', sessions: 0, last_active: 0 }
  const calls = spread(days)
  const budgets = days.budgets.filter(each => each.limit)
  return el('div',
    head(one.name || one.person, { facts: [one.role || 'no access', one.last_active ? el('span', 'last seen ', ago(one.last_active)) : 'has not written'], acts: [drawExport(id), ...proposal('Forget …', { title: `Forget ${one.name || id}`, kind: 'person', name: id, why: 'Their conversations, files and notes are deleted for good; backups keep theirs.' }, { className: 'btn no' })], back: 'People' }),
    columns('c53',
      stack(
        panel(['Calls of the model', el('small', `${days.total.calls.toLocaleString()} in ${DAYS} days`)], pad(plot({ height: 72, bars: calls, label: `${sumOf(calls)} calls in ${DAYS} days` }))),
        panel(['Conversations', el('small', counted(sessions.length, 'conversation'))], sessions.length ? el('div.list', ...sessions.slice(0, 8).map(each => drawTalk(each, names, open))) : quiet('Nothing here.'))),
      stack(
        panel('', pad(el('div.named', avatar(one.name || one.person, 'large'), el('div', el('b', { dir: 'auto' }, one.name || one.person), el('p.soft.small', one.name ? one.person : ''))),
          facts([
            ['Role', roleOf(one.role)], ['Allowed by', shown?.settings.join(', ')], ['Paired', shown?.paired ? moment(shown.paired) : ''], ['Cost', `${price(days.total.cost)} in ${DAYS} days`], ['Tokens', days.total.tokens.toLocaleString()],
            ...budgets.map(each => [`Budget, ${each.period}`, spentOf(each)]),
            ['Remembered', shown ? counted(shown.notes, 'note') : ''], ['Files', shown?.files ? `${shown.files}, ${bytes(shown.bytes)}` : ''],
          ]))),
        ...(one.role ? [panel(`What ${one.name || 'they'} can do`, pad(el('ul.may', ...listCan(one.role).map(words => el('li', el('span.yes', icon('check')), el('span', words))))))] : []),
        panel('At the terminal', pad(command(`people show ${id}`), command(`people export ${id}`), command(`people forget ${id}`))))))
}

function spread({ rows, since }) {
  const calls = Array(DAYS).fill(0)
  for (const one of rows) calls[Math.round((new Date(one.name) - new Date(since)) / 86_400_000)] = one.calls
  return calls
}

function drawExport(person) {
  const said = found => saveAs(`${person}.json`, JSON.stringify(found.texts, null, 1), 'application/json')
  return actions(`export ${person}`, [{ label: 'Export', verb: 'people.export', params: { person }, said }])
}
