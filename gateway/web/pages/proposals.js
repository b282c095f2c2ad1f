// Changes of the house: asked for here, and agreed to by an owner elsewhere. Nothing on this page can say the yes.

import { actions } from './acting.js'
import { act, ask, may } from './asking.js'
import { openForm } from './dialog.js'
import { button, command, el, facts, lasting, moment, panel, stateOf, table, column } from './dom.js'
import { tellAll } from './live.js'
import { need } from './needs.js'
import { mark } from './signs.js'

const KINDS = { settings: 'Change settings', model: 'Change the model', network: 'Connect', hook: 'Install the hook', person: 'Forget' }
const STATES = {
  open: ['wait', 'waits'], allowed: ['run', 'is being done'], done: ['ok', 'done'], refused: ['off', 'refused'],
  withdrawn: ['off', 'withdrawn'], late: ['off', 'not answered'], failed: ['bad', 'failed'],
}

export const mayPropose = may('proposals.make')
export async function listProposals() {
  if (!may('proposals.list')) return []
  const { proposals, names } = await ask('proposals.list')
  const called = id => names[id]?.name ?? id
  return proposals.map(one => ({ ...one, by: called(one.by), name: called(one.name) }))
}

const placesOf = one => (one.places?.length ? `in ${one.places.join(', ')}` : 'at the terminal')

// `fields` are {name, label, value, isSecret}; `valuesOf` makes the values from what was written in them.
export function propose({ title, kind, name = '', nameOf = () => name, fields = [], why = '', valuesOf = form => Object.fromEntries([...form].filter(([, value]) => value !== '')) }) {
  openForm({
    title, label: 'Propose', fields,
    why: `${why} Nothing changes until an owner confirms, in their direct chat or at the terminal; this page cannot.`.trim(),
    async send(form) {
      const one = await act('proposals.make', { kind, name: nameOf(form), values: valuesOf(form) })
      tellAll({ kind: 'done' })
      return ['Proposed. Nothing has changed yet.',
        el('p', { role: 'status' }, `An owner confirms it ${placesOf(one)} within ${lasting(one.until - Date.now() / 1000)}${one.places?.length ? ', or' : ''} with:`), command('approvals')]
    },
  })
}

export const proposal = (label, spec, properties = {}) => (mayPropose ? [button(label, { ...properties, onclick: () => propose(spec) })] : [])

const titleOf = one => [KINDS[one.kind] ?? one.kind, one.name].filter(Boolean).join(' ')
const shownOf = one => [facts(one.shown.map(({ words, text }) => [words.replace(/:$/, ''), text ? el('code', text) : '–']))]
const withdraw = one => actions(`proposal ${one.id}`, [{ label: 'Withdraw', verb: 'proposals.withdraw', params: { id: one.id }, said: () => 'Withdrawn.' }])

// Those that wait for an owner, among what needs somebody.
export const drawWaiting = proposals => proposals.filter(one => one.state === 'open').map(one =>
  need(mark('wait'), titleOf(one), `waits for an owner ${placesOf(one)} · ${lasting(Math.max(0, one.until - Date.now() / 1000))} left`, shownOf(one), [withdraw(one)], { 'data-key': `proposal ${one.id}` }))

export function drawProposals(proposals) {
  if (!proposals.length) return []
  const rows = proposals.map(one => [titleOf(one), stateOf(...(STATES[one.state] ?? ['off', one.state])), moment(one.at), one.by, { node: one.result ?? '', className: 'full' }])
  return [panel(['Proposed', el('small', 'in the last day')], table([column('What'), column('State'), column('When'), column('By', 'off-phone'), column('Result', 'full')], rows, ''))]
}
