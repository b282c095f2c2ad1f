// Actions in one place of the page: a row of buttons, and beside them the outcome of the last press. The outcome stays
// until the next action in that place, or until the room is left; a failure has its reason.

import { act, may } from './asking.js'
import { el, renew, signButton } from './dom.js'
import { tellAll } from './live.js'

const places = new Map()  // by key: the question, success or failure there

export const forgetActions = () => places.clear()
export const saidAt = key => places.get(key)?.text

const drawSaid = ({ busy, failed, text = '' } = {}) => el('span', { role: 'status', className: failed ? 'bad-text' : 'soft', tabIndex: -1, 'data-key': 'said' }, busy ? 'a moment …' : text)

// `choices`: each {label, verb, params} and, if wanted, `said` (makes the text of success from the answer), `sure` (the
// question before an action that cannot be undone), `kind` (a class) and `sign` (seen in place of the label). Actions
// that this login may not do are left out.
export function actions(key, wished) {
  const choices = wished.filter(one => may(one.verb))
  const { sure = null, busy = false } = places.get(key) ?? {}
  const asked = choices.find(one => one.label === sure)
  const button = (label, onclick, kind = '', sign = '') => {
    const properties = { type: 'button', onclick, className: `btn ${kind}`.trim(), 'aria-disabled': String(busy), 'data-key': label }
    return sign ? signButton(sign, label, properties) : el('button', properties, label)
  }
  const buttons = asked
    ? [button('Cancel', () => set(key, choices, {})), button(asked.label, () => press(key, choices, asked), 'no')]
    : choices.map(one => button(one.label, () => (one.sure ? set(key, choices, { sure: one.label, text: one.sure }) : press(key, choices, one)), one.kind, one.sign))
  return noteState(key, el('div.act', { 'data-key': `act ${key}` }, drawSaid(places.get(key)), ...buttons), () => actions(key, wished))
}

// A room is drawn a while after it was made, and an action may have happened meanwhile.
const states = new WeakMap()  // by drawn node: its place at that time, and how to draw it again
function noteState(key, made, anew) {
  states.set(made, { key, place: places.get(key), anew })
  return made
}

export function catchUp(shown) {
  for (const one of shown.querySelectorAll('[data-key^="act "]')) {
    const { key, place, anew } = states.get(one) ?? {}
    if (anew && places.get(key) !== place) one.replaceWith(anew())
  }
}

const find = key => document.querySelector(`[data-key="${CSS.escape(`act ${key}`)}"]`)

// The last outcome in a place that is no longer shown, such as the row of a removed thing.
export const saidElsewhere = () => [...places].filter(([key, { text }]) => text && !find(key)).map(([, { text }]) => text).at(-1) ?? ''

// Moves the focus of a button that a change removed to the outcome, or else to the beginning of the room.
export function keepFocus(change) {
  const had = document.activeElement?.closest('[data-key^="act "]')?.dataset.key
  change()
  if (!had || document.activeElement !== document.body) return
  const place = document.querySelector(`[data-key="${CSS.escape(had)}"]`)
  const shown = place?.querySelector('[role=status]') ?? place ?? document.getElementById('content')
  shown.focus({ preventScroll: true })
}

// Draws the place at once, before the room is drawn.
function set(key, choices, place) {
  places.set(key, place)
  const drawn = find(key)
  if (!drawn) return
  keepFocus(() => renew(drawn, actions(key, choices)))
  if (place.sure) drawn.querySelector('button').focus()
}

async function press(key, choices, choice) {
  if (places.get(key)?.busy) return
  set(key, choices, { busy: true })
  await perform(key, choice.verb, choice.params, choice.said, place => set(key, choices, place))
}

// Runs a verb, also with values of a form; `told` gets the outcome.
export async function perform(key, verb, params, said, told) {
  try {
    const answer = await act(verb, params)
    told({ text: await said?.(answer) ?? 'done' })
    tellAll({ kind: 'done' })
    return true
  } catch (error) {
    told({ failed: true, text: error instanceof TypeError ? 'the gateway cannot be reached: nothing was done' : error.message })
    return false
  }
}

// A form with fields, whose values are sent with the action; they stay in the form until the action succeeds.
export function actionForm(key, label, verb, fields, makeParams, said) {
  if (!may(verb)) return ''
  const { busy = false } = places.get(key) ?? {}
  const form = el('form.act', { 'data-key': `act ${key}` },
    drawSaid(places.get(key)),
    ...fields, el('button.btn', { 'data-key': label, 'aria-disabled': String(busy) }, label))
  form.onsubmit = async event => {
    event.preventDefault()
    const written = event.currentTarget
    if (places.get(key)?.busy) return
    const again = place => { places.set(key, place); if (written.isConnected) renew(written, actionForm(key, label, verb, fields.map(one => one.cloneNode(true)), makeParams, said)) }
    again({ busy: true })
    if (await perform(key, verb, makeParams(new FormData(written)), said, again)) written.reset()
  }
  return noteState(key, form, () => actionForm(key, label, verb, fields, makeParams, said))
}
