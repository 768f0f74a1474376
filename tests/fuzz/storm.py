"""`make fuzz`: 100,000 odd messages to a real server, many at a time; the seed repeats them.

python -m tests.fuzz.storm --messages 100000 --seed 1
"""

import argparse
import random
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tests.fuzz.calls import draw
from tests.fuzz.rest import check_at_rest
from tests.fuzz.sender import Sender, sending
from tests.server_process import ServerProcess

_CALLS_AT_A_TIME = 32


def storm(address: str, seed: int, messages: int) -> Sender:
    """Sends calls until they hold so many messages.

    Raises:
        AssertionError: one did not end as it should.
    """
    source = random.Random(seed)
    left, shown_s = messages, time.monotonic()

    with sending(address) as sender, ThreadPoolExecutor(_CALLS_AT_A_TIME) as pool:
        running: set[Future[None]] = set()
        while left > 0:
            call = draw(source)
            left -= len(call.messages)
            running.add(pool.submit(sender.send, call))
            if len(running) == 2 * _CALLS_AT_A_TIME:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            if time.monotonic() > shown_s + 10:
                shown_s = time.monotonic()
                print(f"{messages - left} of {messages} messages", file=sys.stderr, flush=True)
        for future in running:
            future.result()
    return sender


def main() -> int:
    """Prints what came of it; 1 where the server did not behave."""
    parser = argparse.ArgumentParser("tests.fuzz.storm", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    # Short translations: noise seldom ends by itself, and it is not the decoder that is tried here.
    server = ServerProcess(("--max-target-factor=0.5", "--max-target-offset=4"))
    try:
        server.wait_until_serving()
        started_s = time.monotonic()
        sender = storm(server.address, options.seed, options.messages)
        duration_s = time.monotonic() - started_s
        check_at_rest(server)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0, server.log[-3:]
    finally:
        server.close()
    for (method, code), count in sorted(sender.outcomes.items()):
        print(f"{method:22} {code:20} {count:>8}")
    print(
        f"{options.messages} messages in {sum(sender.outcomes.values())} calls, {duration_s:.0f} s: all as they should"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
