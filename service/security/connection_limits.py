"""Limits of connections that gRPC and HTTP share."""

from typing import Final

# Ten round trips of a slow line, but short for an attacker's open connections: for the handshakes of TLS and HTTP/2.
HANDSHAKE_TIMEOUT_S: Final = 10.0
# 8 MiB over a line of 1 Mbit/s. A message that never ends would keep its first part in memory for ever.
ARRIVAL_TIMEOUT_S: Final = 60.0
# For answers still being sent after all calls have ended; a busy machine needs seconds.
STOP_GRACE_S: Final = 5.0
# Headers, or metadata of gRPC, whose hard limit this is: room for a key, trace context and baggage.
MAX_HEAD_BYTES: Final = 16_384
