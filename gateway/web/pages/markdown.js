// Markdown as nodes. A model's text never becomes markup by itself: each node is made here, a text is set as text, and
// a link has http, https or mailto or is not a link. Every rule reads a text once, so none takes long.

import { el, plain } from './dom.js'

const MOST_DEEP = 6
const MOST_DRAWN = 100_000  // characters: a longer text is shown as it is
const MOST_LABEL = 500
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/
const ITEM = /^( {0,8})([-*+]|[0-9]{1,9}[.)])[ \t]+(.*)$/
const ROW = /^ {0,3}\|(.*)\|[ \t]*$/
const LINE_OF_HEAD = /^[ \t:|-]+$/
const MARKS = /(`+)|(\*\*|__|~~)|([*_])|\[|(https?:\/\/[^\s<>"'`]+)/g
const NAMES = { '**': 'strong', __: 'strong', '~~': 'del', '*': 'em', _: 'em' }

export function drawMarkdown(text) {
  if (text.length > MOST_DRAWN) return el('p.plain', { textContent: text })
  const drawn = el('div.markdown')
  drawn.append(...drawBlocks(text.replaceAll('\r\n', '\n').split('\n'), 0))
  return drawn
}

function drawBlocks(lines, depth) {
  const drawn = []
  let said = []
  const end = () => { if (said.length) drawn.push(drawParagraph(said)); said = [] }
  for (let at = 0; at < lines.length;) {
    const [node, next] = drawBlock(lines, at, depth) ?? []
    if (next) { end(); drawn.push(node); at = next; continue }
    if (lines[at].trim()) said.push(lines[at])
    else end()
    at += 1
  }
  end()
  return drawn
}

// The block that begins in this line, and the line after it; nothing for a paragraph.
function drawBlock(lines, at, depth) {
  const line = lines[at]
  const fence = FENCE.exec(line)
  if (fence) return drawCode(lines, at, fence)
  const heading = HEADING.exec(line)
  if (heading) return [el(`h${Math.min(6, heading[1].length + 2)}`, {}, ...drawInline(cutEnd(heading[2].trimEnd(), '#').trimEnd(), 0)), at + 1]
  if (RULE.test(line)) return [el('hr'), at + 1]
  if (depth < MOST_DEEP && /^ {0,3}>/.test(line)) return drawQuote(lines, at, depth)
  if (depth < MOST_DEEP && ITEM.test(line)) return drawList(lines, at, depth)
  if (ROW.test(line) && LINE_OF_HEAD.test(lines[at + 1] ?? '') && lines[at + 1].includes('-')) return drawTable(lines, at)
  return null
}

function drawCode(lines, at, fence) {
  let end = at + 1
  while (end < lines.length && !(lines[end].trim().startsWith(fence[1]) && !lines[end].trim().replaceAll(fence[1][0], ''))) end += 1
  return [drawCopied(lines.slice(at + 1, end).join('\n'), fence[2].trim().split(/\s/)[0]), end + 1]
}

function drawCopied(text, language) {
  const code = el('code', { textContent: text })
  const copy = el('button', { type: 'button', className: 'btn bare' }, 'copy')
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text)
      copy.textContent = 'copied'
    } catch {  // browsers have no clipboard for a page without TLS: so the text is selected, for the keyboard
      getSelection().selectAllChildren(code)
      copy.textContent = 'marked'
    }
    setTimeout(() => { copy.textContent = 'copy' }, 2000)
  })
  return el('figure.code', el('figcaption', language.slice(0, 30), copy), el('pre', { tabIndex: 0 }, code))
}

function drawQuote(lines, at, depth) {
  const inner = []
  while (at < lines.length && /^ {0,3}>/.test(lines[at])) inner.push(lines[at++].replace(/^ {0,3}> ?/, ''))
  return [el('blockquote', ...drawBlocks(inner, depth + 1)), at]
}

function drawList(lines, at, depth) {
  const first = ITEM.exec(lines[at])
  const isNumbered = /[0-9]/.test(first[2])
  const list = el(isNumbered ? 'ol' : 'ul', isNumbered ? { start: parseInt(first[2], 10) } : {})
  while (at < lines.length) {
    const item = ITEM.exec(lines[at])
    if (!item || item[1].length > first[1].length + 1 || item[1].length < first[1].length || /[0-9]/.test(item[2]) !== isNumbered) break
    const inner = [item[3]]
    const isInside = line => (line.trim() ? / {2,}|\t/.test(line.slice(0, item[1].length + 2)) && /^[ \t]/.test(line) : /^[ \t]/.test(lines[at + 1] ?? ''))
    for (at += 1; at < lines.length && isInside(lines[at]); at += 1) inner.push(lines[at].replace(/^(?:\t| {1,4})/, ''))
    list.append(el('li', ...unwrap(drawBlocks(inner, depth + 1))))
  }
  return [list, at]
}

// A single paragraph in an item needs no space around it.
const unwrap = nodes => (nodes[0]?.tagName === 'P' ? [...nodes[0].childNodes, ...nodes.slice(1)] : nodes)

function drawTable(lines, at) {
  const cells = line => ROW.exec(line)[1].split(/(?<!\\)\|/).map(cell => drawInline(cell.trim().replaceAll('\\|', '|'), 0))
  const head = el('tr', ...cells(lines[at]).map(cell => el('th', { scope: 'col' }, ...cell)))
  const rows = []
  for (at += 2; at < lines.length && ROW.test(lines[at]); at += 1) rows.push(el('tr', ...cells(lines[at]).map(cell => el('td', ...cell))))
  return [el('div.wide', { tabIndex: 0 }, el('table', el('thead', head), el('tbody', ...rows))), at]
}

function drawParagraph(lines) {
  const drawn = el('p')
  lines.forEach((line, index) => {
    if (index) drawn.append(el('br'))
    drawn.append(...drawInline(line.trim(), 0))
  })
  return drawn
}

function drawInline(text, depth) {
  const drawn = []
  let from = 0
  const ends = new Map()  // the next place of each searched mark, so that it is searched only once
  MARKS.lastIndex = 0
  for (let found; (found = MARKS.exec(text));) {
    const at = found.index
    const [node, end] = drawMark(text, found, depth, ends) ?? []
    if (!end) continue
    if (at > from) drawn.push(plain(text.slice(from, at)))
    drawn.push(node)
    from = end
    MARKS.lastIndex = end
  }
  if (from < text.length) drawn.push(plain(text.slice(from)))
  return drawn
}

function drawMark(text, found, depth, ends) {
  const [mark, ticks, strong, soft, address] = found
  const at = found.index
  if (text[at - 1] === '\\') return null
  if (address) return drawAddress(address, at)
  if (mark === '[') return drawLink(text, at, depth, ends)
  const close = ticks ?? strong ?? soft
  if (ends.get(close) < 0 || depth >= MOST_DEEP) return null
  const begin = at + mark.length
  const end = findClose(text, close, begin)
  if (end < 0) { ends.set(close, end); return null }
  if (ticks) return [el('code', { textContent: text.slice(begin, end).trim() }), end + close.length]
  const isWord = close.startsWith('_') && (/\w/.test(text[at - 1] ?? '') || /\w/.test(text[end + close.length] ?? ''))
  if (isWord || /\s/.test(text[begin]) || /\s/.test(text[end - 1])) return null
  const before = MARKS.lastIndex
  const inner = drawInline(text.slice(begin, end), depth + 1)
  MARKS.lastIndex = before
  return [el(NAMES[close], {}, ...inner), end + close.length]
}

function findClose(text, close, begin) {
  let end = text.indexOf(close, begin)
  while (end >= 0 && (end === begin || (close.length === 1 && text[end + 1] === close) || (close[0] === '`' && text[end + close.length] === '`'))) {
    while (text[end] === close[0]) end += 1
    end = text.indexOf(close, end)
  }
  return end
}

// The text without these characters at its end.
function cutEnd(text, signs) {
  let end = text.length
  while (end && signs.includes(text[end - 1])) end -= 1
  return text.slice(0, end)
}

function drawAddress(address, at) {
  const shown = cutEnd(address, '.,;:!?)]}*_~')
  const link = makeLink(shown, [shown])
  return link && [link, at + shown.length]
}

function findNext(text, sign, from, ends) {
  const known = ends.get(sign)
  if (known === undefined || (known >= 0 && known < from)) ends.set(sign, text.indexOf(sign, from))
  return ends.get(sign)
}

function drawLink(text, at, depth, ends) {
  const middle = findNext(text, '](', at, ends)
  if (depth >= MOST_DEEP || middle < 0 || middle - at > MOST_LABEL) return null
  const end = findNext(text, ')', middle, ends)
  const label = text.slice(at + 1, middle)
  if (end < 0 || label.includes('[') || !label.trim()) return null
  const address = text.slice(middle + 2, end).trim().split(/\s/)[0].replace(/^<|>$/g, '')
  const before = MARKS.lastIndex
  const inner = drawInline(label, MOST_DEEP)
  MARKS.lastIndex = before
  const link = makeLink(address, inner)
  return link && [link, end + 1]
}

// The target of a link is shown if its words differ.
function makeLink(address, shown) {
  let to
  try { to = new URL(address) } catch { return null }
  if (!['http:', 'https:', 'mailto:'].includes(to.protocol)) return null
  return el('a', { href: to.href, rel: 'noopener noreferrer nofollow', target: '_blank', title: plain(to.href) }, ...shown)
}
