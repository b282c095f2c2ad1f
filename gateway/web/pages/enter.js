// The login by a button of a chat network: the data that the network added to the address becomes a link.

const said = document.getElementById('said')
const from = location.pathname.replace('/enter/', '')
const added = location.hash.slice(1)
history.replaceState(null, '', location.pathname)  // it works once, and need not stay in the address

try {
  if (!added || !/^[a-z0-9_-]+(\/[a-z0-9_-]+)?$/i.test(from)) throw new Error('open this by the button in the chat')
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await fetch(`/networks/${from}+page`, { method: 'POST', body: added, headers })
  const text = (await answer.text()).trim()
  if (answer.status === 401) throw new Error('this was not taken: close it, and press the button again')
  if (!answer.ok) throw new Error(text)
  location.replace(`/open${new URL(text).search}`)
} catch (error) {
  said.textContent = error.message
}
