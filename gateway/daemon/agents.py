"""From the settings to the agents: who answers whom, with which model and which tools."""

from dataclasses import replace

from gateway.agent import Agent, Limits, Model
from gateway.agent.models.demo import DemoModel
from gateway.agent.models.demo_agent import ListHooks, demo_agent
from gateway.agent.models.script import read_script
from gateway.agent.toolbox.memory import FileMemory
from gateway.config.agents import Agent as AgentSettings
from gateway.config.agents import Model as ModelSettings
from gateway.config.home import Home
from gateway.config.settings import MAIN, Settings
from gateway.errors import ConfigError
from gateway.messages import Message
from gateway.sessions import Session

DEFAULT = "default"


class Agents:
    """The agents and models that the settings name; built at once, so that what is wrong is said at the start."""

    def __init__(self, settings: Settings, home: Home, list_hooks: ListHooks) -> None:
        self._settings = settings
        self._models = {DEFAULT: make_model(settings.model, home)}
        self._models |= {name: make_model(model, home) for name, model in settings.models.items()}
        memory = FileMemory(home.ours / "memory")
        whole = demo_agent(memory=memory, hooks=list_hooks)
        named = {MAIN: settings.main} | dict(settings.agents)
        self._agents = {name: self._make(name, agent, whole) for name, agent in named.items()}

    @property
    def models(self) -> list[str]:
        """The models one can choose, the default first."""
        return list(self._models)

    @property
    def described(self) -> str:
        """The default model, in a word for people."""
        name = self._models[DEFAULT].name
        return f"{name} (built in: no key, no network)" if self._settings.model.provider == "demo" else name

    def choose(self, message: Message, session: Session) -> Agent:
        """The first route that fits says which agent; the session may have a model of its own."""
        at = message.address
        for route in self._settings.routes:
            wanted = ((route.platform, at.platform), (route.chat, at.chat_id), (route.user, message.user_id))
            if all(want in ("", given) for want, given in wanted):
                return self._with_model(self._agents[route.agent], session)
        return self._with_model(self._agents[MAIN], session)

    def _with_model(self, agent: Agent, session: Session) -> Agent:
        model = self._models.get(session.model)
        return replace(agent, model=model) if model else agent

    def _make(self, name: str, agent: AgentSettings, whole: Agent) -> Agent:
        tools = whole.tools if agent.tools is None else tuple(one for one in whole.tools if one.name in agent.tools)
        return replace(
            whole,
            name=name,
            model=self._models[agent.model or DEFAULT],
            instructions=agent.instructions,
            description=agent.description,
            tools=tools,
            limits=Limits(agent.max_hops, agent.max_tokens, agent.max_time),
        )


def make_model(model: ModelSettings, home: Home) -> Model:
    """The model that these settings describe.

    Raises:
        ConfigError: there is no such model here, or its script cannot be read.
    """
    if model.provider == "demo":
        return read_script(home.path(model.script)) if model.script else DemoModel()
    raise ConfigError(f"model.provider: {model.provider} is not offered by this version\nuse provider: demo")
