// The tokens and costs of models, by person, model, day, hook or conversation. An unknown price is shown as unknown,
// not as zero.

import { ask } from './asking.js'
import { meter } from './curves.js'
import { column, counted, dayOf, el, head, named as rowName, number, panel, price, roomOf, spentOf, table, tabs } from './dom.js'

export const title = 'Costs'
export const needs = 'usage'
export const calm = 10000

const KEYS = ['person', 'model', 'day', 'hook', 'session']
const NAMES = { person: 'People', model: 'Models', day: 'Days', hook: 'Hooks', session: 'Conversations' }
const PERIODS = { day: 'today', month: 'this month' }
const SPANS = [1, 7, 30, 365]
const MOST = 200  // rows, the most used first
const count = value => value.toLocaleString()
const priceOf = one => `${price(one.cost)}${one.cost != null && one.unpriced ? ' and more' : ''}`
const linkTo = (by, days) => `#costs/${by}/${days}`

export async function show(rest) {
  const [asked, span] = rest.split('/')
  const by = KEYS.includes(asked) ? asked : 'person'
  const days = Number(span) || 30
  const { rows, total, since, until, counted_since: first, budgets, names = {} } = await ask('usage', { by, days })
  const heads = [column(NAMES[by].replace(/s$/, '').replace('People', 'Person')), number('Calls', 'off-phone'), number('Tokens in', 'off-phone'), number('Cached', 'off-phone'), number('Tokens out', 'off-phone'), number('Cost')]
  const shown = by === 'day' ? rows.reverse() : rows
  const notes = [
    first && first > since && `Counted since ${dayOf(first)}.`,
    total.unpriced && `${counted(total.unpriced, 'call is', 'calls are')} of models without a known price: input_price and output_price of the model say it in config.yaml.`,
    total.estimated && `${counted(total.estimated, 'call was', 'calls were')} cut off, or came without a number of tokens: those are estimated.`,
    rows.length > MOST && `${counted(rows.length - MOST, 'further row')}: hermes-gateway usage --by ${by}`,
  ].filter(Boolean)
  return el('div',
    head(title, { facts: [`${priceOf(total)} in ${days === 1 ? 'a day' : `${days} days`}`, counted(total.tokens, 'token'), counted(total.calls, 'call')] }),
    tabs(KEYS.map(key => [NAMES[key], linkTo(key, days), key === by]), el('nav.set.far', { 'aria-label': 'Of the last' },
      ...SPANS.map(one => el('a', { href: linkTo(by, one), ...(one === days && { 'aria-current': 'true' }) }, one === 1 ? 'Day' : `${one} days`)))),
    panel([`By ${by}`, el('small', `${dayOf(since)} to ${dayOf(until)}`)],
      table(heads, shown.slice(0, MOST).map(one => [named(by, one.name, names), count(one.calls), count(one.input_tokens), one.cached_tokens ? count(one.cached_tokens) : '', count(one.output_tokens), priceOf(one)]), 'No model was called in these days.')),
    ...drawBudgets(budgets, names),
    ...notes.map(text => el('p.soft', text)))
}

// The used part of each limit, the nearest to its end first.
function drawBudgets(budgets, names) {
  if (!budgets.length) return []
  const heads = [column('Whose'), number('Used'), column('Part', 'off-phone')]
  const rows = [...budgets].sort((a, b) => b.used / b.limit - a.used / a.limit).map(one => [
    rowName('', one.budget === 'all' ? 'everybody' : one.budget.replace('each_person ', 'each person: ').replace(/\S+:\S+$/, id => names[id]?.name ?? id), PERIODS[one.period] ?? one.window), spentOf(one),
    one.limit ? el('span.s', meter(one.used / one.limit), ` ${Math.floor(100 * one.used / one.limit)} %`) : '',
  ])
  return [panel(['Budgets', el('small', 'today and this month')], table(heads, rows.slice(0, MOST), ''))]
}

function named(by, name, names) {
  if (!name) return 'none'
  if (by === 'day') return dayOf(name)
  const room = { hook: 'hooks', session: 'conversations', person: 'people' }[by]
  const shown = el('b', { dir: 'auto' }, names[name]?.name ?? name)
  return room ? el('a', { href: roomOf(room, name), title: name }, shown) : shown
}
