// The people who may write or have written, and the programs with a key. Access is changed at the terminal or by a
// code.

import { ask } from './asking.js'
import { ago, column, el, number, pagesFrom, panel, placeFrom, rowsOf, table } from './dom.js'

export const title = 'People'
export const needs = 'people.list'
export const calm = 10000


export async function show(place) {
  const { first } = placeFrom(place)
  const rows = rowsOf(100, 30)  // the person who wrote last is first
  const [{ people, count }, { keys }] = await Promise.all([ask('people.list', { by: 'latest', first, limit: rows }), ask('keys.list')])
  const heads = [column('person'), column('name'), column('role'), number('conversations'), number('last spoke')]
  const shown = people.map(one => [one.person, one.name, one.role || 'none', one.sessions || '', ago(one.last_active)])
  const programs = keys.map(one => [one.name, one.role, one.agent, ago(one.at)])
  return el('div', {},
    panel('People', table(heads, shown, 'Nobody may speak, and nobody has spoken.')),
    pagesFrom('people', { first }, rows, count),
    panel(['Programs', el('small', {}, 'let in at the port by a key')], table([column('key'), column('role'), column('agent'), number('made')], programs, 'No program has a key: hermes-gateway keys new NAME')),
    panel('At the terminal', el('pre', { tabIndex: 0 }, 'hermes-gateway people show|export|forget ID\nhermes-gateway keys new|revoke NAME\nhermes-gateway pairing list|approve|revoke')))
}
