// Ctrl-K: rooms, actions, people, hooks and conversations by a part of their names. On the phone it is what More opens.
// The first row never changes anything.

import { el, phone } from './dom.js'
import { icon } from './signs.js'

const MOST = 18
const dialog = document.getElementById('palette')

// Rows: {group, name, sign, more, act}. `findMore` is asked once, when words are typed, for what is not known yet.
export function openPalette(rows, findMore) {
  let [all, shown, chosen, isAsked] = [rows, [], 0, false]
  const list = el('ul', { role: 'listbox', id: 'found', 'aria-label': 'Found' })
  const input = el('input', { type: 'search', placeholder: 'Search or do', 'aria-label': 'Search or do', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'found', autocomplete: 'off' })

  function choose(at) {
    chosen = (at + shown.length) % Math.max(1, shown.length)
    list.querySelectorAll('[role=option]').forEach((node, order) => node.setAttribute('aria-selected', String(order === chosen)))
    const node = list.querySelector('[aria-selected=true]')
    if (node) input.setAttribute('aria-activedescendant', node.id)
    else input.removeAttribute('aria-activedescendant')
    node?.scrollIntoView({ block: 'nearest' })
  }

  function act() {
    dialog.close()
    shown[chosen]?.act()
  }

  function draw() {
    const words = input.value.toLowerCase().split(' ').filter(Boolean)
    const isUsual = one => one.group === 'Rooms' || one.group === 'Actions'
    shown = all.filter(one => (words.length ? words.every(word => `${one.group} ${one.name} ${one.more ?? ''}`.toLowerCase().includes(word)) : isUsual(one))).slice(0, MOST)
    list.replaceChildren(...shown.flatMap((one, at) => [
      ...(one.group === shown[at - 1]?.group ? [] : [el('li.group', { role: 'presentation' }, one.group)]),
      el('li', { role: 'option', id: `option-${at}`, onclick: () => { chosen = at; act() } }, icon(one.sign), el('b', { dir: 'auto' }, one.name), el('span', { dir: 'auto' }, one.more ?? '')),
    ]), ...(shown.length ? [] : [el('li.group', { role: 'presentation' }, 'No matches.')]))
    choose(0)
  }

  input.oninput = async () => {
    draw()
    if (isAsked || !findMore) return
    isAsked = true
    const more = await findMore().catch(() => [])
    all = [...rows, ...more]
    draw()
  }
  input.onkeydown = event => {
    const acts = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Enter: act }
    if (!acts[event.key] || event.isComposing) return
    event.preventDefault()
    acts[event.key]()
  }
  const key = text => el('kbd', text)
  dialog.replaceChildren(
    el('div.asking', icon('search'), input, key('Esc')), list,
    el('footer', el('span', key('↑'), ' ', key('↓'), ' choose'), el('span', key('Enter'), ' go'), el('span', key('/'), ' search in this room')))
  draw()
  dialog.showModal()
  if (phone.matches) input.blur()
}

dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close() })
