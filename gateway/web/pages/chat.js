// The chat: the messages of one conversation, from the journal; the answer in progress; and the person's own text.

import { get, post, whyNot } from './asking.js'
import { button, bytes, el, moment, phone, plain, signButton } from './dom.js'
import { offerCommands } from './commands.js'
import { open, showLater } from './files.js'
import { drawMarkdown } from './markdown.js'
import { icon } from './signs.js'
import { follow } from './streams.js'
import { listUnsent, makeId, send } from './unsent.js'

export const title = 'Chat'

const LARGEST_FILE = 25_000_000
const MOST_FILES = 10
const AGAIN = 1500  // milliseconds before a reconnection
const DRAW_PAUSE = 80  // milliseconds between two drawings of a growing answer
const LONG = 20_000  // characters: a longer text is plain until it is complete
const SOUNDS = ['audio/ogg', 'audio/mpeg', 'audio/wav', 'audio/mp4', 'audio/flac', 'audio/webm']
export const freshAddress = () => `#chat/c${makeId().slice(0, 15)}`

const STATES = { running: 'an answer is being made', waiting: 'waits for your answer', queued: 'waits for its turn', idle: '' }

let room = null  // the drawn one

export async function show(thread) {
  if (room?.thread === thread) return room.node.isConnected ? null : room.node  // it updates itself, and may not be drawn yet
  room?.leave()
  room = new Room(thread)
  return room.node
}

// On a phone the keyboard would cover the half of what was said.
export const drawn = () => { if (!phone.matches) room?.composer.text.focus({ preventScroll: true }) }

window.addEventListener('hashchange', () => { if (!location.hash.startsWith('#chat')) room?.leave() })
document.addEventListener('visibilitychange', () => (document.hidden ? room?.disconnect() : room?.connect()))

class Room {
  constructor(thread) {
    this.thread = thread
    this.shown = new Map()  // the shown messages, by id
    this.first = 0
    this.seen = 0
    this.live = null
    this.older = button('Earlier messages', { className: 'btn older', hidden: true, onclick: () => this.showOlder() })
    this.log = el('div.log', { role: 'log', tabIndex: 0, 'aria-label': 'What was said' })
    this.state = el('p.state', { role: 'status' })
    this.composer = new Composer(this)
    this.list = el('ul')
    this.title = el('h1.hall-title', { dir: 'auto' }, title)
    const chats = el('aside.chats', { 'aria-label': 'Your chats' },
      el('div.head', el('h2', 'Chats'), el('div.acts', el('a', { href: freshAddress(), className: 'btn bare', 'aria-label': 'New chat', title: 'New chat' }, icon('plus')))), this.list)
    const more = signButton('more', 'More', { className: 'btn bare back', onclick: () => document.dispatchEvent(new Event('seek')) })
    const back = el('a.btn.bare.back', { href: '#', 'aria-label': 'Back' }, icon('back'))
    const hall = el('section.hall', { 'aria-label': 'Chat' },
      el('header.hall-head', back, el('div', this.title, this.state), this.composer.stop, more), this.older, this.log, this.composer.node)
    this.node = el('div.chat', chats, hall)
    for (const said of listUnsent(thread)) this.say(said)
    this.connect()
    this.listChats()
  }

  connect() {
    if (this.source) return
    this.source = follow(`/chat/live?${new URLSearchParams({ thread: this.thread, seen: this.seen })}`, (kind, data, id) => {
      if (kind === 'shown') this.add({ number: Number(id), ...data })
      if (kind === 'ready') { this.older.hidden = !data.more; this.toEnd() }
      if (kind === 'state') this.showState(data)
      if (kind === 'piece') this.grow(data)
    }, () => {
      this.state.textContent = 'the line is lost: what you write is kept, and sent as soon as it is back'
      this.disconnect()
      setTimeout(() => { if (this.node.isConnected && !document.hidden) this.connect() }, AGAIN)
    })
  }

  disconnect() {
    this.source?.close()
    this.source = null
  }

  leave() {
    this.disconnect()
    room = null
  }

  // A message with a known id replaces the shown one, and so does an edit.
  add(one) {
    this.seen = Math.max(this.seen, one.number)
    this.first = Math.min(this.first || one.number, one.number)
    const [id, change] = one.id.split(':edit-')
    const node = drawShown(this, one, change)
    const isAtEnd = this.isAtEnd()
    if (one.by === 'agent' && one.id.startsWith(`${this.live?.turn}:`)) this.endLive()
    if (this.shown.has(id)) this.shown.get(id).replaceWith(node)
    else this.place(node)
    this.shown.set(id, node)
    if (isAtEnd || one.by === 'person') this.toEnd()
  }

  // Below all messages, and above the answer in progress and messages that are still being sent.
  place(node) {
    const unsure = [...this.log.children].find(one => one.classList.contains('sending') || one.classList.contains('growing'))
    this.log.insertBefore(node, unsure ?? null)
  }

  isAtEnd() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80
  }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight
  }

  async say(said) {
    const node = drawShown(this, { by: 'person', id: said.id, text: said.text, files: said.files.map(one => ({ ...one, isLocal: true })) })
    const id = said.edits || said.id
    node.classList.add('sending')
    if (this.shown.has(id)) this.shown.get(id).replaceWith(node)
    else this.log.append(node)
    this.shown.set(id, node)
    this.toEnd()
    try {
      await send(said)
      node.classList.remove('sending')
    } catch (error) {
      const again = button('Send again')
      const failed = el('p.bad-text', `${error.message} `, again)
      again.addEventListener('click', () => { node.remove(); this.shown.delete(id); this.say(said) })
      node.append(failed)
    }
  }

  async press(shown, choice, row) {
    for (const one of row.children) one.disabled = true
    const body = JSON.stringify({ id: makeId(), thread: this.thread, reply: shown.id, value: choice.value })
    const answer = await post('/chat/press', body, 'application/json').catch(() => null)
    if (answer?.ok) return
    for (const one of row.children) one.disabled = false
    this.state.textContent = answer ? plain(await whyNot(answer)) : 'the line is lost: press it again'
  }

  showState(state) {
    this.state.textContent = STATES[state] ?? ''
    this.composer.stop.hidden = state === 'idle'
    clearTimeout(this.ending)
    if (state !== 'idle') return
    this.ending = setTimeout(() => this.endLive(), 3000)
    this.listChats()
  }

  grow(piece) {
    if (this.live?.turn !== piece.turn || piece.at === 0) {
      const node = this.live?.turn === piece.turn ? this.live.node : el('article.said.agent.growing', { 'aria-live': 'off' })
      if (!node.isConnected) this.log.append(node)
      this.live = { turn: piece.turn, node, text: '', due: this.live?.turn === piece.turn ? this.live.due : null }
    }
    if (piece.at !== this.live.text.length) return
    this.live.text += piece.text
    this.live.due ??= setTimeout(() => this.drawLive(), DRAW_PAUSE)
  }

  drawLive() {
    if (!this.live) return
    const { node, text } = this.live
    this.live.due = null
    const isAtEnd = this.isAtEnd()
    node.replaceChildren(text.length < LONG ? drawMarkdown(text) : el('p.body', { textContent: text }))
    if (isAtEnd) this.toEnd()
  }

  endLive() {
    clearTimeout(this.live?.due)
    this.live?.node.remove()
    this.live = null
  }

  async showOlder() {
    const answer = await get(`/chat/past?${new URLSearchParams({ thread: this.thread, before: this.first })}`)
    if (!answer.ok) return
    const { past, more } = await answer.json()
    const height = this.log.scrollHeight
    const known = past.filter(one => !this.shown.has(one.id))
    const nodes = known.map(one => drawShown(this, one, ''))
    known.forEach((one, index) => this.shown.set(one.id, nodes[index]))
    this.log.prepend(...nodes)
    this.log.scrollTop += this.log.scrollHeight - height
    this.first = past[0]?.number ?? this.first
    this.older.hidden = !more
  }

  async listChats() {
    const answer = await get('/chat/list').catch(() => null)
    if (!answer?.ok) return
    const { chats } = await answer.json()
    this.list.replaceChildren(...chats.map(one => {
      const link = el('a', { href: one.thread ? `#chat/${one.thread}` : '#chat' }, one.title || 'Without a title')
      if (one.thread === this.thread) { link.setAttribute('aria-current', 'true'); this.title.textContent = plain(one.title || title) }
      return el('li', link)
    }))
  }
}

function drawShown(place, one, isChanged) {
  const said = el('article', { className: `said ${one.by === 'person' ? 'user' : 'agent'}` })
  said.append(el('h3', el('span.unseen', one.by === 'person' ? 'you' : 'answer'), moment(one.at || Date.now() / 1000), isChanged ? ' changed' : ''))
  if (one.literals?.length) said.append(...one.literals.flatMap(drawLiteral))
  else if (one.text) said.append(one.by === 'person' ? el('p.body', { dir: 'auto', textContent: one.text }) : drawMarkdown(one.text))
  if (one.files?.length) said.append(el('ul.files', ...one.files.map((file, number) => el('li', drawFile(place, one, file, number)))))
  if (one.buttons?.length) {
    const row = el('div.answers', { role: 'group', 'aria-label': 'Answers' })
    for (const choice of one.buttons) {
      const node = button(choice.label)
      node.addEventListener('click', () => place.press(one, choice, row))
      row.append(node)
    }
    said.append(row)
  }
  if (one.by === 'person' && !one.isLocal && one.text && !one.text.startsWith('/')) {
    const change = button('Change', { className: 'btn bare change' })
    change.addEventListener('click', () => place.composer.change(one))
    said.append(change)
  }
  return said
}

// Our words, and below them another person's text unchanged: nothing in it is interpreted.
const drawLiteral = literal => [
  ...(literal.words ? [el('p.body', { textContent: literal.words })] : []),
  ...(literal.text ? [el('pre.literal', { tabIndex: 0, textContent: literal.text })] : []),
]

function drawFile(place, one, file, number) {
  const name = file.name || 'a file'
  if (file.isLocal) return el('span', name)
  const href = `/chat/file?${new URLSearchParams({ thread: place.thread, message: one.id, number })}`
  const isPicture = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'].includes(file.type)
  if (SOUNDS.includes(file.type)) {
    const sound = el('audio', { controls: true, 'aria-label': plain(name) })
    return showLater(sound, async () => { sound.src = await open(href) })
  }
  if (isPicture) {
    const picture = el('img', { alt: plain(name) })
    const link = el('a', { href: '#', target: '_blank', rel: 'noopener' }, picture)
    return showLater(link, async () => { link.href = picture.src = await open(href) })
  }
  const link = el('a', { href: '#', download: name }, `${plain(name)} · ${bytes(file.size)}`)
  link.addEventListener('click', async event => {
    event.preventDefault()
    el('a', { href: await open(href), download: name }).click()
  })
  return link
}

class Composer {
  constructor(place) {
    this.place = place
    this.files = []
    this.edits = ''
    this.isWaiting = false  // for uploads, to be sent with them
    this.text = el('textarea', { rows: 1, placeholder: 'Message, or / for commands', 'aria-label': 'Your message' })
    this.kept = el('ul.files')
    this.note = el('p.soft', { hidden: true })
    this.stop = button('Stop', { sign: 'stop', hidden: true, onclick: () => place.say({ id: makeId(), thread: place.thread, text: '/stop', files: [] }) })
    const chosen = el('input', { type: 'file', multiple: true, className: 'chosen', 'aria-label': 'Files to send' })
    chosen.addEventListener('change', () => { this.keep([...chosen.files]); chosen.value = '' })
    const send = el('button', { type: 'submit', className: 'btn go', 'aria-label': 'Send', title: 'Send' }, icon('send'))
    this.menu = offerCommands(this.text)
    const key = text => el('kbd', text)
    this.node = el('form.composer', this.menu.node, this.note, this.kept,
      el('div.row', el('label.btn.bare', { title: 'Add files' }, icon('clip'), chosen), this.text, send),
      el('p.hint', el('span', key('Enter'), ' send'), el('span', key('/'), ' commands'), el('span', key('Ctrl K'), ' search')))
    this.node.addEventListener('submit', event => { event.preventDefault(); this.say() })
    this.text.addEventListener('keydown', event => this.press(event))
    this.text.addEventListener('paste', event => this.keep([...event.clipboardData.files], event))
    this.node.addEventListener('dragover', event => event.preventDefault())
    this.node.addEventListener('drop', event => this.keep([...event.dataTransfer.files], event))
  }

  press(event) {
    if (this.menu.press(event)) return
    if (event.key === 'Escape' && this.edits) this.change(null)
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || matchMedia('(pointer: coarse)').matches) return
    event.preventDefault()
    this.say()
  }

  change(one) {
    this.edits = one?.id.split(':edit-')[0] ?? ''
    this.wait(false)
    this.text.value = one?.text ?? ''
    this.text.focus()
  }

  wait(isWaiting) {
    this.isWaiting = isWaiting
    this.note.hidden = !isWaiting && !this.edits
    this.note.textContent = isWaiting ? 'It is sent as soon as its files are here.' : 'You write anew what you wrote; Escape leaves it.'
  }

  async keep(files, event) {
    if (files.length) event?.preventDefault()
    const entries = files.map(file => ({ name: file.name, note: el('li', `${file.name} …`), file: null }))
    this.files.push(...entries)  // all at once: a message that is sent now waits for the last one
    this.kept.append(...entries.map(entry => entry.note))
    for (const [index, entry] of entries.entries()) {
      entry.file = await this.sendFile(files[index], this.files.indexOf(entry)).catch(error => ({ failed: error.message }))
      this.showKept(entry)
      if (entry.file.failed) this.wait(false)  // without that file, the person must send again
      if (this.isWaiting) this.say()
    }
  }

  showKept(entry) {
    const { failed } = entry.file
    const drop = signButton('cross', `Leave out ${plain(entry.name)}`)
    drop.addEventListener('click', () => { entry.note.remove(); this.files = this.files.filter(one => one !== entry) })
    entry.note.replaceChildren(plain(failed ? `${entry.name}: ${failed}` : entry.name), ' ', drop)
    if (failed) entry.note.className = 'bad-text'
  }

  async sendFile(file, place) {
    if (place >= MOST_FILES) throw new Error(`a message has ${MOST_FILES} files at most`)
    if (file.size > LARGEST_FILE) throw new Error(`it has ${bytes(file.size)}; ${bytes(LARGEST_FILE)} are taken at most`)
    const type = /^[a-z0-9.+-]{1,60}\/[a-z0-9.+-]{1,60}$/.test(file.type) ? file.type : ''
    const about = new URLSearchParams({ id: makeId(), name: file.name.slice(0, 200), type })
    const answer = await post(`/chat/file?${about}`, file)
    if (!answer.ok) throw new Error(await whyNot(answer))
    return answer.json()
  }

  say() {
    const isReady = this.files.every(one => one.file)
    const files = this.files.map(one => one.file).filter(one => one && !one.failed)
    if (!isReady) return this.wait(true)
    if (!(this.text.value.trim() || files.length)) return this.wait(false)
    this.place.say({ id: makeId(), thread: this.place.thread, text: this.text.value, files, edits: this.edits })
    this.files = []
    this.kept.replaceChildren()
    this.change(null)
  }
}
