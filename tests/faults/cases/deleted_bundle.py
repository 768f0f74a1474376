"""A bundle that is deleted while it is served."""

import shutil

from tests.faults.arena import Arena
from tests.faults.fault import Fault


class DeletedBundle(Fault):
    name = "deleted-bundle"
    side = "server"
    promise = (
        "A model goes on being served when its files are gone; a restart exits 2 with one line on what is missing."
    )
    restarts = True

    def inject(self, arena: Arena) -> None:
        server = arena.server
        shutil.rmtree(server.bundle)
        arena.see("bundles deleted", not server.bundle.exists())
        arena.load.more(50)
        arena.hold(server.stop() == 0, "exit code 0")
        server.launch()
        code = server.exit_code()
        words = [line for line in server.log if not line.startswith("{")]
        server.restore_bundle()
        arena.hold(code == 2, f"exit code 2 without a bundle: {code}")
        arena.hold(len(words) == 1 and str(server.bundle.parent) in words[0], f"one line on what is missing: {words}")
        arena.over()
        server.start()
