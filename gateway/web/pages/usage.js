// The tokens and costs of models, by person, model, day, hook or conversation. An unknown price is shown as unknown,
// not as zero.

import { ask } from './asking.js'
import { column, counted, el, fact, number, pager, panel, table } from './dom.js'

export const title = 'Usage'
export const needs = 'usage'
export const calm = 10000

const KEYS = ['person', 'model', 'day', 'hook', 'session']
const SPANS = [1, 7, 30, 365]
const MOST = 200  // rows, the most used first
const count = value => value.toLocaleString()
const price = one => (one.cost == null ? 'unknown' : `${one.cost.toFixed(4)}${one.unpriced ? ' and more' : ''}`)
const linkTo = (by, days) => `#usage/${by}/${days}`

const amount = (value, unit) => (unit === 'money' ? value.toFixed(2) : count(Math.round(value)))

export async function show(rest) {
  const [asked, span] = rest.split('/')
  const by = KEYS.includes(asked) ? asked : 'person'
  const days = Number(span) || 30
  const { rows, total, since, until, counted_since: first, budgets } = await ask('usage', { by, days })
  const heads = [column(by), number('calls'), number('in'), number('of it cached'), number('out'), number('cost')]
  const shown = by === 'day' ? rows.reverse() : rows
  const notes = [
    first && first > since && `It is counted since ${first}.`,
    total.unpriced && `${counted(total.unpriced, 'call is', 'calls are')} of models without a known price: input_price and output_price of the model say it in config.yaml.`,
    total.estimated && `${counted(total.estimated, 'call was', 'calls were')} cut off, or nobody said the tokens: those are estimated.`,
    rows.length > MOST && `${counted(rows.length - MOST, 'further row')}: hermes-gateway usage --by ${by}`,
  ].filter(Boolean)
  return el('div', {},
    choose('by', KEYS.map(key => [key, linkTo(key, days), key === by])),
    choose('of the last', SPANS.map(one => [one === 1 ? 'day' : `${one} days`, linkTo(by, one), one === days])),
    el('div', { className: 'cards' },
      fact('calls', count(total.calls)), fact('tokens', count(total.tokens), `${count(total.output_tokens)} out`), fact('cost', price(total))),
    panel(['By ', by, el('small', {}, `${since} to ${until}`)],
      table(heads, shown.slice(0, MOST).map(one => [named(by, one.name), count(one.calls), count(one.input_tokens), one.cached_tokens ? count(one.cached_tokens) : '', count(one.output_tokens), price(one)]), 'No model was called in these days.')),
    ...drawBudgets(budgets),
    ...notes.map(text => el('p', { className: 'soft' }, text)))
}

// The used part of each limit, the nearest to its end first.
function drawBudgets(budgets) {
  if (!budgets.length) return []
  const heads = [column('whose'), column('in'), number('used'), number('of'), number(''), column('')]
  const rows = [...budgets].sort((a, b) => b.used / b.limit - a.used / a.limit).map(one => [
    one.budget, one.window, amount(one.used, one.unit), amount(one.limit, one.unit), one.limit ? `${Math.floor(100 * one.used / one.limit)} %` : '', one.unit === 'money' ? '' : one.unit,
  ])
  return [panel(['Budgets', el('small', {}, 'today and this month')], table(heads, rows.slice(0, MOST), ''))]
}

function choose(name, links) {
  const shown = pager(links)
  shown.prepend(el('span', { className: 'soft' }, name))
  links.forEach(([, , isOpen], at) => { if (isOpen) shown.children[at + 1].setAttribute('aria-current', 'true') })
  return shown
}

function named(by, name) {
  if (!name) return 'none'
  if (by === 'hook') return el('a', { href: `#hooks/${encodeURIComponent(name)}` }, name)
  return by === 'session' ? el('a', { href: `#conversations/${encodeURIComponent(name)}` }, name) : name
}
