"""The fair queue of segments: clients take turns, and bulk segments wait for interactive segments.

Clients of one priority take turns by deficit round robin, in source tokens (M. Shreedhar and G. Varghese, "Efficient
Fair Queuing Using Deficit Round-Robin", SIGCOMM 1995): a turn is worth `QUANTUM` tokens. Where the next segment costs
more, the rest of the turn is kept for the next turn. So a new client waits for one turn of each other client, however
much each of them has waiting, and each segment costs the same few operations.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from service.decode import Decode
from service.options import Priority

# Source tokens of one turn: two or three sentences.
QUANTUM: Final = 32
# Waiting bulk segments get at least one of this number of tokens; else interactive segments would starve them.
BULK_SHARE: Final = 10
# With more clients than this, the tokens ahead of a client are bounded, not summed: each request computes them.
_SUMMED: Final = 64


class Load(NamedTuple):
    """The size of waiting segments.

    Attributes:
        source_tokens: source tokens of all segments; a segment counts once for each slot that it takes.
        text_bytes: bytes of text of all segments, in UTF-8.
    """

    source_tokens: int = 0
    text_bytes: int = 0

    @classmethod
    def of(cls, decodes: Sequence[Decode]) -> "Load":
        """Count the load of some segments."""
        return cls(sum([decode.cost for decode in decodes]), sum([decode.text_bytes for decode in decodes]))

    def plus(self, other: "Load") -> "Load":
        """Add another load."""
        return Load(self.source_tokens + other.source_tokens, self.text_bytes + other.text_bytes)


@dataclass(slots=True, eq=False)
class _Flow:
    """The segments of one client, in order of arrival.

    Attributes:
        segments: each with the source tokens that had arrived before it.
        credit: source tokens that the client may still have in this turn; below 0 after segments out of turn.
        arrived: source tokens of all segments that ever arrived.
    """

    # An OrderedDict: a plain dict finds its first key by passing over all keys that were removed before.
    segments: OrderedDict[Decode, int] = field(default_factory=OrderedDict)
    credit: int = QUANTUM
    source_tokens: int = 0
    text_bytes: int = 0
    arrived: int = 0

    def ahead_of(self, decode: Decode) -> int:
        """Count the source tokens before a segment, minus the tokens that were behind it and have been withdrawn."""
        return max(0, self.segments[decode] - (self.arrived - self.source_tokens))


@dataclass(slots=True, eq=False)
class _Ring:
    """The clients of one priority; the client whose turn it is comes first."""

    flows: OrderedDict[str, _Flow] = field(default_factory=OrderedDict)
    source_tokens: int = 0
    text_bytes: int = 0

    def next(self) -> Decode:
        """Find the segment whose turn it is, and pass the turn on where the credit of a client is used up."""
        while True:
            client, flow = next(iter(self.flows.items()))
            decode = next(iter(flow.segments))
            if decode.cost <= flow.credit:
                return decode
            flow.credit += QUANTUM
            self.flows.move_to_end(client)

    def in_turn(self, client: str, source_tokens: int) -> int:
        """Count the tokens that others take while a client takes `source_tokens`; over 64 clients, an upper bound."""
        own = self.flows.get(client)
        others = self.source_tokens - (own.source_tokens if own else 0)
        count = len(self.flows) - (own is not None)
        bound = min(others, count * source_tokens)
        if count < 2 or count > _SUMMED or others <= source_tokens:
            return bound
        return sum(min(flow.source_tokens, source_tokens) for flow in self.flows.values() if flow is not own)


class FairQueue:
    """The waiting segments, in the order in which they are to be taken; for one thread at a time.

    While a segment is in the queue, only `promote` changes its client and priority.

    Attributes:
        slots: slots that the segments will take.
    """

    def __init__(self) -> None:
        self._rings = tuple(_Ring() for _ in Priority)
        self._length = 0
        self.slots = 0
        self._owed = 0  # interactive tokens taken while bulk segments waited, less `BULK_SHARE - 1` for each bulk token

    def __len__(self) -> int:
        return self._length

    def __contains__(self, decode: Decode) -> bool:
        flow = self._rings[decode.priority].flows.get(decode.client)
        return flow is not None and decode in flow.segments

    @property
    def clients(self) -> int:
        """Number of clients with waiting segments; a client with segments of both priorities counts twice."""
        interactive, bulk = self._rings
        return len(interactive.flows) + len(bulk.flows)

    @property
    def load(self) -> Load:
        """The size of all segments."""
        interactive, bulk = self._rings
        return Load(interactive.source_tokens + bulk.source_tokens, interactive.text_bytes + bulk.text_bytes)

    def load_of(self, client: str, priority: Priority) -> Load:
        """Count the waiting load of one client at one priority."""
        flow = self._rings[priority].flows.get(client)
        return Load() if flow is None else Load(flow.source_tokens, flow.text_bytes)

    def loads_but(self, client: str, priority: Priority) -> list[Load]:
        """Count the waiting load of each client and priority, except one."""
        return [
            Load(flow.source_tokens, flow.text_bytes)
            for each, ring in zip(Priority, self._rings, strict=True)
            for name, flow in ring.flows.items()
            if (name, each) != (client, priority)
        ]

    def source_tokens_of(self, priority: Priority) -> int:
        """Count the source tokens that wait at one priority."""
        return self._rings[priority].source_tokens

    def ahead_of(self, client: str, priority: Priority, source_tokens: int) -> int:
        """Count the tokens that will be taken before a client has got `source_tokens` more, without these."""
        interactive, bulk = self._rings
        own = self.load_of(client, priority).source_tokens
        ahead = own + self._rings[priority].in_turn(client, own + source_tokens)
        if priority is Priority.BULK:
            return ahead + min(interactive.source_tokens, (ahead + source_tokens) * (BULK_SHARE - 1))
        return ahead + min(bulk.source_tokens, (ahead + source_tokens) // (BULK_SHARE - 1))

    def push(self, decodes: Iterable[Decode]) -> None:
        """Queue segments, each behind the earlier segments of its client."""
        for decode in decodes:
            ring = self._rings[decode.priority]
            flow = ring.flows.get(decode.client)
            if flow is None:
                flow = ring.flows[decode.client] = _Flow()
            flow.segments[decode] = flow.arrived
            flow.arrived += decode.cost
            for holder in (flow, ring):
                holder.source_tokens += decode.cost
                holder.text_bytes += decode.text_bytes
            self.slots += decode.slots
            self._length += 1

    def remove(self, decode: Decode) -> None:
        """Remove a segment, and charge no client for it."""
        ring = self._rings[decode.priority]
        flow = ring.flows[decode.client]
        del flow.segments[decode]
        if not flow.segments:
            del ring.flows[decode.client]
        for holder in (flow, ring):
            holder.source_tokens -= decode.cost
            holder.text_bytes -= decode.text_bytes
        self.slots -= decode.slots
        self._length -= 1

    def take(self, slots: int, source_tokens: int | None = None, *, room: int | None = None) -> list[Decode]:
        """Remove the segments whose turn it is.

        Args:
            slots: slots that the segments are to take; fewer where there are no more segments.
            source_tokens: most source tokens of the segments, each counted once; the first segment may have more.
            room: most slots that they may take, so that a segment of several slots has its turn; None: `slots`. No
                segment passes one that does not fit.
        """
        taken: list[Decode] = []
        room = slots if room is None else room
        while slots > 0 and self._length:
            decode = self._turn().next()
            if decode.slots > room:
                break
            if source_tokens is not None:
                if taken and source_tokens < len(decode.source_ids):
                    break
                source_tokens -= len(decode.source_ids)
            self._give(decode)
            slots -= decode.slots
            room -= decode.slots
            taken.append(decode)
        return taken

    def take_new(self, count: int, other: "FairQueue") -> list[Decode]:
        """Remove segments of the first priority that waits: one of each client that has none in another queue.

        The client that waits longest for a turn comes first, and is charged in its next turn. Interactive segments
        count for the share of bulk segments here too.
        """
        if not self._length:
            return []
        priority = Priority.INTERACTIVE if self._rings[Priority.INTERACTIVE].flows else Priority.BULK
        ring, known = self._rings[priority], other._rings[priority].flows  # noqa: SLF001  (of the same class)
        # `count` new clients are among these even if all known clients come first.
        first = islice(ring.flows.items(), count + len(known))
        taken = [next(iter(flow.segments)) for client, flow in first if client not in known][:count]
        for decode in taken:
            self._give(decode)
        return taken

    def clear(self) -> list[Decode]:
        """Remove all segments; gives them."""
        flows = chain.from_iterable(ring.flows.values() for ring in self._rings)
        decodes = [decode for flow in flows for decode in flow.segments]
        self._rings, self._length, self.slots, self._owed = tuple(_Ring() for _ in Priority), 0, 0, 0
        return decodes

    def promote(self, decode: Decode, client: str, priority: Priority) -> None:
        """Queue a segment under another client or priority, if it waits and its turn comes sooner there."""
        if decode in self and self._is_sooner(decode, client, priority):
            self.remove(decode)
            decode.client, decode.priority = client, priority
            self.push([decode])

    def _is_sooner(self, decode: Decode, client: str, priority: Priority) -> bool:
        if priority != decode.priority:
            return priority < decode.priority
        flow = self._rings[priority].flows[decode.client]
        return client != decode.client and self.load_of(client, priority).source_tokens < flow.ahead_of(decode)

    def _turn(self) -> _Ring:
        """Choose the priority whose turn it is."""
        interactive, bulk = self._rings
        if not bulk.flows:
            return interactive
        due = not interactive.flows or self._owed >= (BULK_SHARE - 1) * bulk.next().cost
        return bulk if due else interactive

    def _give(self, decode: Decode) -> None:
        """Remove a segment, and charge its client; while bulk segments wait, interactive tokens add to `_owed`."""
        self._rings[decode.priority].flows[decode.client].credit -= decode.cost
        self.remove(decode)
        if not self._rings[Priority.BULK].flows:
            self._owed = 0
        elif decode.priority is Priority.BULK:
            self._owed = max(0, self._owed - (BULK_SHARE - 1) * decode.cost)
        else:
            self._owed += decode.cost
