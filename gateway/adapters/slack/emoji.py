"""Slack's names of the most frequent emoji; other networks send the emoji itself."""

EMOJI = {
    "+1": "👍",
    "thumbsup": "👍",
    "-1": "👎",
    "thumbsdown": "👎",
    "heart": "❤️",
    "tada": "🎉",
    "fire": "🔥",
    "eyes": "👀",
    "rocket": "🚀",
    "100": "💯",
    "pray": "🙏",
    "clap": "👏",
    "joy": "😂",
    "smile": "😄",
    "cry": "😢",
    "thinking_face": "🤔",
    "white_check_mark": "✅",
    "heavy_check_mark": "✔️",
    "x": "❌",
    "warning": "⚠️",
    "question": "❓",
    "wave": "👋",
    "ok_hand": "👌",
    "raised_hands": "🙌",
    "hourglass_flowing_sand": "⏳",
}


def emoji_of(name: str) -> str:
    """Return the emoji without its skin tone; `:name:` for an unknown one, such as one of the workspace's own."""
    plain = name.partition("::")[0]
    return EMOJI.get(plain, f":{plain}:")
