// Events that a hook could not receive: retried or deleted; one, or all of a hook.

import { actions } from './acting.js'
import { ask } from './asking.js'
import { ago, column, el, number, panel, table } from './dom.js'

export const title = 'Dead letters'

export async function show(name) {
  const { letters } = await ask('hooks.dead_letters', name ? { name } : {})
  return letters.length ? el('div', {}, ...groupByHook(letters).map(drawLetters)) : panel('Dead letters', el('p', { className: 'soft' }, 'There is none.'))
}

function groupByHook(letters) {
  const groups = new Map()
  for (const one of letters) groups.set(one.hook, [...(groups.get(one.hook) ?? []), one])
  return [...groups.values()]
}

// The dead letters of one hook.
export function drawLetters(letters) {
  const name = letters[0].hook
  const heads = [number('letter'), column('event'), number('when'), number('tries'), column('why', 'bad-text'), column('fields'), column('')]
  const rows = letters.map(one => [
    one.number, one.event, ago(one.at), one.attempts, one.reason ?? '',
    one.fields ? el('details', {}, el('summary', {}, 'show'), el('pre', { tabIndex: 0 }, JSON.stringify(one.fields, null, 1))) : '',
    actions(`letter ${one.number}`, choices({ name, id: one.number }, 'it', `letter ${one.number}`)),
  ])
  return panel(['Dead letters of ', el('a', { href: `#hooks/${encodeURIComponent(name)}` }, name)],
    actions(`letters ${name}`, letters.length > 1 ? choices({ name }, `all ${letters.length}`, `all ${letters.length} letters`) : []),
    table(heads, rows, 'There is none.'))
}

const choices = (params, what, named) => [
  { label: `Try ${what} again`, verb: 'hooks.dead_retry', params, said: done => `${done.count} on the way again` },
  { label: `Throw ${what} away`, verb: 'hooks.dead_prune', params, said: done => `${done.count} thrown away`, sure: `Throw ${named} away, for good?` },
]
