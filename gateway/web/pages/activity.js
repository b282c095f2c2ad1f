// The actions of people on the gateway, and the refused ones, with time, origin and object. The newest first, page by
// page.

import { ask } from './asking.js'
import { column, el, moment, pager, panel, table } from './dom.js'

export const title = 'Activity'
export const needs = 'activity.list'

const ROWS = 100

export async function show(before) {
  const page = await ask('activity.list', { last: ROWS, before: before || 0 })
  const rows = page.activity.reverse().map(one => [
    moment(one.at), one.who, one.place, one.what, one.on, one.outcome === 'done' ? '' : one.outcome,
  ])
  const heads = [column('when'), column('who'), column('from'), column('what'), column('on'), column('', 'bad-text')]
  return el('div', {},
    panel(['Activity', el('small', {}, 'nothing is ever removed')], table(heads, rows, 'Nobody has done anything yet.')),
    pager([before && ['newest', '#activity'], page.before && ['older', `#activity/${page.before}`]]))
}
