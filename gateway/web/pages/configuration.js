// The settings in force with their origin, the faults of the files, and the changes there since they were read.

import { ask } from './asking.js'
import { column, el, panel, renew, table } from './dom.js'

export const title = 'Configuration'
export const needs = 'config.show'
export const calm = 15000  // milliseconds between two refreshes, each of which reads the files

let isWhole = false

export async function show() {
  const { file, settings, differences, findings } = await ask('config.show')
  const wrong = findings.map(one => [one.severity, [one.source, one.line, one.column].filter(Boolean).join(':'), `${one.what}; ${one.remedy}`])
  const draw = () => table([column('setting'), column('value', 'value'), column('set by')],
    settings.filter(one => isWhole || one.origin !== 'default').map(one => [one.name, one.value, one.origin]), 'Nothing is set; the defaults hold.')
  const choose = event => { isWhole = event.currentTarget.checked; renew(document.getElementById('in-force').firstElementChild, draw()) }
  const box = el('input', { type: 'checkbox', defaultChecked: isWhole, onchange: choose })
  return el('div', {},
    ...(differences.length ? [changed(differences)] : []),
    panel(['Found', el('small', {}, 'as hermes-gateway config check says it')], table([column(''), column('where'), column('what')], wrong, 'Nothing is wrong with it.')),
    panel(['In force', el('small', {}, file), el('label', {}, box, ' with the defaults')], el('div', { id: 'in-force' }, draw())),
    el('p', { className: 'soft' }, 'It is changed in the file, and read again by hermes-gateway reload.'))
}

function changed(differences) {
  const shown = panel('Changed, and not in force', el('ul', {}, ...differences.map(name => el('li', { textContent: name }))), el('p', { textContent: 'To have it read again: hermes-gateway reload' }))
  shown.classList.add('attention')
  return shown
}
