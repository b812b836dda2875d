"""The group coordinator by itself: rebalances, static members, silence and committed offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.groups import Committed, Groups, Joined, Joining, MemberIdRequired, State
from broker.refusal import Refusal
from broker.settings import BrokerSettings

G = "group"


def groups(**settings: str) -> Groups:
    given = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}
    return Groups(BrokerSettings.of(given | {name.replace("_", "."): value for name, value in settings.items()}))


def joining(member: str = "", *, instance: str | None = None, metadata: bytes = b"m", **fields: Any) -> Joining:
    values: dict[str, Any] = {
        "group": G,
        "member": member,
        "instance": instance,
        "client_id": "client",
        "host": "127.0.0.1",
        "session_ms": 10_000,
        "rebalance_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": {"range": metadata},
        "must_know_its_id": False,
        "may_skip_assignment": True,
    }
    return Joining(**values | fields)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10))


async def stable_group(some: Groups, count: int, **fields: Any) -> list[Joined]:
    """A stable group of so many members, whose assignment is their number."""
    members: list[Joined] = [await some.join(joining(**fields))]
    while len(members) < count:
        newcomer = asyncio.create_task(some.join(joining(**fields)))
        await asyncio.sleep(0)
        rejoining = [some.join(joining(member.member, **fields)) for member in members]
        members = list(await asyncio.gather(*rejoining, newcomer))
    leader = next(member for member in members if member.member == member.leader)
    await assign(some, leader, members)
    return members


async def assign(some: Groups, leader: Joined, members: list[Joined]) -> None:
    assignments = {member.member: str(number).encode() for number, member in enumerate(members)}
    await asyncio.gather(
        *(
            some.sync(G, member.member, None, member.generation, assignments if member is leader else {}, (None, None))
            for member in members
        )
    )


def refused(code: ErrorCode, call: Any, *arguments: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        call(*arguments)
    assert refusal.value.code is code


def test_members_that_join_together_share_a_generation() -> None:
    async def story() -> None:
        some = groups()
        members = await stable_group(some, 3)
        assert len({member.generation for member in members}) == 1
        assert len({member.leader for member in members}) == 1
        assert sorted(len(member.members) for member in members) == [0, 0, 3]
        group = some.get(G)
        assert group is not None
        assert group.state is State.STABLE
        assert sorted(member.assignment for member in group.members.values()) == [b"0", b"1", b"2"]

    run(story())


def test_a_new_group_waits_a_moment_for_more_members() -> None:
    async def story() -> None:
        some = groups(group_initial_rebalance_delay_ms="50")
        first, second = await asyncio.gather(some.join(joining()), some.join(joining()))
        assert first.generation == second.generation == 1

    run(story())


def test_a_new_member_is_first_given_an_id() -> None:
    async def story() -> None:
        some = groups()
        with pytest.raises(MemberIdRequired) as given:
            await some.join(joining(must_know_its_id=True))
        joined = await some.join(joining(given.value.member_id, must_know_its_id=True))
        assert joined.member == given.value.member_id

    run(story())


def test_a_newcomer_makes_the_others_join_again() -> None:
    async def story() -> None:
        some = groups()
        (one,) = await stable_group(some, 1)
        newcomer = asyncio.create_task(some.join(joining()))
        await asyncio.sleep(0)
        refused(ErrorCode.rebalance_in_progress, some.heartbeat, G, one.member, None, one.generation)
        again = await some.join(joining(one.member))
        assert (await newcomer).generation == again.generation == one.generation + 1

    run(story())


def test_who_does_not_join_again_in_time_is_left_behind() -> None:
    async def story() -> None:
        some = groups()
        (old,) = await stable_group(some, 1, rebalance_ms=30)
        newcomer = await some.join(joining(rebalance_ms=30))
        assert newcomer.leader == newcomer.member
        refused(ErrorCode.unknown_member_id, some.heartbeat, G, old.member, None, old.generation)

    run(story())


def test_a_silent_member_is_removed_and_the_others_rebalance() -> None:
    async def story() -> None:
        some = groups()
        members = await stable_group(some, 2, session_ms=100)
        loud, group = members[0], some.get(G)
        assert group is not None
        while len(group.members) == 2:
            some.heartbeat(G, loud.member, None, loud.generation)
            await asyncio.sleep(0.01)
        assert list(group.members) == [loud.member]
        assert (await some.join(joining(loud.member))).leader == loud.member

    run(story())


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    async def story() -> None:
        some = groups()
        (one,) = await stable_group(some, 1)
        some.leave(G, one.member, None)
        group = some.get(G)
        assert group is not None
        assert group.state is State.EMPTY
        refused(ErrorCode.unknown_member_id, some.leave, G, one.member, None)

    run(story())


def test_who_waits_for_the_leader_is_told_when_the_group_rebalances_instead() -> None:
    async def story() -> None:
        some = groups()
        members = await stable_group(some, 2)
        again = await asyncio.gather(
            some.join(joining(members[0].member, metadata=b"new")),
            some.join(joining(members[1].member, metadata=b"new")),
        )
        follower = next(member for member in again if member.member != member.leader)
        syncing = asyncio.create_task(some.sync(G, follower.member, None, follower.generation, {}, (None, None)))
        await asyncio.sleep(0)
        third = asyncio.create_task(some.join(joining()))
        with pytest.raises(Refusal) as refusal:
            await syncing
        assert refusal.value.code is ErrorCode.rebalance_in_progress
        third.cancel()

    run(story())


def test_a_member_that_joins_again_unchanged_is_told_what_it_knows() -> None:
    async def story() -> None:
        some = groups()
        members = await stable_group(some, 2)
        follower = next(member for member in members if member.member != member.leader)
        assert (await some.join(joining(follower.member))).generation == follower.generation

    run(story())


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    async def story() -> None:
        some = groups()
        (one,) = await stable_group(some, 1, instance="one")
        back = await some.join(joining(instance="one"))
        assert back.generation == one.generation
        assert back.member != one.member
        assert back.skip_assignment
        _group, assignment = await some.sync(G, back.member, "one", back.generation, {}, (None, None))
        assert assignment == b"0"
        refused(ErrorCode.fenced_instance_id, some.heartbeat, G, one.member, "one", one.generation)

    run(story())


def test_an_old_client_that_led_is_not_asked_to_assign_again() -> None:
    async def story() -> None:
        some = groups()
        (one,) = await stable_group(some, 1, instance="one")
        back = await some.join(joining(instance="one", may_skip_assignment=False))
        assert back.leader == one.member
        assert back.members == ()

    run(story())


def test_a_full_group_takes_nobody() -> None:
    async def story() -> None:
        some = groups(group_max_size="1")
        await stable_group(some, 1)
        with pytest.raises(Refusal) as refusal:
            await some.join(joining())
        assert refusal.value.code is ErrorCode.group_max_size_reached

    run(story())


def test_a_client_that_went_away_while_joining_holds_up_nobody_for_long() -> None:
    async def story() -> None:
        some = groups()
        (one,) = await stable_group(some, 1)
        gone = asyncio.create_task(some.join(joining(session_ms=30)))
        await asyncio.sleep(0)
        gone.cancel()
        joined = await some.join(joining(one.member, rebalance_ms=100))
        assert joined.generation > one.generation

    run(story())


# -- offsets


def test_only_the_generation_of_now_may_commit() -> None:
    async def story() -> None:
        some = groups()
        (one,) = await stable_group(some, 1)
        some.check_commit(G, one.member, None, one.generation)
        refused(ErrorCode.illegal_generation, some.check_commit, G, one.member, None, one.generation - 1)
        refused(ErrorCode.unknown_member_id, some.check_commit, G, "nobody", None, one.generation)
        refused(ErrorCode.unknown_member_id, some.check_commit, G, "", None, -1)

    run(story())


def test_a_group_without_members_takes_offsets_from_anybody() -> None:
    some = groups()
    assert some.check_commit(G, "", None, -1).state is State.EMPTY
    refused(ErrorCode.illegal_generation, some.check_commit, "other", "m", None, 5)
    refused(ErrorCode.invalid_group_id, some.check_commit, "", "", None, -1)


def test_offsets_of_a_transaction_count_when_it_commits_and_not_when_it_aborts() -> None:
    some = groups()
    group = some.check_commit(G, "", None, -1)
    for commit, offset in ((False, 3), (True, 7)):
        some.commit_in_transaction(group, 1, {("t", 0): Committed(offset, -1, "", 0)})
        some.end_transaction(G, 1, commit=commit, now=100)
        assert [committed.offset for committed in group.offsets.values()] == ([7] if commit else [])


def test_old_offsets_of_an_empty_group_are_forgotten_and_then_the_group() -> None:
    some = groups(offsets_retention_minutes="1")
    group = some.check_commit(G, "", None, -1)
    group.offsets["t", 0] = Committed(1, -1, "", 0)
    some.expire(now=60_000)
    assert some.get(G) is group
    some.expire(now=60_001)
    assert some.get(G) is None


def test_a_deleted_topic_takes_its_offsets_with_it() -> None:
    some = groups()
    group = some.check_commit(G, "", None, -1)
    group.offsets["t", 0] = group.offsets["other", 0] = Committed(1, -1, "", 0)
    some.forget_topic("t")
    assert list(group.offsets) == [("other", 0)]
