// Who did what on the gateway, and what was refused, with time, origin and object. The newest first, page by page.

import { ask } from './asking.js'
import { column, el, head, moment, pager, panel, stateOf, table } from './dom.js'

export const title = 'Who did what'
export const needs = 'activity.list'

const ROWS = 100

export async function show(before) {
  const page = await ask('activity.list', { last: ROWS, before: before || 0 })
  const nameOf = who => page.names?.[who]?.name || who
  const isWell = page.activity.every(one => one.outcome === 'done')
  const rows = page.activity.reverse().map(one => [
    el('span', { dir: 'auto', title: one.who }, nameOf(one.who)), moment(one.at), { node: el('code', one.what), className: 'full' }, { node: one.on, className: 'full whole' }, one.place, ...(isWell ? [] : [one.outcome === 'done' ? '' : stateOf('bad', one.outcome)]),
  ])
  const heads = [column('Who'), column('When'), column('What', 'full'), column('On', 'full whole'), column('From', 'soft'), ...(isWell ? [] : [column('Outcome')])]
  return el('div',
    head(title, { facts: ['Nothing is ever removed'] }), panel('', table(heads, rows, 'Nobody has done anything yet.')),
    pager([before && ['newest', '#deeds'], page.before && ['older', `#deeds/${page.before}`]]))
}
