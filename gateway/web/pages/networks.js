// The chat networks: their state, its time and its reason; pause, resume or restart one. Below them are webhooks, other
// gateways on the journal, and the internal parts, which are one line while they are up.

import { actionForm, actions } from './acting.js'
import { ask } from './asking.js'
import { ago, column, command, counted, el, fieldOf, fold, head, named, number, pad, panel, stateOf, table } from './dom.js'
import { readDay } from './figures.js'
import { proposal } from './proposals.js'
import { mark } from './signs.js'

export const title = 'Networks'

export const markOf = state => ({ up: 'ok', standby: 'off', paused: 'paused', stopped: 'off' })[state] ?? 'bad'

export async function show(_rest, asked) {
  const [status, { platforms, off }, day] = await Promise.all([asked, ask('platform.list'), readDay()])
  const rows = platforms.map(one => [
    named(mark(markOf(one.state)), one.name, ''),
    el('span', one.state, ...[one.detail, ...(one.complaints ?? [])].filter(Boolean).map(text => el('span.sub', ` ${text}`))),
    day ? day.messages(one.name).toLocaleString() : '', status.backlog.replies[one.name] || '', ago(one.last_event), ago(one.last_send), drawSteering(one),
  ])
  const heads = [column('Network'), column('State'), number('Messages, 24 h', 'off-phone'), number('Waiting to be sent', 'off-phone'), number('Last event', 'off-phone broad'), number('Last send', 'off-phone broad'), column('', 'full')]
  const up = platforms.filter(one => one.state === 'up').length
  const unused = Object.entries(off).map(([name, why]) => [name, why, el('div.act', ...drawConnect(name))])
  return el('div',
    head(title, { facts: [platforms.length ? `${up} of ${platforms.length} up` : 'none connected'] }),
    panel('', table(heads, rows, 'No network is connected.'), ...(platforms.length ? [] : [pad(command('setup telegram'))])),
    ...drawSend(), ...drawNodes(status.nodes), ...drawWebhooks(status.webhooks ?? []),
    ...(unused.length ? [panel('Off', table([column('Network'), column('Why', 'soft'), column('', 'num')], unused, ''))] : []),
    drawParts(status.parts))
}

const SECRETS = { telegram: ['token'], discord: ['token'], slack: ['bot_token', 'app_token'] }
const drawConnect = name => (SECRETS[name]
  ? proposal('Connect', { title: `Connect ${name}`, kind: 'network', name, fields: SECRETS[name].map(one => ({ name: one, label: one.replace('_', ' '), isSecret: true })) }) : [])

function drawParts(parts) {
  const ill = parts.filter(part => !['up', 'standby', 'paused'].includes(part.state))
  const rows = [...ill, ...parts.filter(part => !ill.includes(part))].map(part => [named(mark(markOf(part.state)), part.name, part.detail ?? ''), part.state, part.restarts || '', ago(part.since)])
  const said = ill.length ? `${ill.length} of ${counted(parts.length, 'internal part')} not up` : `All ${parts.length} internal parts are up`
  const drawn = fold(stateOf(ill.length ? 'bad' : 'ok', said), table([column('Part'), column('State'), number('Restarts', 'off-phone'), number('Since', 'off-phone')], rows, ''))
  drawn.open = ill.length > 0
  return panel('', drawn)
}

// The gateways that share the journal, this one first.
function drawNodes(nodes) {
  if (nodes.length < 2) return []
  const rows = nodes.map(one => [one.name, ago(one.since), one.roles.join(', '), one.alone.join(', ')])
  return [panel('Nodes', table([column('Node'), number('Since'), column('Roles', 'full'), column('It alone does', 'full')], rows, ''))]
}

// The webhooks, which other programs call; `trouble` is the reason why one cannot be called.
function drawWebhooks(webhooks) {
  if (!webhooks.length) return []
  const heads = [column('Webhook'), column('Proved by'), column('From', 'off-phone'), number('Taken'), number('Known already', 'off-phone'), number('Refused', 'off-phone'), column('', 'full')]
  const rows = webhooks.map(one => [
    named(mark(one.trouble == null ? 'off' : one.trouble ? 'bad' : 'ok'), one.name, one.url), one.verify, one.origin, one.taken, one.known || '', one.refused || '',
    el('span', ...[one.trouble, one.remark].filter(Boolean).map(text => `${text} `), ...(one.refusal ? ['last refused ', ago(one.refused_at), `: ${one.refusal}`] : [])),
  ])
  return [panel('Webhooks', table(heads, rows, ''))]
}

export const steer = (label, verb, name) => ({ label, verb: 'platform.steer', params: { verb, name }, said: done => done.did })

function drawSteering({ name, state }) {
  const probe = { label: 'Test', verb: 'platform.probe', params: { name }, said: done => `It answered within ${Math.round(done.seconds * 1000)} ms.` }
  return actions(`network ${name}`, [state === 'paused' ? steer('Resume', 'resume', name) : steer('Pause', 'pause', name), steer('Restart', 'restart', name), probe])
}

function drawSend() {
  const form = actionForm('send', 'Send', 'chat.send', [fieldOf('to', 'To, such as telegram or telegram:123'), fieldOf('text', 'Text')],
    form => ({ to: form.get('to').trim(), text: form.get('text'), wait: 5 }), done => (done.state === 'sent' ? 'It has arrived.' : 'It is waiting to be sent.'))
  return form ? [panel('Send a message', pad(form))] : []
}
