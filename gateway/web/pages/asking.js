// What the page asks the gateway for: who it is for, verbs that only read, verbs that do something, and the end of the login.
// Each request but that for a file of the page has the login in a header: no browser sends that by itself, anywhere.

const PLACE = 'hermes-gateway-login'
const AGAIN = 2000
let token = localStorage.getItem(PLACE) ?? ''

export const get = (path, options = {}) => fetch(path, { ...options, headers: { ...options.headers, 'X-Token': token } })

// What the gateway says of a refusal; what a proxy writes in its stead is a page of its own, and nothing to read here.
export async function whyNot(answer) {
  const isOurs = answer.headers.get('content-type')?.startsWith('text/plain')
  return isOurs ? (await answer.text()).trim() : `the gateway did not answer: ${answer.status} ${answer.statusText}`.trim()
}

// Who may not look at anything is told why, and nothing else of the page begins.
async function findMe() {
  for (;;) {
    const answer = await get('/api/me').catch(() => null)
    if (answer?.ok) return answer.json()
    if (answer && answer.status < 500) {
      document.getElementById('room').textContent = await whyNot(answer)
      await new Promise(() => {})
    }
    await new Promise(after => setTimeout(after, AGAIN))
  }
}

export const me = await findMe()
if (me.is_named) token = me.person  // a proxy says who it is
const mine = new Set(me.may)
export const may = verb => mine.has(verb)  // does the role of this login reach for it?
export const mayLook = may('status')  // who may not has the chat alone

export async function ask(verb, params = {}) {
  const answer = await get(`/api/${verb}?${new URLSearchParams(params)}`)
  if (!answer.ok) throw new Error(await whyNot(answer))
  return answer.json()
}

export const post = (path, body, type = 'application/octet-stream') =>
  get(path, { method: 'POST', body, headers: { 'Content-Type': type } })

export async function act(verb, params) {
  const answer = await post(`/api/${verb}`, JSON.stringify(params), 'application/json')
  if (!answer.ok) throw new Error(await whyNot(answer))
  return answer.json()
}

export async function endLogin() {
  await post('/end')
  localStorage.removeItem(PLACE)
}
