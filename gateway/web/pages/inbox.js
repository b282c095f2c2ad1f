// The decisions that wait for a person: approvals, other questions, pairing requests. Each is shown whole, in the words
// of the chat, and answered as there. One that was settled meanwhile, here or elsewhere, stays in its place and says
// so, until the room is left.

import { actionForm, actions, saidAt } from './acting.js'
import { ask, may } from './asking.js'
import { ago, column, el, lasting, number, panel, table } from './dom.js'

export const title = 'Inbox'
export const needs = 'approvals.list'

const seen = new Map()  // the questions shown since the room was entered, by id

export const leave = () => seen.clear()

export async function findOpen() {
  if (!may('approvals.list')) return { asked: [], asking: [], count: 0 }
  const [{ approvals, questions }, { asking }] = await Promise.all([ask('approvals.list'), ask('pairing.list')])
  return { asked: [...approvals, ...questions], asking, count: approvals.length + questions.length + asking.length }
}

export async function show() {
  const { asked, asking } = await findOpen()
  return el('div', {}, panel(['Questions', el('small', {}, 'a yes counts for what is shown, once')], ...drawQuestions(asked, true)), drawAsking(asking))
}

export function drawQuestions(asked, isWhole) {
  const open = new Map(asked.map(one => [one.id, one]))
  if (isWhole) asked.forEach(one => seen.set(one.id, one))
  const shown = isWhole ? [...seen.values()] : asked
  if (!shown.length) return [el('p', { className: 'soft' }, 'Nothing waits for an answer.')]
  return shown.map(one => drawQuestion(one, open.has(one.id)))
}

function drawQuestion(one, isOpen) {
  const name = `asked-${one.id}`
  const who = one.who ?? `${one.user_name || 'Somebody'} (${one.platform} ${one.user_id})`
  const left = isOpen ? `open for ${lasting(Math.max(0, one.until - Date.now() / 1000))} yet` : ''
  return el('article', { className: 'asked', 'data-key': one.id, 'aria-labelledby': name },
    el('h3', { id: name }, one.tools ? `${who} wants ${[...new Set(one.tools)].join(', ')}` : `${who} is asked`, el('small', {}, left)),
    ...one.shown.flatMap(({ words, text }) => [el('p', {}, words), ...(text ? [el('pre', { tabIndex: 0 }, text)] : [])]),
    ...(isOpen ? (one.tools ? [drawAnswers(one)] : drawSay(one)) : [drawEnd(one)]))
}

function drawAnswers({ id, digest, can_last }) {
  const answer = (label, allowed, lasts, told) => ({ label, verb: 'approvals.answer', params: { id, allowed, lasts, digest }, said: () => told })
  const longer = can_last ? [answer('For this session', true, 'session', 'Allowed for this session.'), answer('Always', true, 'always', 'Allowed for good.')] : []
  return actions(id, [{ ...answer('Yes', true, 'once', 'Allowed, this once.'), kind: 'first' }, ...longer, answer('No', false, 'once', 'Refused.')])
}

function drawSay({ id, digest }) {
  const said = () => 'Answered.'
  const quick = text => ({ label: text === 'yes' ? 'Yes' : 'No', verb: 'questions.answer', params: { id, text, digest }, said })
  const field = el('input', { name: 'text', required: true, autocomplete: 'off', 'aria-label': 'Your answer', placeholder: 'Your answer', 'data-key': 'text' })
  return [actions(id, [quick('yes'), quick('no')]), actionForm(`${id} say`, 'Send', 'questions.answer', [field], form => ({ id, text: form.get('text'), digest }), said)]
}

const drawEnd = one => el('p', { role: 'status', className: 'soft', tabIndex: -1, 'data-key': `act ${one.id}` },
  saidAt(one.id) ?? saidAt(`${one.id} say`) ?? (one.until < Date.now() / 1000 ? 'Nobody answered in time.' : 'This is no longer asked: it was answered elsewhere.'))

const ROLES = ['user', 'operator', 'admin']

export function drawAsking(asking) {
  const rows = asking.map(one => [
    one.user_name || one.user_id, one.platform, one.user_id, ago(one.at),
    actions(`#${one.number}`, [{
      label: 'Let in', verb: 'pairing.approve', params: { code: `#${one.number}` }, said: () => 'is let in',
      sure: `Do you know that ${one.platform} ${one.user_id} is who they say? Everybody chooses their own name.`,
    }]),
  ])
  const code = el('input', { name: 'code', required: true, autocomplete: 'off', 'aria-label': 'The code that they were told', placeholder: 'The code that they were told', 'data-key': 'code' })
  const role = el('select', { name: 'role', 'aria-label': 'As what', 'data-key': 'role' }, ...ROLES.map(one => el('option', {}, one)))
  return panel('People who ask to be let in',
    table([column('name'), column('network'), column('id'), number('since'), column('')], rows, 'Nobody asks.'),
    actionForm('code', 'Let in', 'pairing.approve', [code, role], form => ({ code: form.get('code').trim(), role: form.get('role') }), guest => `${guest.user_name || guest.user_id} is let in as ${guest.role}`))
}
