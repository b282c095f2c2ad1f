"""The pytest plugin that the behaviour suite of networks needs.

A `conftest.py` names it: `pytest_plugins = ["gateway.testing.networks.plugin"]`. A file of tests that imports all of
`gateway.testing.networks.suite` may list in `LEFT_OUT` the tests that cannot hold for its network: the names, under the
reason. A name that is no test fails the run, so that the list does not outlive the suite.
"""

import pytest

# A failed assertion shows its values.
for _suite in ("suite", "suite_groups", "suite_media", "suite_parts"):
    pytest.register_assert_rewrite(f"gateway.testing.networks.{_suite}")

ROW = "row(id): what the test proves, in hermes-gateway's own table"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Choose asyncio, which the gateway and the libraries of networks require."""
    return "asyncio"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", ROW)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that a file leaves out."""
    left_out: list[pytest.Item] = []
    for item in items:
        module = getattr(item, "module", None)
        names = [name for names in getattr(module, "LEFT_OUT", {}).values() for name in names]
        if strange := [name for name in names if not hasattr(module, name)]:
            raise pytest.UsageError(f"{item.path}: LEFT_OUT names what is no test: {', '.join(strange)}")
        if getattr(item, "originalname", item.name) in names:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
