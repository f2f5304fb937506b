"""What is written to a connection in one turn of the loop goes out at once, in order, and none is lost."""

import asyncio
from unittest.mock import Mock

import pytest

from accrual.service.connections import _TOGETHER, LimitedProtocol, LimitedTransport, Limits


class Wire:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False
        self.aborted = asyncio.Event()

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.sent.append(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True
        self.aborted.set()

    def is_closing(self) -> bool:
        return self.closed


@pytest.fixture
def wire():
    return Wire()


def run(wire, turns):
    """Call each of `turns` in a turn of its own."""

    async def all_of_them() -> None:
        limited = LimitedProtocol(Limits(10.0, 1000, 10, 10), asyncio.get_running_loop())
        limited.transport = wire
        transport = LimitedTransport(limited, wire)
        for turn in turns:
            turn(transport)
            await asyncio.sleep(0)

    asyncio.run(all_of_them())


def both(transport):
    transport.write(b"head ")
    transport.write(b"body")


def test_a_head_goes_with_its_body(wire):
    run(wire, [both, both, lambda transport: transport.write(b"last")])
    assert wire.sent == [b"head body", b"head body", b"last"]


def test_what_was_written_is_sent_before_the_end(wire):
    run(wire, [lambda transport: (both(transport), transport.close())])
    assert wire.sent == [b"head body"]
    assert wire.closed


def test_much_is_not_held_back(wire):
    """So that the transport can ask for a pause."""

    def write(transport):
        transport.write(b"head")
        transport.write(bytes(_TOGETHER))
        assert len(wire.sent) == 1
        transport.write(b"rest")

    run(wire, [write])
    assert [len(sent) for sent in wire.sent] == [_TOGETHER + 4, 4]


def test_nothing_is_sent_to_a_client_that_has_gone(wire):
    def write(transport):
        both(transport)
        wire.close()  # the other end, in the same turn

    run(wire, [write, lambda transport: transport.close()])
    assert wire.sent == []


def test_all_else_is_the_transport_itself(wire):
    asked = []
    run(wire, [lambda transport: asked.append(transport.is_closing())])
    wire.close()
    run(wire, [lambda transport: asked.append(transport.is_closing())])
    assert asked == [False, True]


def test_an_end_that_takes_some_of_the_last_answer_is_cut_off_all_the_same(wire):
    async def close_and_go_on() -> None:
        limited = LimitedProtocol(Limits(0.01, 1000, 10, 10), asyncio.get_running_loop())
        limited.transport = wire
        limited.server = Mock()
        limited.pause_writing()
        limited.close()
        limited.resume_writing()
        await asyncio.wait_for(wire.aborted.wait(), 30)

    asyncio.run(close_and_go_on())
