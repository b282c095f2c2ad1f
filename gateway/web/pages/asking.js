// What the page asks the gateway for: verbs that only read, verbs that do something, and the end of this login.

const metaOf = name => document.querySelector(`meta[name=${name}]`).content
const token = metaOf('token')
const mine = new Set(metaOf('may').split(' '))

export const may = verb => mine.has(verb)  // does the role of this login reach for it?
export const mayLook = may('status')  // who may not has the chat alone

// What the gateway says of a refusal; what a proxy writes in its stead is a page of its own, and nothing to read here.
export async function whyNot(answer) {
  const isOurs = answer.headers.get('content-type')?.startsWith('text/plain')
  return isOurs ? (await answer.text()).trim() : `the gateway did not answer: ${answer.status} ${answer.statusText}`.trim()
}

export async function ask(verb, params = {}) {
  const answer = await fetch(`/api/${verb}?${new URLSearchParams(params)}`)
  if (!answer.ok) throw new Error(await whyNot(answer))
  return answer.json()
}

export async function act(verb, params) {
  const headers = { 'Content-Type': 'application/json', 'X-Token': token }
  const answer = await fetch(`/api/${verb}`, { method: 'POST', headers, body: JSON.stringify(params) })
  if (!answer.ok) throw new Error(await whyNot(answer))
  return answer.json()
}

export const post = (path, body, type = 'application/octet-stream') =>
  fetch(path, { method: 'POST', body, headers: { 'X-Token': token, 'Content-Type': type } })

export const endLogin = () => fetch('/end', { method: 'POST', headers: { 'X-Token': token } })
