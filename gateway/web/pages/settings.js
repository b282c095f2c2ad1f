// The settings in force with their origin, the faults of the files, and the changes there since they were read.

import { actions } from './acting.js'
import { ask } from './asking.js'
import { column, command, counted, el, head, pad, panel, renew, stateOf, table } from './dom.js'
import { drawProposals, listProposals, mayPropose, proposal } from './proposals.js'
import { mark } from './signs.js'

export const title = 'Settings'
export const needs = 'config.show'
export const calm = 15000  // milliseconds between two refreshes, each of which reads the files

let isWhole = false

export async function show() {
  const [{ file, settings, differences, findings }, proposals] = await Promise.all([ask('config.show'), listProposals()])
  const wrong = findings.map(one => [stateOf(one.severity === 'error' ? 'bad' : 'warn', one.severity), [one.source, one.line, one.column].filter(Boolean).join(':'), { node: `${one.what}; ${one.remedy}`, className: 'full' }])
  const own = settings.filter(one => one.origin !== 'default')
  const changed = new Set(differences)
  const draw = () => table([column('Setting'), column('Value', 'value full'), column('Set by', 'soft full'), ...(mayPropose ? [column('', 'num')] : [])],
    (isWhole ? settings : own).map(one => [el('code', one.name), changed.has(one.name) ? el('span', one.value, ' ', mark('warn', 'changed on disk')) : one.value, shortly(one.origin), ...drawChange(one)]), 'Nothing is set; the defaults hold.')
  const choose = event => { isWhole = event.currentTarget.checked; renew(document.getElementById('in-force').firstElementChild, draw()) }
  const box = el('input', { type: 'checkbox', defaultChecked: isWhole, onchange: choose })
  return el('div',
    head(title, { facts: [el('code', file), `${own.length} set, the rest are defaults`, findings.length ? counted(findings.length, 'problem') : 'no problems found'], acts: differences.length ? [drawRestart()] : [drawReload('reload'), drawRestart()] }),
    ...(differences.length ? [drawChanged(differences)] : []),
    ...(findings.length ? [panel(['Found', el('small', 'as hermes-gateway config check says it')], table([column('Kind'), column('Where', 'soft'), column('What', 'full')], wrong, ''))] : []),
    ...drawProposals(proposals),
    panel(['In effect', el('label.far', box, ' with the defaults')], el('div', { id: 'in-force' }, draw())),
    panel('At the terminal', pad(command('config check'), command('config show NAME --origin'))))
}

// The line of a file, without its folder.
const shortly = origin => el('span', { title: origin }, origin.replace(/^.*\/([^/:]+:\d+)(:\d+)?$/, '$1'))

const drawChange = one => proposal('Change', {
  title: `Change ${one.name}`, kind: 'settings', fields: [{ name: 'value', label: `Now ${one.value}; empty: the default`, value: /secret/.test(one.value) ? '' : one.value, isSecret: /secret/.test(one.value) }],
  valuesOf: form => ({ [one.name]: form.get('value') || null }),
}, { className: 'btn bare', 'aria-label': `Change ${one.name}` })

export const saidReloaded = ({ changed, restart }) => [
  changed.length ? `Reloaded: ${changed.join(', ')}.` : 'Reloaded. Nothing was different.', restart.length ? `Only a restart takes up ${restart.join(', ')}.` : '',
].filter(Boolean).join(' ')

const drawReload = key => actions(key, [{ label: 'Reload', verb: 'reload', params: {}, said: saidReloaded }])
const drawRestart = () => actions('restart', [{ label: 'Restart', verb: 'restart', params: {}, sure: 'Turns that run may finish first. Restart?', said: () => 'It restarts. This page comes back by itself.' }])

const drawChanged = differences => el('section.banner.warn', { 'data-key': 'changed' }, mark('warn'),
  el('div', el('p', el('b', 'Changed on disk, not in effect yet')), el('ul', ...differences.map(name => el('li', el('code', name))))), drawReload('reload'))
