// The page's requests to the gateway: its person, verbs that only read, verbs that act, and the end of the login. Each
// request except for a file of the page has the login in a header, which no browser sends by itself.

const PLACE = 'hermes-gateway-login'
const AGAIN = 2000
let token = localStorage.getItem(PLACE) ?? ''

export const get = (path, options = {}) => fetch(path, { ...options, headers: { ...options.headers, 'X-Token': token } })

// The gateway's reason for a refusal; an answer by a proxy is a page of its own, without a reason to show.
export async function whyNot(answer) {
  const isOurs = answer.headers.get('content-type')?.startsWith('text/plain')
  return isOurs ? (await answer.text()).trim() : `the gateway did not answer: ${answer.status} ${answer.statusText}`.trim()
}

// A person without access sees the reason, and nothing else of the page starts.
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
if (me.is_named) token = me.person  // a proxy names the person
const mine = new Set(me.may)
export const may = verb => mine.has(verb)  // true if this login's role is enough
export const mayLook = may('status')  // without it, only the chat is shown

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
