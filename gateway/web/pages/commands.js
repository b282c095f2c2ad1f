// The menu of commands: shown below a text that begins with a slash, with a choice by the arrow keys.

import { get } from './asking.js'
import { el } from './dom.js'

let rows = null

async function load() {
  const answer = await get('/chat/commands')
  rows = answer.ok ? (await answer.json()).commands : null
}

export function offerCommands(text) {
  const node = el('ul.menu', { role: 'listbox', id: 'commands', hidden: true, 'aria-label': 'Commands' })
  let chosen = 0
  text.setAttribute('aria-controls', 'commands')
  text.setAttribute('aria-autocomplete', 'list')

  const matching = () => (/^\/\S*$/.test(text.value) ? (rows ?? []).filter(one => one.name.startsWith(text.value.slice(1).toLowerCase())) : [])

  function take(row) {
    text.value = `/${row.name}${row.usage ? ' ' : ''}`
    draw()
    node.hidden = true
    text.focus()
  }

  function draw() {
    const found = matching()
    node.hidden = !found.length
    chosen = Math.max(0, Math.min(chosen, found.length - 1))
    node.replaceChildren(...found.map((row, index) => {
      const option = el('li', { role: 'option', id: `command-${index}`, 'aria-selected': String(index === chosen) },
        el('b', `/${row.name}`), ` ${row.usage} `, el('span.soft', row.summary))
      option.addEventListener('mousedown', event => { event.preventDefault(); take(row) })
      return option
    }))
    if (found.length) text.setAttribute('aria-activedescendant', `command-${chosen}`)
    else text.removeAttribute('aria-activedescendant')
    node.children[chosen]?.scrollIntoView({ block: 'nearest' })
  }

  text.addEventListener('input', async () => {
    if (text.value.startsWith('/') && !rows) await load()
    draw()
  })
  text.addEventListener('blur', () => { node.hidden = true })

  // Returns true if the key was for the menu. A complete command is sent, and not chosen again.
  function press(event) {
    const found = node.hidden ? [] : matching()
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const isWhole = found.length === 1 && text.value === `/${found[0].name}`
    if (!found.length || isWhole) return false
    if (step) { chosen = (chosen + step + found.length) % found.length; draw() }
    else if (event.key === 'Escape') node.hidden = true
    else if (event.key === 'Tab' || event.key === 'Enter') take(found[chosen])
    else return false
    event.preventDefault()
    return true
  }
  return { node, press }
}
