"""The group coordinator: members, generations and committed offsets, by the classic rebalance protocol.

A group goes from Empty to PreparingRebalance when somebody joins, to CompletingRebalance when all have joined, to
Stable when the leader has told who reads what, and back to PreparingRebalance whenever a member comes, goes or
changes its mind. Timers do what time does: end a join, expire a silent member.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from broker.refusal import Refusal
from broker.settings import BrokerSettings

MAX_GROUPS = 100_000
"""More groups than any cluster has: beyond it somebody fills the memory."""


class State(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Committed(NamedTuple):
    """An offset that a group has committed."""

    offset: int
    leader_epoch: int
    metadata: str
    at: int


Partition = tuple[str, int]


@dataclass
class Member:
    id: str
    instance: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: dict[str, bytes]
    joining: asyncio.Future[Joined] | None = None
    syncing: asyncio.Future[bytes] | None = None
    assignment: bytes = b""
    timer: asyncio.TimerHandle | None = None

    @property
    def is_joining(self) -> bool:
        """Whether it has joined and waits for the others. Then it need not be heard of otherwise."""
        return self.joining is not None and not self.joining.done()


@dataclass(frozen=True)
class Joined:
    """What a member learns when a join is complete. Only the leader is told of the others."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member: str
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True)
class Joining:
    """A JoinGroup request."""

    group: str
    member: str
    instance: str | None
    client_id: str
    host: str
    session_ms: int
    rebalance_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    must_know_its_id: bool
    """KIP-394: a new member is first given an id, and joins with it."""
    may_skip_assignment: bool
    """KIP-814: a leader that comes back under its old name can be told that nothing is to be done."""


@dataclass
class Group:
    id: str
    state: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    announced: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    """Ids that were given out and have not joined yet."""
    offsets: dict[Partition, Committed] = field(default_factory=dict)
    pending: dict[int, dict[Partition, Committed]] = field(default_factory=dict)
    """Offsets of open transactions, by producer id."""
    join_timer: asyncio.TimerHandle | None = None
    waits_for_more: bool = False
    """A new group waits a moment for more members before its first generation (KIP-134)."""

    def by_instance(self, instance: str | None) -> Member | None:
        if instance is None:
            return None
        return next((member for member in self.members.values() if member.instance == instance), None)


class Groups:
    """All groups. Waiting members are futures, which the coordinator completes."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._groups: dict[str, Group] = {}

    def all(self) -> list[Group]:
        return list(self._groups.values())

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def _get_or_create(self, group_id: str) -> Group:
        if group_id not in self._groups:
            if len(self._groups) >= MAX_GROUPS:
                raise Refusal(ErrorCode.policy_violation, f"more than {MAX_GROUPS} groups")
            self._groups[group_id] = Group(group_id)
        return self._groups[group_id]

    # -- joining

    async def join(self, asked: Joining) -> Joined:
        """Join or rejoin; returns when the generation is complete. Raises `Refusal`."""
        if not asked.group:
            raise Refusal(ErrorCode.invalid_group_id, "the group id is empty")
        least, most = self._settings["group.min.session.timeout.ms"], self._settings["group.max.session.timeout.ms"]
        if not least <= asked.session_ms <= most:
            raise Refusal(ErrorCode.invalid_session_timeout, f"the session timeout must be {least} to {most} ms")
        if not asked.protocol_type or not asked.protocols:
            raise Refusal(ErrorCode.inconsistent_group_protocol, "a member must say which protocols it speaks")
        if asked.member and asked.group not in self._groups:
            raise Refusal(ErrorCode.unknown_member_id, "no such group")
        group = self._get_or_create(asked.group)
        self._check_protocols(group, asked)
        returning = group.by_instance(asked.instance)
        if not asked.member:
            if returning:
                return await self._come_back(group, returning, asked)
            if len(group.members) + len(group.announced) >= self._settings["group.max.size"]:
                raise Refusal(ErrorCode.group_max_size_reached, "the group is full")
            member_id = f"{asked.instance or asked.client_id}-{uuid.uuid4()}"
            if asked.must_know_its_id and asked.instance is None:
                self._announce(group, member_id, asked.session_ms / 1000)
                raise MemberIdRequired(member_id)
            return await self._add(group, member_id, asked)
        if returning and returning.id != asked.member:
            raise Refusal(ErrorCode.fenced_instance_id, "another member has this instance id")
        if asked.member in group.announced:
            group.announced.pop(asked.member).cancel()
            return await self._add(group, asked.member, asked)
        if asked.member not in group.members:
            raise Refusal(ErrorCode.unknown_member_id, "no such member")
        return await self._rejoin(group, group.members[asked.member], asked)

    def _check_protocols(self, group: Group, asked: Joining) -> None:
        others = [member for member in group.members.values() if member.id != asked.member]
        if not others:
            return
        common = set.intersection(*(set(member.protocols) for member in others))
        if group.protocol_type != asked.protocol_type or not common & set(asked.protocols):
            raise Refusal(ErrorCode.inconsistent_group_protocol, "the other members speak other protocols")

    def _announce(self, group: Group, member_id: str, seconds: float) -> None:
        def forget() -> None:
            group.announced.pop(member_id, None)
            self._complete_join_if_all_are_here(group)

        group.announced[member_id] = asyncio.get_running_loop().call_later(seconds, forget)

    async def _add(self, group: Group, member_id: str, asked: Joining) -> Joined:
        member = Member(
            member_id, asked.instance, asked.client_id, asked.host, asked.session_ms / 1000, asked.rebalance_ms / 1000,
            asked.protocols,
        )  # fmt: skip
        group.members[member_id] = member
        group.protocol_type = asked.protocol_type
        return await self._wait_for_join(group, member)

    async def _rejoin(self, group: Group, member: Member, asked: Joining) -> Joined:
        unchanged = member.protocols == asked.protocols
        member.protocols = asked.protocols
        member.session_seconds, member.rebalance_seconds = asked.session_ms / 1000, asked.rebalance_ms / 1000
        settled = group.state is State.COMPLETING or (group.state is State.STABLE and member.id != group.leader)
        if unchanged and settled:
            self._expect_heartbeat(group, member)
            return self._joined(group, member)
        return await self._wait_for_join(group, member)

    async def _come_back(self, group: Group, old: Member, asked: Joining) -> Joined:
        """A static member (KIP-345) restarts under its instance id: the same member with a new id."""
        fenced = Refusal(ErrorCode.fenced_instance_id, "the member was replaced by another with its instance id")
        for future in (old.joining, old.syncing):
            _fail(future, fenced)
        if old.timer:
            old.timer.cancel()
        new = Member(
            f"{asked.instance}-{uuid.uuid4()}", asked.instance, asked.client_id, asked.host, asked.session_ms / 1000,
            asked.rebalance_ms / 1000, asked.protocols, assignment=old.assignment,
        )  # fmt: skip
        group.members = {new.id if each is old else key: new if each is old else each
                         for key, each in group.members.items()}  # fmt: skip
        was_leader = group.leader == old.id
        if was_leader:
            group.leader = new.id
        if group.state is not State.STABLE or new.protocols != old.protocols:
            return await self._wait_for_join(group, new)
        self._expect_heartbeat(group, new)
        joined = self._joined(group, new)
        if not was_leader:
            return joined
        if asked.may_skip_assignment:
            return Joined(**(vars(joined) | {"skip_assignment": True}))
        return Joined(**(vars(joined) | {"leader": old.id, "members": ()}))  # or it would assign everything anew

    async def _wait_for_join(self, group: Group, member: Member) -> Joined:
        if member.joining is None or member.joining.done():
            member.joining = asyncio.get_running_loop().create_future()
        joining = member.joining
        if member.timer:
            member.timer.cancel()
        self._prepare_rebalance(group)
        self._complete_join_if_all_are_here(group)
        return await asyncio.shield(joining)  # who went away meanwhile is a member until it is silent for too long

    def _prepare_rebalance(self, group: Group) -> None:
        if group.state is State.PREPARING:
            return
        was_empty = group.state is State.EMPTY
        for member in group.members.values():
            _fail(member.syncing, Refusal(ErrorCode.rebalance_in_progress, "the group rebalances"))
            member.assignment = b""
        group.state = State.PREPARING
        delay = self._settings["group.initial.rebalance.delay.ms"] / 1000 if was_empty else None
        longest = max(member.rebalance_seconds for member in group.members.values())
        self._arm_join_timer(group, longest if delay is None else delay, initial=delay is not None and delay > 0)

    def _arm_join_timer(self, group: Group, seconds: float, *, initial: bool) -> None:
        if group.join_timer:
            group.join_timer.cancel()
        group.join_timer = None
        if seconds > 0:
            group.join_timer = asyncio.get_running_loop().call_later(seconds, self._complete_join, group)
        group.waits_for_more = initial

    def _complete_join_if_all_are_here(self, group: Group) -> None:
        waiting = all(member.is_joining for member in group.members.values())
        if group.state is State.PREPARING and waiting and not group.announced and not group.waits_for_more:
            self._complete_join(group)

    def _complete_join(self, group: Group) -> None:
        if group.join_timer:
            group.join_timer.cancel()
            group.join_timer = None
        group.waits_for_more = False
        here = {member.id for member in group.members.values() if member.is_joining}
        for member in list(group.members.values()):
            if member.id not in here and member.instance is None:
                self._drop(group, member)
        if not group.members:
            self._become_empty(group)
            return
        group.generation = group.generation % (2**31 - 1) + 1
        group.protocol = self._choose_protocol(group)
        if group.leader not in here:
            group.leader = next((each for each in group.members if each in here), next(iter(group.members)))
        group.state = State.COMPLETING
        for member in group.members.values():
            self._expect_heartbeat(group, member)
            if member.joining is not None and member.is_joining:
                member.joining.set_result(self._joined(group, member))
            member.joining = None

    def _choose_protocol(self, group: Group) -> str:
        """Each member votes for the first of its protocols that all others speak too."""
        members = list(group.members.values())
        common = set.intersection(*(set(member.protocols) for member in members))
        votes = [next(name for name in member.protocols if name in common) for member in members]
        return max(votes, key=lambda name: (votes.count(name), name))

    def _joined(self, group: Group, member: Member) -> Joined:
        protocol = group.protocol or ""
        everybody = tuple(
            (each.id, each.instance, each.protocols.get(protocol, b"")) for each in group.members.values()
        )
        return Joined(
            group.generation, group.protocol_type or "", protocol, group.leader or "", member.id,
            everybody if member.id == group.leader else (),
        )  # fmt: skip

    # -- the life of a member

    def _expect_heartbeat(self, group: Group, member: Member) -> None:
        if member.timer:
            member.timer.cancel()
        member.timer = asyncio.get_running_loop().call_later(member.session_seconds, self._expire, group, member)

    def _expire(self, group: Group, member: Member) -> None:
        if group.members.get(member.id) is member and not member.is_joining:
            self._remove(group, member)

    def _remove(self, group: Group, member: Member) -> None:
        self._drop(group, member)
        if group.state in (State.COMPLETING, State.STABLE) and group.members:
            self._prepare_rebalance(group)
        if group.state is State.PREPARING or not group.members:
            if group.members:
                self._complete_join_if_all_are_here(group)
            elif not group.announced:
                self._become_empty(group)

    def _drop(self, group: Group, member: Member) -> None:
        if member.timer:
            member.timer.cancel()
        del group.members[member.id]
        for future in (member.joining, member.syncing):
            _fail(future, Refusal(ErrorCode.unknown_member_id, "the member was removed"))

    def _become_empty(self, group: Group) -> None:
        if group.join_timer:
            group.join_timer.cancel()
            group.join_timer = None
        group.state = State.EMPTY
        group.generation += 1
        group.leader = group.protocol = None

    def _member(
        self, group_id: str, member_id: str, instance: str | None, generation: int | None
    ) -> tuple[Group, Member]:
        if not group_id:
            raise Refusal(ErrorCode.invalid_group_id, "the group id is empty")
        group = self._groups.get(group_id)
        if group is None:
            raise Refusal(ErrorCode.unknown_member_id, "no such group")
        named = group.by_instance(instance)
        if named and named.id != member_id:
            raise Refusal(ErrorCode.fenced_instance_id, "another member has this instance id")
        member = group.members.get(member_id)
        if member is None:
            raise Refusal(ErrorCode.unknown_member_id, "no such member")
        if generation is not None and generation != group.generation:
            raise Refusal(ErrorCode.illegal_generation, f"the generation is {group.generation}, not {generation}")
        return group, member

    async def sync(
        self,
        group_id: str,
        member_id: str,
        instance: str | None,
        generation: int,
        assignments: dict[str, bytes],
        protocol: tuple[str | None, str | None],
    ) -> tuple[Group, bytes]:
        """The member's assignment, once the leader has made it. Raises `Refusal`."""
        group, member = self._member(group_id, member_id, instance, generation)
        for said, known in zip(protocol, (group.protocol_type, group.protocol), strict=True):
            if said is not None and said != known:
                raise Refusal(ErrorCode.inconsistent_group_protocol, f"the group speaks {known}, not {said}")
        if group.state is State.PREPARING:
            raise Refusal(ErrorCode.rebalance_in_progress, "the group rebalances")
        if group.state is State.COMPLETING:
            if member.id == group.leader:
                self._assign(group, assignments)
            else:
                if member.syncing is None or member.syncing.done():
                    member.syncing = asyncio.get_running_loop().create_future()
                await asyncio.shield(member.syncing)
        self._expect_heartbeat(group, member)
        return group, member.assignment

    def _assign(self, group: Group, assignments: dict[str, bytes]) -> None:
        group.state = State.STABLE
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
            if member.syncing and not member.syncing.done():
                member.syncing.set_result(member.assignment)
            member.syncing = None

    def heartbeat(self, group_id: str, member_id: str, instance: str | None, generation: int) -> None:
        group, member = self._member(group_id, member_id, instance, generation)
        if not member.is_joining:
            self._expect_heartbeat(group, member)
        if group.state is State.PREPARING:
            raise Refusal(ErrorCode.rebalance_in_progress, "the group rebalances")

    def leave(self, group_id: str, member_id: str, instance: str | None) -> None:
        group = self._groups.get(group_id)
        if group and member_id in group.announced:
            group.announced.pop(member_id).cancel()
            self._complete_join_if_all_are_here(group)
            return
        if group and not member_id and instance is not None:  # an administrator names the instance only
            named = group.by_instance(instance)
            member_id = named.id if named else ""
        found, member = self._member(group_id, member_id, instance, None)
        self._remove(found, member)

    # -- offsets

    def check_commit(self, group_id: str, member_id: str, instance: str | None, generation: int) -> Group:
        """The group to commit to. A group without members takes offsets from anybody who names no generation."""
        if not group_id:
            raise Refusal(ErrorCode.invalid_group_id, "the group id is empty")
        group = self._groups.get(group_id)
        if generation < 0 and (group is None or group.state is State.EMPTY):
            return self._get_or_create(group_id)
        if group is None:
            raise Refusal(ErrorCode.illegal_generation, "no such group")
        group, member = self._member(group_id, member_id, instance, generation)
        if group.state is State.COMPLETING:
            raise Refusal(ErrorCode.rebalance_in_progress, "the group rebalances")
        if not member.is_joining:
            self._expect_heartbeat(group, member)
        return group

    def check_transactional_commit(self, group_id: str, member_id: str, instance: str | None, generation: int) -> Group:
        """The same for the offsets of a transaction, whose producer need not be a member; one that is says so."""
        if member_id or generation >= 0:
            return self._member(group_id, member_id, instance, generation)[0]
        return self._get_or_create(group_id)

    def commit_in_transaction(self, group: Group, producer_id: int, offsets: dict[Partition, Committed]) -> None:
        group.pending.setdefault(producer_id, {}).update(offsets)

    def end_transaction(self, group_id: str, producer_id: int, *, commit: bool, now: int) -> None:
        group = self._groups.get(group_id)
        offsets = group.pending.pop(producer_id, {}) if group else {}
        if group and commit:
            group.offsets.update({key: value._replace(at=now) for key, value in offsets.items()})

    def forget_topic(self, name: str) -> None:
        """A topic was deleted, and with it what groups committed for it."""
        for group in self._groups.values():
            for key in [key for key in group.offsets if key[0] == name]:
                del group.offsets[key]

    def expire(self, now: int) -> None:
        """Forget offsets that are too old in groups without members, and groups that have nothing left."""
        oldest = now - self._settings["offsets.retention.minutes"] * 60_000
        for group in [group for group in self._groups.values() if group.state is State.EMPTY]:
            for key in [key for key, value in group.offsets.items() if value.at < oldest]:
                del group.offsets[key]
            if not (group.offsets or group.pending or group.announced):
                del self._groups[group.id]


def _fail(future: asyncio.Future[Any] | None, refusal: Refusal) -> None:
    """Refuse somebody who waits, if there still is somebody."""
    if future and not future.done():
        future.set_exception(refusal)
        future.exception()  # nobody may be left to see it, which is no reason to complain


class MemberIdRequired(Exception):
    """A new member is to join again, with the id that it is given here (KIP-394)."""

    def __init__(self, member_id: str) -> None:
        super().__init__(member_id)
        self.member_id = member_id


def is_unstable(group: Group, partition: Partition) -> bool:
    """Whether an open transaction may still change the committed offset of a partition."""
    return any(partition in offsets for offsets in group.pending.values())


def all_committed(group: Group) -> Iterable[Partition]:
    return sorted(group.offsets)
