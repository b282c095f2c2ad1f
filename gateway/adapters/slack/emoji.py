"""Slack's names of the signs that people react with most; other networks send the sign itself."""

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
    """The sign, without a tone of skin; `:name:` for those that only this workspace or nobody here knows."""
    plain = name.partition("::")[0]
    return EMOJI.get(plain, f":{plain}:")
