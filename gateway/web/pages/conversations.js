// The conversations, the newest first; a search for words; and the messages of one. The gateway sends them page by
// page.

import { actions } from './acting.js'
import { ask, may } from './asking.js'
import { ago, bytes, column, counted, el, facts, moment, number, pager, panel, searchFor, table } from './dom.js'

export const title = 'Conversations'

const ROWS = 50
const ENTRIES = 60
const LONGEST = 4000  // characters of a text; the rest comes on demand
const MOST = 200_000
const linkTo = (id, params = {}) => {
  const asked = new URLSearchParams(params).toString()
  return `#conversations/${encodeURIComponent(id + (asked && `?${asked}`))}`
}
// A call of a program has its own session, whose name means nothing.
const placeOf = one => {
  const [kind, ...place] = one.session_key.split(':').slice(3)
  return [kind, ...(kind === 'call' ? place.slice(0, 1) : place)].join(' · ')
}
const called = one => one.title || one.first_words || placeOf(one) || one.session_id

function nameOf(one) {
  const name = [called(one).slice(0, 120), ...(called(one) === placeOf(one) ? [] : [' ', el('small', { className: 'soft' }, placeOf(one).slice(0, 120))])]
  return may('sessions.show') ? el('a', { href: linkTo(one.session_id) }, ...name) : el('span', {}, ...name)
}

export async function show(rest) {
  const [id, query] = [rest.split('?', 1)[0], rest.slice(rest.indexOf('?') + 1)]
  const params = new URLSearchParams(rest.includes('?') ? query : '')
  if (id) return showOne(id, Number(params.get('before') ?? -1))
  return params.get('q') ? find(params.get('q'), params.get('after') ?? '') : list(params.get('after') ?? '')
}

const searchWords = query => (may('sessions.search')
  ? [searchFor('Words in conversations', query, words => (words ? linkTo('', { q: words }) : '#conversations'))] : [])

async function list(after) {
  const { sessions, next } = await ask('sessions.list', { limit: ROWS, after })
  const heads = [column('conversation'), column('network'), column('person'), number('turns'), number('last used')]
  const rows = sessions.map(one => [nameOf(one), one.platform, one.user_id, one.turns, ago(one.last_active)])
  return el('div', {}, ...searchWords(''),
    panel('Conversations', table(heads, rows, after ? 'There are no more.' : 'Nobody has said anything yet.')),
    pager([after && ['newest', '#conversations'], next && ['older', linkTo('', { after: next })]]))
}

async function find(query, after) {
  const { hits, next } = await ask('sessions.search', { query, limit: ROWS, after })
  const rows = hits.map(hit => [nameOf(hit), hit.role, ago(hit.at), hit.snippet])
  return el('div', {}, ...searchWords(query),
    panel(['Found: ', query], table([column('conversation'), column('who'), number('when'), column('where')], rows, 'Nothing was found.')),
    pager([['all conversations', '#conversations'], after && ['newest', linkTo('', { q: query })], next && ['older', linkTo('', { q: query, after: next })]]))
}

async function showOne(id, before) {
  const session = await ask('sessions.show', { session: id, before, limit: ENTRIES, longest: LONGEST })
  const { usage, first, count } = session
  const last = first + session.entries.length
  const decisionsAt = at => session.decisions.filter(one => one.entry === at).map(drawDecision)
  const pages = () => pager([
    first > 0 && ['earlier', linkTo(id, { before: first })],
    last < count && ['later', linkTo(id, last + ENTRIES < count ? { before: last + ENTRIES } : {})],
    last < count && ['the end', linkTo(id)],
  ])
  return el('div', {},
    panel(called(session).slice(0, 300), facts([
      ['network', session.platform], ['person', session.user_id], ['began', moment(session.began)], ['last used', moment(session.last_active)],
      ['model', session.settings.model], ['entries', count],
      ['tokens', usage.calls ? `${usage.input_tokens} in, ${usage.output_tokens} out, ${counted(usage.calls, 'call')} of ${usage.model}` : ''],
    ]), drawChoices(session), el('p', {}, el('a', { href: '#conversations' }, 'all conversations'))),
    pages(),
    panel(['What was said', el('small', {}, count ? `${first + 1} to ${last} of ${count}` : 'nothing yet')],
      ...session.entries.flatMap((entry, index) => [...decisionsAt(first + index), drawEntry(id, entry, first + index)]), ...decisionsAt(count)),
    pages())
}

function drawChoices(session) {
  const params = { session: session.session_id }
  const stopped = { running: 'stopped', waiting: 'its question is withdrawn', nothing: 'nothing runs there' }
  const save = (format, ending) => ({
    label: `Export as ${ending === 'md' ? 'Markdown' : 'JSON'}`, verb: 'sessions.export', params: { ...params, format }, said: found => saveAs(`${session.session_id}.${ending}`, found.text),
  })
  const forgotten = async () => {
    location.hash = '#conversations'
    await new Promise(resolve => window.addEventListener('hashchange', resolve, { once: true }))  // a room forgets outcomes of the one before
    return 'forgotten'
  }
  return actions(`session ${session.session_id}`, [
    { label: 'Stop', verb: 'sessions.stop', params, said: found => stopped[found.stopped] },
    save('markdown', 'md'), save('json', 'json'),
    { label: 'Delete', verb: 'sessions.delete', params, sure: 'It is forgotten for good, also by the search.', said: forgotten },
  ])
}

// The name is the id, whose characters are all the gateway's.
function saveAs(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  el('a', { href: address, download: name.replace(/[^\w.-]/g, '_') }).click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
  return `saved as ${name}`
}

const DECIDED = { deny: 'refused', end: 'ended the turn', retry: 'had it done again', change: 'changed', ask: 'asked' }

const drawDecision = one => el('p', { className: `decided ${one.decision}` },
  'hook ', el('a', { href: `#hooks/${encodeURIComponent(one.hook)}` }, one.hook), ` ${DECIDED[one.decision] ?? one.decision} at ${one.event}${one.reason && `: ${one.reason}`}`)

function drawEntry(id, entry, at) {
  const name = entry.role === 'tool' ? `tool ${entry.name}${entry.error ? ', failed' : ''}` : entry.role
  const calls = entry.tool_calls.map(call => el('pre', { tabIndex: 0, textContent: `${call.name} ${written(call.args)}` }))
  const text = el('p', { textContent: entry.content })
  const showWhole = async event => {
    const button = event.currentTarget
    const whole = await ask('sessions.show', { session: id, before: at + 1, limit: 1, longest: MOST })
    button.previousElementSibling.replaceWith(el('pre', { tabIndex: 0, className: 'whole', textContent: whole.entries[0].content }))
    button.remove()
  }
  const more = entry.cut ? [el('button', { type: 'button', onclick: showWhole }, entry.cut > MOST ? `more of it; all ${bytes(entry.cut)} by an export` : `all of it, ${bytes(entry.cut)}`)] : []
  return el('article', { className: `said ${entry.error ? 'failed' : entry.role}` },
    el('h3', { textContent: name }), ...(entry.content ? [text] : []), ...more, ...calls)
}

const written = args => (typeof args === 'string' ? args : JSON.stringify(args, null, 1))
