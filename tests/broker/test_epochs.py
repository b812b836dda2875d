"""Leader epochs: which wrote what, and where each ended."""

from __future__ import annotations

from logs import Log, done

from broker.log.epochs import LeaderEpochs


def three() -> LeaderEpochs:
    """Epoch 1 wrote 0 to 9, epoch 3 wrote 10 to 19, epoch 5 from 20 on."""
    epochs = LeaderEpochs()
    for epoch, start in ((1, 0), (3, 10), (5, 20)):
        epochs.begin(epoch, start)
    return epochs


def test_the_epoch_of_an_offset_is_that_of_its_leader() -> None:
    assert [three().at(offset) for offset in (0, 9, 10, 19, 20, 99)] == [1, 1, 3, 3, 5, 5]


def test_an_epoch_ends_where_the_next_begins() -> None:
    epochs = three()
    assert epochs.end_of(1, 30) == (1, 10)
    assert epochs.end_of(3, 30) == (3, 20)
    assert epochs.end_of(5, 30) == (5, 30)


def test_an_epoch_that_never_was_is_answered_by_the_one_before() -> None:
    assert three().end_of(2, 30) == (1, 10)
    assert three().end_of(4, 30) == (3, 20)


def test_an_epoch_from_before_all_ended_where_the_first_began() -> None:
    assert three().end_of(0, 30) == (0, 0)


def test_an_epoch_from_the_future_has_no_end() -> None:
    assert three().end_of(6, 30) == (-1, -1)
    assert three().end_of(-1, 30) == (-1, -1)


def test_an_older_epoch_does_not_begin_again() -> None:
    epochs = three()
    epochs.begin(4, 25)
    assert epochs.latest == 5


def test_an_epoch_that_wrote_nothing_is_forgotten() -> None:
    epochs = three()
    epochs.begin(7, 20)
    assert epochs.at(20) == 7
    assert epochs.end_of(5, 30) == (3, 20)


def test_epochs_below_the_start_are_forgotten_but_for_the_one_at_it() -> None:
    epochs = three()
    epochs.forget_before(15)
    assert epochs.at(15) == 3
    assert epochs.end_of(1, 30) == (1, 15)
    epochs.forget_before(30)
    assert epochs.at(30) == epochs.latest == 5


def test_a_log_tells_the_epoch_in_which_each_record_was_written() -> None:
    log = Log(leader_epoch=2)
    log.append_at(1000)
    log.log.begin_epoch(4)
    log.append_at(2000)
    ends = log.ends()
    assert (ends.start_epoch, ends.leader_epoch) == (2, 4)
    first, second = done(log.log.find_by_time(0)), done(log.log.find_newest())
    assert first is not None
    assert second is not None
    assert (first.leader_epoch, second.leader_epoch) == (2, 4)
    assert done(log.log.end_of_epoch(2)) == (2, 1)
    assert done(log.log.end_of_epoch(4)) == (4, 2)
