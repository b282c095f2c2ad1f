"""The simulations of `./x prove jobs`."""

from datetime import UTC, datetime

from tests.simulation.stage import DAY, HOUR, Plan

SPRING, AUTUMN = (datetime(2030, month, day, tzinfo=UTC).timestamp() for month, day in ((3, 5), (10, 24)))
RARE = ("0 2 * * *", "30 2 * * *", "15 3 * * 0", "30 1 * * *", "0 9 * * 1-5", "0 */6 * * *", "every 8h", "@daily", "9d")
WEEKS = Plan(messages=0, jobs=1000, makers=25, chats=1, seconds=28 * DAY, kills=30, jumps=0, times=RARE, rest=2 * HOUR)

PLANS = {
    "days": Plan(),
    "tiny": Plan(messages=50, jobs=20, seconds=HOUR, kills=8, jumps=2),
    "spring": Plan(**{**WEEKS.__dict__, "begun": SPRING}),
    "autumn": Plan(**{**WEEKS.__dict__, "begun": AUTUMN, "seconds": 14 * DAY}),
}
