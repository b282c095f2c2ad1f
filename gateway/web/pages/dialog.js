// A form over the page; it stays, with the reason of a failure, until what it sends succeeds. Its fields are {name, label,
// value, isSecret, isLong, isNeeded}.

import { button, el } from './dom.js'

const dialog = document.getElementById('asked')

function drawField({ name, label, value = '', isSecret, isLong, isNeeded }) {
  const usual = { name, className: 'field', required: Boolean(isNeeded), autocomplete: 'off', defaultValue: value }
  return el('label', el('span.soft.small', label), isLong ? el('textarea', { ...usual, rows: 3 }) : el('input', { ...usual, type: isSecret ? 'password' : 'text' }))
}

// `send` gets the values of the form, and returns what stands in its place then: a heading and nodes. None: it closes.
export function openForm({ title, label, fields, why, send }) {
  const said = el('p.told', { role: 'status' })
  const go = el('button.btn.go', label)
  const close = () => dialog.close()
  const heading = text => el('h2', { id: 'asked-title', dir: 'auto' }, text)
  const form = el('form.pad.stack', heading(title), ...fields.map(drawField), el('p.soft.small', why),
    said, el('div.acts', button('Cancel', { onclick: close }), go))
  form.onsubmit = async event => {
    event.preventDefault()
    go.disabled = true
    said.textContent = 'It is being checked …'
    try {
      const [words, ...more] = await send(new FormData(form)) ?? []
      if (!words) return close()
      form.replaceChildren(heading(words), ...more, el('div.acts', button('Close', { className: 'btn go', onclick: close })))
    } catch (error) {
      said.textContent = error instanceof TypeError ? 'The gateway cannot be reached: nothing was done.' : error.message
      go.disabled = false
    }
  }
  dialog.replaceChildren(form)
  dialog.showModal()
}

dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close() })
