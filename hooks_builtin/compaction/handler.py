"""Over the budget, the middle of the history becomes a summary, which is kept with the conversation and grows."""

import json
import os
import urllib.request

ASK = "Sum up this part of a conversation in at most 200 words. Keep names, numbers, decisions and open questions."


def handle(event_type, context):
    options, messages = context.options, context["messages"]
    first, last = options["keep_first"], options["keep_last"]
    if sum(len(message["content"]) for message in messages) // 4 <= options["max_context_tokens"]:
        return
    end = max(len(messages) - last, first)
    while end < len(messages) and messages[end]["role"] == "tool":  # a result stays with its call
        end += 1
    while first < end and messages[first]["role"] == "tool":
        first += 1
    known = context.session.get("compaction") or {"upto": first, "text": ""}
    if known["upto"] > end:
        known = {"upto": first, "text": ""}
    fresh = messages[known["upto"] : end]
    if fresh:
        known = {"upto": end, "text": summary(options, known["text"], fresh)}
        context.session["compaction"] = known
    if known["text"]:
        note = {"role": "system", "content": f"Earlier in this conversation: {known['text']}"}
        context["messages"] = [*messages[:first], note, *messages[end:]]


def summary(options, before, messages):
    lines = [f"{message['role']}: {message['content']}" for message in messages if message["content"]]
    if not options["url"]:
        extract = "\n".join(line if len(line) <= 160 else line[:160] + "..." for line in lines)
        return f"{before}\n{extract}".strip()[-4000:]
    text = "\n".join([before, *lines])
    asked = [{"role": "system", "content": ASK}, {"role": "user", "content": text}]
    key = os.path.expandvars("$COMPACTION_API_KEY")
    headers = {"Content-Type": "application/json"} | ({} if key.startswith("$") else {"Authorization": f"Bearer {key}"})
    body = json.dumps({"model": options["model"], "messages": asked}).encode()
    # The address is the operator's own, from the configuration.
    request = urllib.request.Request(options["url"].rstrip("/") + "/chat/completions", body, headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=50) as response:  # noqa: S310
        return json.load(response)["choices"][0]["message"]["content"].strip()
