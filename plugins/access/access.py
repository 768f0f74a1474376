"""The API keys and certificates that the settings name."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from plugins.access import api_keys, tls
from plugins.access.api_keys import KeyStore
from plugins.access.callers import KeyHolders
from plugins.access.watched_files import ReloadableFiles
from service.security.access import Access
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics


def access(settings: Settings, metrics: Metrics) -> Access:
    """Read the files of the settings.

    Raises:
        SettingsError: a certificate, a key or the file of API keys is unusable.
    """
    certificates, keys = tls.certificates(settings, metrics), _keys(settings, metrics)

    @asynccontextmanager
    async def watched() -> AsyncIterator[None]:
        async with AsyncExitStack() as open_:
            for files in (certificates, keys):
                if files is not None:
                    await open_.enter_async_context(files.watched())
            yield

    callers = None if keys is None else KeyHolders(metrics, lambda: keys.value)
    return Access(callers, certificates, keys is not None or bool(settings.tls_client_ca), watched)


def _keys(settings: Settings, metrics: Metrics) -> ReloadableFiles[KeyStore] | None:
    if not settings.api_keys:
        return None
    path = Path(settings.api_keys)
    try:
        return ReloadableFiles("api_keys", [path], lambda contents: api_keys.parse(contents[0], str(path)), metrics)
    except SettingsError as error:
        raise SettingsError(f"--api-keys: {error}") from error
