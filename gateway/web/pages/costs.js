// The tokens and costs of models, by person, model, day, hook or conversation. An unknown price is shown as unknown,
// not as zero.

import { ask } from './asking.js'
import { meter } from './curves.js'
import { column, counted, el, head, number, panel, table, tabs } from './dom.js'

export const title = 'Costs'
export const needs = 'usage'
export const calm = 10000

const KEYS = ['person', 'model', 'day', 'hook', 'session']
const NAMES = { person: 'People', model: 'Models', day: 'Days', hook: 'Hooks', session: 'Conversations' }
const SPANS = [1, 7, 30, 365]
const MOST = 200  // rows, the most used first
const count = value => value.toLocaleString()
const price = one => (one.cost == null ? 'unknown' : `${one.cost.toFixed(4)}${one.unpriced ? ' and more' : ''}`)
const linkTo = (by, days) => `#costs/${by}/${days}`

const amount = (value, unit) => (unit === 'money' ? value.toFixed(2) : count(Math.round(value)))

export async function show(rest) {
  const [asked, span] = rest.split('/')
  const by = KEYS.includes(asked) ? asked : 'person'
  const days = Number(span) || 30
  const { rows, total, since, until, counted_since: first, budgets, names = {} } = await ask('usage', { by, days })
  const heads = [column(NAMES[by].replace(/s$/, '').replace('People', 'Person')), number('Calls', 'off-phone'), number('In', 'off-phone'), number('Of it cached', 'off-phone'), number('Out', 'off-phone'), number('Cost')]
  const shown = by === 'day' ? rows.reverse() : rows
  const notes = [
    first && first > since && `It is counted since ${first}.`,
    total.unpriced && `${counted(total.unpriced, 'call is', 'calls are')} of models without a known price: input_price and output_price of the model say it in config.yaml.`,
    total.estimated && `${counted(total.estimated, 'call was', 'calls were')} cut off, or nobody said the tokens: those are estimated.`,
    rows.length > MOST && `${counted(rows.length - MOST, 'further row')}: hermes-gateway usage --by ${by}`,
  ].filter(Boolean)
  return el('div', {},
    head(title, { facts: [`${price(total)} in ${days === 1 ? 'a day' : `${days} days`}`, counted(total.tokens, 'token'), counted(total.calls, 'call')] }),
    tabs(KEYS.map(key => [NAMES[key], linkTo(key, days), key === by]), el('nav', { className: 'set', 'aria-label': 'Of the last' },
      ...SPANS.map(one => el('a', { href: linkTo(by, one), ...(one === days && { 'aria-current': 'true' }) }, one === 1 ? 'Day' : `${one} days`)))),
    panel([`By ${by}`, el('small', {}, `${since} to ${until}`)],
      table(heads, shown.slice(0, MOST).map(one => [named(by, one.name, names), count(one.calls), count(one.input_tokens), one.cached_tokens ? count(one.cached_tokens) : '', count(one.output_tokens), price(one)]), 'No model was called in these days.')),
    ...drawBudgets(budgets, names),
    ...notes.map(text => el('p', { className: 'soft' }, text)))
}

// The used part of each limit, the nearest to its end first.
function drawBudgets(budgets, names) {
  if (!budgets.length) return []
  const heads = [column('Whose'), column('In', 'off-phone'), number('Used'), number('Of', 'off-phone'), column('Part', 'off-phone')]
  const rows = [...budgets].sort((a, b) => b.used / b.limit - a.used / a.limit).map(one => [
    one.budget.replace(/\S+:\S+/, id => names[id]?.name ?? id), one.window, amount(one.used, one.unit), `${amount(one.limit, one.unit)}${one.unit === 'money' ? '' : ` ${one.unit}`}`,
    one.limit ? el('span', { className: 's' }, meter(one.used / one.limit), ` ${Math.floor(100 * one.used / one.limit)} %`) : '',
  ])
  return [panel(['Budgets', el('small', {}, 'today and this month')], table(heads, rows.slice(0, MOST), ''))]
}

function named(by, name, names) {
  if (!name) return 'none'
  const room = { hook: 'hooks', session: 'conversations', person: 'people' }[by]
  const shown = el('b', { dir: 'auto' }, names[name]?.name ?? name)
  return room ? el('a', { href: `#${room}/${encodeURIComponent(name)}`, title: name }, shown) : shown
}
