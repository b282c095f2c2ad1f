"""The rate of calls: a burst passes, then each call has its time, for a chat and for all together."""

import pytest

from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.errors import AdapterError

CHAT = Rate(2, 10.0)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_burst_passes_and_then_one_call_at_its_time() -> None:
    clock = Clock()
    limiter = RateLimiter("telegram", Rate(100, 1.0), clock)
    for _ in range(2):
        await limiter.wait("1", CHAT)
    with pytest.raises(AdapterError) as refused:
        await limiter.wait("1", CHAT)
    assert refused.value.retry_after == pytest.approx(10.0)
    await limiter.wait("2", CHAT)
    clock.now += 10.0
    await limiter.wait("1", CHAT)
    with pytest.raises(AdapterError):
        await limiter.wait("1", CHAT)


async def test_all_chats_together_have_a_rate_too() -> None:
    limiter = RateLimiter("telegram", Rate(3, 20.0), Clock())
    for chat in "123":
        await limiter.wait(chat, CHAT)
    with pytest.raises(AdapterError) as refused:
        await limiter.wait("4", CHAT)
    assert refused.value.retry_after == pytest.approx(20.0)
