// What needs a person: approvals, other questions, people who ask for access, and faults. Each decision is shown whole, in
// the words of the chat, and made where it stands. One that was settled meanwhile, here or elsewhere, stays in its place
// and says so, until the room is left.

import { actionForm, actions, saidAt } from './acting.js'
import { ask, may } from './asking.js'
import { ago, el, fieldOf, fold, lasting, literal, roomOf, spell } from './dom.js'
import { resume, runNow } from './jobs.js'
import { icon, mark } from './signs.js'

const MOST = 10  // faults before the others are folded
const seen = new Map()  // the questions shown since the room was entered, by id

export const leave = () => seen.clear()

export async function findOpen() {
  if (!may('approvals.list')) return { asked: [], asking: [], count: 0, names: {} }
  const [{ approvals, questions, names = {} }, { asking }] = await Promise.all([ask('approvals.list'), ask('pairing.list')])
  return { asked: [...approvals, ...questions], asking, count: approvals.length + questions.length + asking.length, names }
}

// One thing that needs somebody: a sign, a title with small words, what there is to know, and its buttons.
export const need = (sign, title, small, body, acts, properties = {}) => el('article.need', { ...properties },
  sign, el('div', el('h3', properties['aria-labelledby'] ? { id: properties['aria-labelledby'] } : {}, el('span', { dir: 'auto' }, title), ...(small ? [' ', el('small', `· ${small}`)] : [])), ...body), el('div.acts', ...acts))

// `others` are needs of the room itself.
export function drawNeeds({ attention }, { asked, asking, names }, others = []) {
  const open = new Map(asked.map(one => [one.id, one]))
  asked.forEach(one => seen.set(one.id, one))
  const faults = attention.map(drawFault)
  const more = faults.splice(MOST)
  const rows = [
    ...[...seen.values()].map(one => drawQuestion(one, open.has(one.id), names)),
    ...(may('pairing.approve') ? asking.map(drawAsking) : []), ...others, ...faults,
    ...(more.length ? [fold(`${more.length} more`, ...more)] : []),
  ]
  if (!rows.length) return null
  return el('section.panel.needs', { 'aria-label': 'Needs you', 'data-key': 'needs' }, ...rows)
}

function drawQuestion(one, isOpen, names) {
  const name = `asked-${one.id}`
  const who = names[`${one.platform}:${one.user_id}`]?.name || one.user_name || one.user_id || one.who || 'Somebody'
  const left = isOpen ? `${one.platform ? `${one.platform} · ` : ''}${lasting(Math.max(0, one.until - Date.now() / 1000))} left` : ''
  const title = one.tools ? `${who} wants to run ${[...new Set(one.tools)].join(', ')}` : `${who} is asked`
  const body = one.shown.flatMap(({ words, text }) => [...(words ? [el('p', words)] : []), ...(text ? [literal(text)] : [])])
  const acts = isOpen ? (one.tools ? [drawAnswers(one)] : drawSay(one)) : [drawEnd(one)]
  return need(icon('shield'), title, left, body, acts, { 'data-key': one.id, 'aria-labelledby': name })
}

function drawAnswers({ id, digest, can_last }) {
  const answer = (label, allowed, lasts, told) => ({ label, verb: 'approvals.answer', params: { id, allowed, lasts, digest }, said: () => told })
  const longer = can_last ? [answer('For this session', true, 'session', 'Allowed for this session.'), answer('Always', true, 'always', 'Allowed for good.')] : []
  return actions(id, [answer('Deny', false, 'once', 'Denied.'), ...longer, { ...answer('Allow once', true, 'once', 'Allowed, this once.'), kind: 'go' }])
}

function drawSay({ id, digest }) {
  const said = () => 'Answered.'
  const quick = text => ({ label: text === 'yes' ? 'Yes' : 'No', verb: 'questions.answer', params: { id, text, digest }, said })
  const field = fieldOf('text', 'Your answer')
  return [actions(id, [quick('no'), quick('yes')]), actionForm(`${id} say`, 'Send', 'questions.answer', [field], form => ({ id, text: form.get('text'), digest }), said)]
}

const drawEnd = one => el('p', { role: 'status', tabIndex: -1, 'data-key': `act ${one.id}` },
  saidAt(one.id) ?? saidAt(`${one.id} say`) ?? (one.until < Date.now() / 1000 ? 'Nobody answered in time.' : 'Answered elsewhere.'))

export function drawAsking(one) {
  const who = `${one.platform} ${one.user_id}`
  return need(icon('door'), `${one.user_name || one.user_id} wants access`, '', [el('p', `${who}, `, ago(one.at), '. Names can be faked, so check the id.')], [
    actions(`#${one.number}`, [{
      label: 'Let in as user', verb: 'pairing.approve', params: { code: `#${one.number}` }, said: () => `${one.user_name || one.user_id} can write now.`,
      sure: `Do you know that ${who} is who they say? Everybody chooses their own name.`,
    }]),
  ], { 'data-key': `asking ${one.number}` })
}

// A fault in the words of `status`: its place first; what helps is a line to type.
function drawFault(text) {
  const [told, lines] = spell(text)
  const [place, ...rest] = told.split(': ')
  const [, kind, name] = /^(hook|job) (\S+) /.exec(place) ?? []
  const acts = kind ? [el('a.btn', { href: roomOf(`${kind}s`, name) }, 'See why')] : []
  if (kind === 'job') acts.push(actions(`fault ${name}`, [place.endsWith(' is paused') ? resume(name) : runNow(name)]))
  const sign = kind && / (is tripped|is broken|failed)$/.test(place) ? 'bad' : 'warn'
  const title = place.replace(/^(hook|job) /, '').replace(/ is tripped$/, ' is failing')
  return need(mark(sign), title, kind === 'job' ? 'job' : '', [...(rest.length ? [el('p', rest.join(': '))] : []), ...lines], acts.length > 1 ? [el('div.row', ...acts)] : acts, { 'data-key': `fault ${text}` })
}
