// Events that could not be delivered to a hook: retried or dropped; one, or all of a hook.

import { actions } from './acting.js'
import { ask } from './asking.js'
import { column, counted, el, fold, head, moment, number, pad, panel, quiet, roomOf, table } from './dom.js'

export const title = 'Not delivered'

export async function show(name) {
  const { letters } = await ask('hooks.dead_letters', name ? { name } : {})
  return el('div',
    head(letters.length ? `${counted(letters.length, 'event was', 'events were')} not delivered` : 'Every event was delivered', { back: 'Hooks' }),
    ...(letters.length ? groupByHook(letters).map(drawLetters) : [panel('', quiet('Nothing here.'))]))
}

function groupByHook(letters) {
  const groups = new Map()
  for (const one of letters) groups.set(one.hook, [...(groups.get(one.hook) ?? []), one])
  return [...groups.values()]
}

// Those of one hook.
export function drawLetters(letters) {
  const name = letters[0].hook
  const heads = [number('No.', 'off-phone'), column('Event'), number('When'), number('Tries', 'off-phone'), column('Why', 'bad-text full'), column('Fields', 'full'), column('', 'full')]
  const rows = letters.map(one => [
    one.number, el('code', one.event), moment(one.at), one.attempts, one.reason ?? '',
    one.fields ? fold('Show', el('pre', { tabIndex: 0 }, JSON.stringify(one.fields, null, 1))) : '',
    actions(`letter ${one.number}`, choices({ name, id: one.number }, '', `event ${one.number}`)),
  ])
  const all = letters.length > 1 ? [pad(actions(`letters ${name}`, choices({ name }, ` all ${letters.length}`, `all ${letters.length} events`)))] : []
  return panel(['Not delivered to ', el('a.link', { href: roomOf('hooks', name) }, name)], ...all, table(heads, rows, 'Nothing here.'))
}

const choices = (params, what, called) => [
  { label: `Retry${what}`, verb: 'hooks.dead_retry', params, said: done => `${done.count} on the way again` },
  { label: `Drop${what}`, verb: 'hooks.dead_prune', params, said: done => `${done.count} dropped`, sure: `Drop ${called} for good?` },
]
