"""The process of one document, `python -m dragoman_server plugins.documents.child`, on behalf of a server.

The server first sends the file name and the content, and gets a description of the document. Then it sends requests: a
number of texts, `TAKE` with translations, `SPEAK` with the languages, or `WRITE`, which ends the process. All messages
are JSON, except the contents of files.
"""

import json
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dragoman.documents.formats import read_document, say_language
from plugins.documents import frames

MEMORY_BYTES: Final = 512 * 2**20  # of address space; an interpreter with the libraries takes some 60 MiB
CPU_S: Final = 60  # for reading and writing together
MAX_TEXTS: Final = 100_000
EXIT_MEMORY: Final = 3  # the memory limit was reached
TAKE, SPEAK, WRITE = "take", "speak", "write"
_NICE: Final = 10  # beside translating threads, the process gets a tenth of a core


def main() -> None:
    """Serve one document, until it is written or the server closes the connection."""
    _limit()
    with suppress(EOFError, ConnectionError):
        try:
            _serve()
        except MemoryError:
            os._exit(EXIT_MEMORY)  # exits without allocating memory
        except Exception:
            _send(failed=traceback.format_exc())


def _limit() -> None:
    """Set the system limits that protect the server from a document."""
    for which, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    os.nice(_NICE)
    for number in (signal.SIGINT, signal.SIGTERM):  # signals from a terminal or supervisor are handled by the server
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):  # Linux only: when memory is short, this process is killed, not the server
        Path("/proc/self/oom_score_adj").write_text("1000")


def _serve() -> None:
    name, content = _receive().decode(), _receive()
    try:
        document = read_document(name, content)
    except ModuleNotFoundError as error:
        return _send(missing=error.name)
    except ValueError as error:
        return _send(refused=str(error))
    del content
    if len(document.texts) > MAX_TEXTS:
        return _send(refused=f"must have at most {MAX_TEXTS} texts, has {len(document.texts)}")
    _send(protects_placeholders=document.protects_placeholders, languages=document.languages)
    waiting = iter(document.texts)
    translations: list[str | None] = [None] * len(document.texts)
    source = target = ""
    while (asked := json.loads(_receive())) != WRITE:
        if asked == TAKE:
            for number, translation in json.loads(_receive()):
                translations[number] = translation
        elif asked == SPEAK:
            source, target = json.loads(_receive())
        else:
            _send(texts=list(islice(waiting, asked)))
    written = say_language(name, document.write(translations), source, target)
    _send()
    frames.write(sys.stdout.buffer, written)
    sys.stdout.buffer.flush()
    return None


def _receive() -> bytes:
    return frames.read(sys.stdin.buffer)


def _send(**answer: Any) -> None:
    frames.write(sys.stdout.buffer, json.dumps(answer).encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
