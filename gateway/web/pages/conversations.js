// The conversations, the newest first; a search for words; and the messages of one. The gateway sends them page by
// page.

import { actions } from './acting.js'
import { ask, may } from './asking.js'
import { ago, bytes, column, counted, el, facts, head, moment, named, number, pad, pager, panel, roomOf, saveAs, searchFor, stateOf, table } from './dom.js'
import { avatar, mark } from './signs.js'

export const title = 'Conversations'

const ROWS = 50
const FEW = 8  // found by name
const ENTRIES = 60
const LONGEST = 4000  // characters of a text; the rest comes on demand
const MOST = 200_000
const linkTo = (id, params) => roomOf('conversations', params ? `${id}?${new URLSearchParams(params)}` : id)
const KINDS = { dm: 'direct chat' }
// A call of a program has its own session, whose name means nothing.
const placeOf = one => {
  const [kind, ...place] = one.session_key.split(':').slice(3)
  return [KINDS[kind] ?? kind, ...(kind === 'call' ? place.slice(0, 1) : place.filter(part => part !== one.user_id))].join(' · ')
}
export const called = one => one.title || one.first_words || placeOf(one) || one.session_id
const personOf = (one, names) => names?.[`${one.platform}:${one.user_id}`]?.name || one.user_id
const chatOf = (one, names) => names?.[one.chat]?.name || placeOf(one)
const words = (one, names) => [personOf(one, names), one.platform, chatOf(one, names)].filter(Boolean).join(' · ')

// A row of a short list; `open` are the questions that wait for somebody.
export function drawTalk(one, names, open) {
  const waits = open?.asked.some(asked => asked.session_key === one.session_key)
  const inner = [avatar(personOf(one, names) || '?'), el('span.t', el('b', { dir: 'auto' }, called(one).slice(0, 120)), el('span', { dir: 'auto' }, words(one, names))),
    waits ? stateOf('wait', 'needs you') : ago(one.last_active)]
  return may('sessions.show') ? el('a', { href: linkTo(one.session_id) }, ...inner) : el('div', ...inner)
}

const nameOf = (one, names) => named(avatar(personOf(one, names) || '?'), called(one).slice(0, 120), words(one, names), may('sessions.show') ? linkTo(one.session_id) : '')

export async function show(rest, _asked, found) {
  const [id, query] = [rest.split('?', 1)[0], rest.slice(rest.indexOf('?') + 1)]
  const params = new URLSearchParams(rest.includes('?') ? query : '')
  if (id) return showOne(id, Number(params.get('before') ?? -1))
  return params.get('q') ? find(params.get('q'), params.get('after') ?? '') : list(params.get('after') ?? '', await found)
}

const searchWords = query => (may('sessions.search')
  ? [el('div.tabs', searchFor('Words or a name', query, words => (words ? linkTo('', { q: words }) : '#conversations')))] : [])

async function list(after, open) {
  const { sessions, next, names } = await ask('sessions.list', { limit: ROWS, after })
  const waiting = new Set(open.asked.map(one => one.session_key))
  const heads = [column('Conversation'), ...(waiting.size ? [column('State')] : []), number('Turns', 'off-phone'), number('Last used')]
  const rows = sessions.map(one => [nameOf(one, names), ...(waiting.size ? [waiting.has(one.session_key) ? stateOf('wait', 'needs you') : ''] : []), one.turns, ago(one.last_active)])
  const recent = sessions.filter(one => Date.now() / 1000 - one.last_active < 7 * 86400).length
  return el('div',
    head(title, { facts: [`${recent}${next ? ' or more' : ''} this week`, open.asked.length ? `${counted(open.asked.length, 'needs', 'need')} you` : ''] }), ...searchWords(''),
    panel('', table(heads, rows, after ? 'There are no more.' : 'Nobody has said anything yet.')),
    pager([after && ['newest', '#conversations'], next && ['older', linkTo('', { after: next })]]))
}

async function find(query, after) {
  const [{ hits, next, names }, { sessions, names: known }] = await Promise.all([ask('sessions.search', { query, limit: ROWS, after }), ask('sessions.list', { search: query, limit: after ? 0 : FEW })])
  const rows = hits.map(hit => [nameOf(hit, names), hit.role, { node: hit.snippet, className: 'full' }, ago(hit.at)])
  return el('div', head(`Found: ${query}`, { back: 'Conversations' }), ...searchWords(query),
    ...(sessions.length ? [panel(['By name', el('small', 'title, person or chat')], el('div.list', ...sessions.map(one => drawTalk(one, known))))] : []),
    panel('', table([column('Conversation'), column('Who'), column('Where', 'full'), number('When')], rows, 'No matches.')),
    pager([after && ['newest', linkTo('', { q: query })], next && ['older', linkTo('', { q: query, after: next })]]))
}

async function showOne(id, before) {
  const session = await ask('sessions.show', { session: id, before, limit: ENTRIES, longest: LONGEST })
  const { usage, first, count, names } = session
  const last = first + session.entries.length
  const decisionsAt = at => session.decisions.filter(one => one.entry === at).map(drawDecision)
  const pages = () => pager([
    first > 0 && ['earlier', linkTo(id, { before: first })],
    last < count && ['later', linkTo(id, last + ENTRIES < count && { before: last + ENTRIES })],
    last < count && ['the end', linkTo(id)],
  ])
  const person = personOf(session, names)
  const profile = person && may('people.list') ? el('a', { href: roomOf('people', `${session.platform}:${session.user_id}`) }, person) : person
  return el('div',
    head(called(session).slice(0, 120), {
      facts: [person, session.platform, el('span', 'began ', moment(session.began)), el('span', 'last used ', moment(session.last_active))], acts: [drawActs(session)], back: 'Conversations',
    }),
    el('div.cols.c53',
      el('div', pages(),
        panel(['What was said', el('small', count ? `${first + 1} to ${last} of ${count}` : 'nothing yet')],
          el('div.talk', ...session.entries.flatMap((entry, index) => [...decisionsAt(first + index), drawEntry(id, entry, first + index)]), ...decisionsAt(count))),
        pages()),
      panel('About it', pad(el('div.named', avatar(person || '?', 'large'), el('div', el('b', { dir: 'auto' }, profile), el('p.soft.small', chatOf(session, names)))),
        facts([
          ['Network', session.platform], ['Model', session.settings.model], ['Entries', count],
          ['Tokens', usage.calls ? `${usage.input_tokens} in, ${usage.output_tokens} out, ${counted(usage.calls, 'call')} of ${usage.model}` : ''], ['Session', el('span.mono', session.session_id)],
        ]), drawDelete(session)))))
}

const STOPPED = { running: 'Stopped.', waiting: 'Its question is withdrawn.', nothing: 'Nothing runs there.' }

function drawActs(session) {
  const params = { session: session.session_id }
  const save = (format, ending) => ({
    label: ending === 'md' ? 'Export' : 'JSON', verb: 'sessions.export', params: { ...params, format }, said: found => saveAs(`${session.session_id}.${ending}`, found.text),
  })
  return actions(`session ${session.session_id}`, [save('markdown', 'md'), save('json', 'json'), { label: 'Stop', verb: 'sessions.stop', params, said: found => STOPPED[found.stopped] }])
}

function drawDelete(session) {
  const forgotten = async () => {
    location.hash = '#conversations'
    await new Promise(resolve => window.addEventListener('hashchange', resolve, { once: true }))  // a room forgets outcomes of the one before
    return 'The conversation is deleted.'
  }
  return actions(`delete ${session.session_id}`, [{ label: 'Delete', verb: 'sessions.delete', params: { session: session.session_id }, sure: 'It is deleted for good, also from the search.', said: forgotten }])
}

const DECIDED = { deny: 'blocked', end: 'ended the turn', retry: 'had it done again', change: 'changed', ask: 'asked' }

const drawDecision = one => el('p.decided', mark(one.decision === 'deny' ? 'bad' : 'wait', ''),
  el('span', 'hook ', el('a', { href: roomOf('hooks', one.hook) }, one.hook), ` ${DECIDED[one.decision] ?? one.decision} at ${one.event}${one.reason && `: ${one.reason}`}`))

function drawEntry(id, entry, at) {
  const name = entry.role === 'tool' ? `tool ${entry.name}${entry.error ? ', failed' : ''}` : entry.role
  const calls = entry.tool_calls.map(call => el('pre', { tabIndex: 0, textContent: `${call.name} ${written(call.args)}` }))
  const text = el('p.body', { dir: 'auto', textContent: entry.content })
  const showWhole = async event => {
    const button = event.currentTarget
    const whole = await ask('sessions.show', { session: id, before: at + 1, limit: 1, longest: MOST })
    button.previousElementSibling.replaceWith(el('pre', { tabIndex: 0, className: 'whole', textContent: whole.entries[0].content }))
    button.remove()
  }
  const more = entry.cut ? [el('button', { type: 'button', className: 'btn', onclick: showWhole }, entry.cut > MOST ? `more of it; all ${bytes(entry.cut)} by an export` : `all of it, ${bytes(entry.cut)}`)] : []
  return el('article', { className: `said ${entry.error ? 'failed' : entry.role}` },
    el('h3', { textContent: name }), ...(entry.content ? [text] : []), ...more, ...calls)
}

const written = args => (typeof args === 'string' ? args : JSON.stringify(args, null, 1))
