"""A server that dies by SIGKILL under load, and is started again."""

import signal

from tests.faults.arena import Arena
from tests.faults.fault import Fault


class KilledServer(Fault):
    name = "killed-server"
    side = "server"
    promise = "Clients of a server that is killed see UNAVAILABLE, try again, and get everything once it is back."
    restarts = True

    def inject(self, arena: Arena) -> None:
        server = arena.server
        retried = arena.load.books.figures().retried.total()
        code = server.kill()
        arena.see("servers ended by SIGKILL", code == -signal.SIGKILL)
        arena.over()
        server.start()
        arena.load.more(20)
        arena.see("tries made again", arena.load.books.figures().retried.total() - retried)
