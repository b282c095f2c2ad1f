"""A model is made when it is first used, and hooks have their say in it."""

import pytest

from gateway.agent.models.factory import LazyModel, ModelSpec, lazy_model, make_model
from gateway.agent.models.fallback import RetryPolicy
from gateway.agent.models.script import script
from gateway.backoff import Backoff
from gateway.errors import ConfigError

DEMO = ModelSpec("main", "demo", "demo", kwargs={"delay": 0})


@pytest.fixture
def lazy(stage):
    def make(spec=DEMO):
        return LazyModel(spec, stage.run, stage.wants)

    return make


async def play(stage, model, text="hello"):
    return await stage.play(stage.agent(model=model), text)


@pytest.mark.row("SHE-27")
async def test_what_a_model_is_made_with_can_be_changed(stage, lazy):
    seeds = iter(range(20))

    @stage.on("model:create")
    def change(event):
        assert (event["llm_id"], event["provider"], event["model"]) == ("main", "demo", "demo")
        event["kwargs"] = {**event["kwargs"], "seed": next(seeds, 0)}

    assert len({(await play(stage, lazy())).reply for _ in range(20)}) > 1  # by the seed it greets otherwise
    assert stage.names[0] == "agent:start"
    await play(stage, lazy(ModelSpec("x", "demo", "demo", api_key="secret", kwargs={"delay": 0})))
    assert "secret" not in str(stage.fired)


@pytest.mark.row("SHE-27")
async def test_the_models_name_can_be_changed(stage, lazy, endpoint):
    endpoint.stream('{"choices": [{"delta": {"content": "here"}, "finish_reason": "stop"}]}', "[DONE]")
    stage.on("model:create")(lambda event: {"model": "other"})
    model = lazy(ModelSpec("s", "openai", "one", kwargs={"base_url": endpoint.url}))
    assert (await play(stage, model)).reply == "here"
    assert [body["model"] for _, body in endpoint.requests] == ["other"]
    await model.aclose()


@pytest.mark.row("SHE-28")
async def test_a_ready_model_is_used_as_it_is(stage, lazy):
    stage.on("model:create")(lambda event: {"result": script("mine")})
    assert (await play(stage, lazy())).reply == "mine"


@pytest.mark.row("SHE-29")
@pytest.mark.row("SHE-30")
async def test_a_factory_is_called_at_the_first_use_once_and_again_only_after_it_failed(stage, lazy):
    made = []

    def factory():
        made.append(1)
        if len(made) == 1:
            raise OSError("not yet")
        return script("first", "second")

    stage.on("model:create")(lambda event: {"result": factory})
    model = lazy()
    assert "main" in repr(model)
    assert (model.name, made) == ("demo", [])
    assert "not yet" in (await play(stage, model)).error
    assert [(await play(stage, model)).reply for _ in range(2)] == ["first", "second"]
    assert len(made) == 2


async def test_what_is_no_model_is_an_error_of_the_turn(stage, lazy):
    stage.on("model:create")(lambda event: {"result": 42})
    assert "cannot stream" in (await play(stage, lazy())).error


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ModelSpec("m", "opnai", "x"), "there is no provider 'opnai', only openai, anthropic, demo"),
        (ModelSpec("m", "demo", "x", kwargs={"color": 1}), "cannot be made: .*color"),
    ],
)
def test_a_model_that_cannot_be_made_says_why(spec, words):
    with pytest.raises(ConfigError, match=words):
        make_model(spec, spec.model, dict(spec.kwargs))


@pytest.mark.row("STR-31")
@pytest.mark.parametrize(
    ("kinds", "reply"),
    [
        (["rate", "overload"], "here"),
        (["auth"], "the other"),
        (["network"] * 5, "the other"),
        (["filter"], None),
    ],
)
async def test_a_model_is_tried_again_and_then_the_next_before_the_first_word(stage, kinds, reply):
    model = lazy_model(
        (ModelSpec("a", "demo"), ModelSpec("b", "demo")), stage.run, stage.wants, RetryPolicy(3, Backoff(0.001, 0.01))
    )
    models = iter([script(*({"error": {"kind": kind}} for kind in kinds), "here"), script("the other")])
    stage.on("model:create")(lambda event: {"result": next(models)})
    result = await play(stage, model)
    assert (result.reply if result.status == "ok" else None) == reply


async def test_after_the_first_word_nothing_is_begun_anew(stage):
    model = lazy_model((DEMO,), stage.run, stage.wants)
    cut = script({"text": "half ", "error": {"kind": "network"}}, "whole")
    stage.on("model:create")(lambda event: {"result": cut})
    result = await play(stage, model)
    assert (result.status, stage.streamed, len(cut.requests)) == ("failed", ["half "], 1)


def test_what_an_endpoint_asks_for_is_waited_for_within_reason():
    patience = RetryPolicy(backoff=Backoff(0.5, 30.0, 0.5, 1.0))
    assert 0.25 <= patience.pause_after(1, None) <= 0.5
    assert patience.pause_after(1, 7) == 7
    assert patience.pause_after(1, 3600) == 30
