// The login by a link: its code becomes a login. Only the answer has the login's secret, and this origin keeps it: a
// server on another port of the host, which would get a cookie, gets nothing.

const said = document.getElementById('said')
const code = new URL(document.URL).searchParams.get('code') ?? ''
history.replaceState(null, '', '/open')  // it works once, and need not stay in the address

try {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch('/open', { method: 'POST', headers, body: JSON.stringify({ code }) })
  if (!answer.ok) throw new Error((await answer.text()).trim())
  localStorage.setItem('hermes-gateway-login', (await answer.json()).login)
  location.replace('/')
} catch (error) {
  said.textContent = error instanceof TypeError ? 'the gateway did not answer: open the link again' : error.message
}
