// Signs: strokes on a field of 16, marks of states, each with a shape of its own, on a field of 10, and initials of
// people. Nothing here is a picture of somebody's brand.

const SVG = 'http://www.w3.org/2000/svg'

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue
    if (name.startsWith('on')) made[name] = value
    else made.setAttribute(name, value === true ? '' : value)
  }
  made.append(...children.flat(3).filter(child => child != null && child !== false))
  return made
}

const STROKES = {
  overview: 'M2.5 13.5h11M4 11V8M8 11V3M12 11V6',
  chat: 'M3 3h10v8H7.5L4.5 13.5V11H3z',
  conversations: 'M2.5 4h11M2.5 8h11M2.5 12h6.5',
  hooks: 'M10 2.5v6.8a3.3 3.3 0 0 1-6.6 0V8L1.8 9.8M3.4 8l1.8 1.6M8.4 2.5h3.2',
  jobs: 'M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M8 5v3.2l2.3 1.4',
  people: 'M6 3.2a2.4 2.4 0 1 1 0 4.8 2.4 2.4 0 0 1 0-4.8M1.8 13.2c.2-2.1 2-3.3 4.2-3.3s4 1.2 4.2 3.3M10.6 3.4a2.3 2.3 0 0 1 0 4.4M12.1 10.2c1.2.5 2 1.5 2.1 3',
  settings: 'M2.5 5h5.6M12 5h1.5M2.5 11h1.6M8 11h5.5M10 3.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6M6 9.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  search: 'M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M10.2 10.2l3 3',
  networks: 'M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M2.4 8h11.2M8 2.2c3.6 3.6 3.6 8 0 11.6M8 2.2c-3.6 3.6-3.6 8 0 11.6',
  costs: 'M2.5 4.5h11v7h-11zM8 6.6a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 0 1 0-2.8',
  live: 'M1.8 8h2.7l1.8-4.5 3 9L11.2 8h3',
  logs: 'M3.5 2.5h9v11h-9zM6 5.5h4M6 8h4M6 10.5h2.5',
  deeds: 'M8 2.2a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2M3 13.6c.2-2.7 2.3-4 5-4s4.8 1.3 5 4',
  pause: 'M6 4v8M10 4v8',
  play: 'M5 3.5l7 4.5-7 4.5z',
  plus: 'M8 3v10M3 8h10',
  check: 'M3 8.5l3.2 3L13 4.5',
  cross: 'M4 4l8 8M12 4l-8 8',
  next: 'M6 3.5L10.5 8 6 12.5',
  back: 'M10 3.5L5.5 8l4.5 4.5',
  copy: 'M5.5 5.5h7.5v8H5.5zM10.5 5.5v-3H3v8h2.5',
  shield: 'M8 2l5 1.8v3.9c0 3-2 5.2-5 6.3-3-1.1-5-3.3-5-6.3V3.8z',
  door: 'M4 13.5v-11h8v11M2.5 13.5h11M9.5 8h.01',
  send: 'M8 13V3.5M4 7l4-4 4 4',
  reload: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.3h-2.3',
  clip: 'M12.5 7.5l-4.7 4.7a2.6 2.6 0 0 1-3.7-3.7l5-5a1.8 1.8 0 0 1 2.5 2.5l-5 5',
  stop: 'M4.5 4.5h7v7h-7z',
}

export const icon = name => svg('svg', { class: 'i', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
  svg('path', { d: STROKES[name], 'stroke-width': name === 'more' ? 2.4 : null }))

const ring = r => svg('circle', { class: 'ring', cx: 5, cy: 5, r })
const SHAPES = {
  ok: () => svg('circle', { cx: 5, cy: 5, r: 4 }),
  warn: () => svg('path', { d: 'M5 .4 10 9.4H0z' }),
  bad: () => svg('path', { d: 'M5-.4 10.4 5 5 10.4-.4 5z' }),
  off: () => ring(3.6),
  next: () => ring(3.6),
  miss: () => ring(3.6),
  paused: () => svg('path', { d: 'M1.5 1h2.5v8H1.5zM6 1h2.5v8H6z' }),
  run: () => svg('path', { d: 'M2 1l7 4-7 4z' }),
  wait: () => [ring(3.8), svg('path', { d: 'M5 1.2a3.8 3.8 0 0 1 0 7.6z' })],
}
const STATES = { ok: 'well', warn: 'look at it', bad: 'failed', off: 'off', next: 'next', paused: 'paused', run: 'running', wait: 'waiting' }

// With an empty label the mark is silent: the words beside it say the same.
export const mark = (kind, label = STATES[kind]) => svg('svg',
  { class: `mark ${kind}`, viewBox: '0 0 10 10', ...(label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' }) }, SHAPES[kind]())

const TINTS = 6
const initialsOf = name => (name.match(/\p{L}[\p{L}\p{M}]*/gu) ?? ['?']).map(word => [...word][0]).slice(0, 2).join('').toUpperCase()

export function avatar(name, size = '') {
  const made = document.createElement('span')
  made.className = `av h${[...name].reduce((sum, sign) => sum + sign.codePointAt(0), 0) % TINTS} ${size}`.trim()
  made.setAttribute('aria-hidden', 'true')
  made.textContent = initialsOf(name)
  return made
}
