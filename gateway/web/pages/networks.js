// The chat networks, and the other parts of the gateway: their state, its time and its reason; pause or restart a
// network.

import { actionForm, actions } from './acting.js'
import { ask } from './asking.js'
import { ago, column, dot, el, number, panel, table } from './dom.js'

export const title = 'Networks'

const lightOf = state => ({ up: 'ok', standby: 'off', paused: 'off', stopped: 'off' })[state] ?? 'bad'
const named = (name, state) => el('span', {}, dot(lightOf(state)), name)

export async function show(_rest, asked) {
  const [status, { platforms, off }] = await Promise.all([asked, ask('platform.list')])
  const rows = platforms.map(one => [
    named(one.name, one.state), one.state, one.detail ?? '', ago(one.last_event), ago(one.last_send), ago(one.last_probe), (one.complaints ?? []).join('\n'),
    drawSteering(one),
  ])
  const heads = [column('network'), column('state'), column(''), number('last event'), number('last send'), number('last probe'), column('complains'), column('')]
  const parts = status.parts.map(part => [named(part.name, part.state), part.state, part.detail ?? '', part.restarts || '', ago(part.since)])
  return el('div', {},
    panel('Networks', table(heads, rows, 'No network is connected: hermes-gateway setup NETWORK')),
    ...drawNodes(status.nodes),
    drawSend(),
    ...drawWebhooks(status.webhooks),
    panel('Off', table([column('network'), column('why')], Object.entries(off), 'None.')),
    panel('Parts', table([column('part'), column('state'), column(''), number('restarts'), number('since')], parts, '')))
}

// The gateways that share the journal, this one first.
function drawNodes(nodes) {
  if (nodes.length < 2) return []
  const rows = nodes.map(one => [one.name, ago(one.since), one.roles.join(', '), one.alone.join(', ')])
  return [panel('Nodes', table([column('node'), number('since'), column('roles'), column('it alone does')], rows, ''))]
}

// The webhooks, which other programs call; `trouble` is the reason why one cannot be called.
function drawWebhooks(webhooks) {
  if (!webhooks.length) return []
  const heads = [column('webhook'), column('address'), column('proved by'), column('from'), number('taken'), number('known already'), number('refused'), column('')]
  const rows = webhooks.map(one => [
    named(one.name, one.trouble == null ? 'stopped' : one.trouble ? 'down' : 'up'), one.url, one.verify, one.origin, one.taken, one.known || '', one.refused || '',
    [one.trouble, one.remark, one.refusal && `last refused ${ago(one.refused_at)}: ${one.refusal}`].filter(Boolean).join('\n'),
  ])
  return [panel('Webhooks', table(heads, rows, ''))]
}

function drawSteering({ name, state }) {
  const steer = (label, verb) => ({ label, verb: 'platform.steer', params: { verb, name }, said: done => done.did })
  const probe = { label: 'Probe', verb: 'platform.probe', params: { name }, said: done => `it answered within ${Math.round(done.seconds * 1000)} ms` }
  return actions(`network ${name}`, [state === 'paused' ? steer('Resume', 'resume') : steer('Pause', 'pause'), steer('Restart', 'restart'), probe])
}

function drawSend() {
  const field = (name, label) => el('input', { name, required: true, 'aria-label': label, placeholder: label, autocomplete: 'off', 'data-key': name })
  const form = actionForm('send', 'Send', 'chat.send', [field('to', 'To, such as telegram or telegram:123'), field('text', 'Text')],
    form => ({ to: form.get('to').trim(), text: form.get('text'), wait: 5 }), done => (done.state === 'sent' ? 'it has arrived' : 'it is owed, and goes out as soon as it can'))
  return form && panel('Send a message', form)
}
