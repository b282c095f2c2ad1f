// The settings in force with their origin, the faults of the files, and the changes there since they were read.

import { actions } from './acting.js'
import { ask } from './asking.js'
import { column, command, counted, el, head, pad, panel, placeFrom, placeIn, quiet, searchFor, stateOf, table, tabs } from './dom.js'
import { drawProposals, listProposals, proposal } from './proposals.js'
import { mark } from './signs.js'

export const title = 'Settings'
export const needs = 'config.show'
export const calm = 15000  // milliseconds between two refreshes, each of which reads the files

const GROUPS = { mcp_servers: 'MCP servers', platforms: 'Chat networks' }  // the others have their names in the file

export async function show(place = '') {
  const { text, tab } = placeFrom(place)
  const [{ file, settings, differences, findings }, proposals] = await Promise.all([ask('config.show'), listProposals()])
  const wrong = findings.map(one => [stateOf(one.severity === 'error' ? 'bad' : 'warn', one.severity), [one.source, one.line, one.column].filter(Boolean).join(':'), { node: `${one.what}; ${one.remedy}`, className: 'full' }])
  const own = settings.filter(one => one.origin !== 'default')
  const isMeant = one => [one.name, wordsOf(one.name), one.about, one.value].some(part => part.toLowerCase().includes(text.toLowerCase()))
  const shown = (tab || text ? settings : own).filter(isMeant)
  return el('div',
    head(title, { facts: [el('code', file), `${own.length} set, the rest are defaults`, findings.length ? counted(findings.length, 'problem') : 'no problems found'], acts: differences.length ? [drawRestart()] : [drawReload('reload'), drawRestart()] }),
    ...(differences.length ? [drawChanged(differences)] : []),
    ...(findings.length ? [panel(['Found', el('small', 'as hermes-gateway config check says it')], table([column('Kind'), column('Where', 'soft'), column('What', 'full')], wrong, ''))] : []),
    ...drawProposals(proposals),
    tabs([['Set', '#settings', !tab && !text, own.length], ['With the defaults', placeIn('settings', { tab: 'all' }), tab || text, settings.length]], searchFor('Name or words', text, words => placeIn('settings', { tab, text: words }))),
    ...drawGroups(shown, new Set(differences)),
    ...(shown.length ? [] : [panel('', quiet(text ? 'No matches.' : 'Nothing is set; the defaults hold.'))]),
    panel('At the terminal', pad(command('config check'), command('config show NAME --origin'))))
}

const groupOf = one => one.name.split('.')[0]

function drawGroups(settings, changed) {
  return [...new Set(settings.map(groupOf))].map(group => panel(GROUPS[group] ?? capital(group),
    el('ul.options', ...settings.filter(one => groupOf(one) === group).map(one => drawOne(one, changed.has(one.name))))))
}

const drawOne = (one, isChanged) => el('li',
  el('div', el('b', wordsOf(one.name)), el('p.sub', ...spoken(one.about)), el('code.sub', one.name)),
  el('div.value', one.value || el('span.soft', 'empty'), ...(isChanged ? [' ', mark('warn', 'changed on disk')] : [])),
  el('span.soft.small', { title: one.origin }, shortly(one.origin)), el('div', ...drawChange(one)))

const capital = text => text.charAt(0).toUpperCase() + text.slice(1)

// `sessions.per_user_in_groups`, below the heading of its group: `Per user in groups`.
const wordsOf = name => capital((name.split('.').slice(1).join(', ') || name).replaceAll('_', ' '))

// What the reference says: words between backticks are typed as they are.
const spoken = text => capital(text).split('`').map((part, at) => (at % 2 ? el('code', part) : part))

// The line of a file, without its folder.
const shortly = origin => origin.replace(/^.*\/([^/:]+:\d+)(:\d+)?$/, '$1')

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
