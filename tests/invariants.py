"""What must hold between two steps, as a pure function from a snapshot to violations; every test checks it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plugins.beam.search import Search
from plugins.gpu.device import DeviceSlots
from service.decode import Decode, DecodeStatus
from service.engine.batch import DecodeBatch
from service.engine.rows import Forced
from service.engine.step import Row
from service.runtime.slots import SlotTable


@dataclass(frozen=True)
class Snapshot:
    """One decode batch between two steps.

    Attributes:
        active: the segments, in slot order.
        slots: slots there are.
        lengths: tokens in the cache, a slot, of the active slots.
        decoded: the tokens decoded, a slot, of the active slots.
        memory_lengths: source tokens, a slot, of the active slots.
        target_capacity: tokens a cache holds.
    """

    active: list[Decode]
    slots: int
    lengths: list[int]
    decoded: list[Sequence[int]]
    memory_lengths: list[int]
    target_capacity: int


def snapshot_of(batch: DecodeBatch) -> Snapshot:
    """Copy the state of a batch."""
    rows, table = batch.runner.scheduler.active, batch.runner.table
    assert isinstance(table, SlotTable | DeviceSlots)
    lengths, memory_lengths = lengths_of(table, len(rows))
    return Snapshot(
        active=[row.decode for row in rows],
        slots=batch.runner.slots,
        lengths=lengths,
        decoded=[ids_in(row, slot) for slot, row in enumerate(rows)],
        memory_lengths=memory_lengths,
        target_capacity=int(table.target_capacity),
    )


def lengths_of(table: SlotTable | DeviceSlots, slots: int) -> tuple[list[int], list[int]]:
    """Count tokens in the cache and source tokens, of each of the first slots."""
    rows = table.rows_of[:slots] if isinstance(table, DeviceSlots) else slice(slots)
    return table.rows.lengths[rows].tolist(), table.rows.memory_lengths[rows].tolist()


def ids_in(row: Row, slot: int) -> Sequence[int]:
    """List the tokens that were decoded in one of the slots of a row."""
    if isinstance(row, Forced):
        return ids_in(row.row, slot)
    if isinstance(row, Search):
        return row.beam.live[row.slots.index(slot)].ids
    return row.decode.target_ids


def violations(snapshot: Snapshot) -> list[str]:
    """List everything that is wrong; empty when all is well."""
    found = []
    if len(snapshot.active) > snapshot.slots:
        found.append(f"{len(snapshot.active)} segments in {snapshot.slots} slots")
    if any(count > decode.slots for decode, count in Counter(snapshot.active).items()):
        found.append("a segment in more slots than it takes")
    rows = zip(snapshot.active, snapshot.lengths, snapshot.decoded, snapshot.memory_lengths, strict=True)
    for slot, (decode, length, decoded, memory_length) in enumerate(rows):
        if decode.status is not DecodeStatus.DECODING:
            found.append(f"slot {slot}: its segment is {decode.status.name}")
        given = len(decode.start_ids[1:]) - max(0, len(decode.forced_ids) - len(decode.prefix_ids))
        if length != given + len(decoded):
            found.append(f"slot {slot}: {length} tokens in the cache, {len(decoded)} decoded, {given} given")
        if length >= snapshot.target_capacity:
            found.append(f"slot {slot}: no room for the next token")
        if memory_length != len(decode.source_ids):
            found.append(f"slot {slot}: memory of {memory_length} tokens for {len(decode.source_ids)}")
    return found
