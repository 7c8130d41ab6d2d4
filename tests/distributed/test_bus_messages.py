"""The bytes of the bus: what is written is read, and nothing else is believed."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.messages import Address, FrameKind, Status
from modurob.distributed.codec import (
    LARGEST_TEXT,
    U16,
    Counted,
    Flagged,
    Layout,
    Rest,
    Sized,
    Text,
    read,
)

numbers = st.integers(0, 2**32 - 1)
addresses = st.builds(Address, st.integers(0, 2**128 - 1), numbers)
texts = st.text(max_size=16)  # at most 64 bytes
floats = st.lists(st.floats(allow_nan=False), max_size=6).map(tuple)
neighbors = st.builds(
    msg.Neighbor, texts, addresses, texts, st.integers(0, 359), st.sampled_from(Status)
)
hellos = st.builds(
    msg.Hello, addresses, numbers, st.integers(0, 2**64 - 1), numbers, st.booleans(), texts
)
MESSAGES = {
    "report": st.builds(
        msg.ModuleReport, addresses, numbers, texts, st.lists(neighbors, max_size=3).map(tuple)
    ),
    "piece": st.builds(msg.Piece, addresses, numbers, numbers, st.binary()),
    "sense": st.builds(msg.Sense, addresses, numbers, numbers, floats),
    "ask": st.builds(msg.Ask, addresses, st.sampled_from(msg.Wanted)),
    "torque": st.builds(msg.Torque, addresses, numbers, floats),
}
HELLO = msg.pack_frame(
    FrameKind.HELLO, 7, 8, msg.HELLO.pack(msg.Hello(Address(5, 6), 1, 2, 3, True, "out"))
)


@pytest.mark.parametrize("kind", MESSAGES)
@given(data=st.data())
def test_messages_are_read_as_they_were_written(kind, data):
    message = data.draw(MESSAGES[kind])
    assert msg.unpack(msg.pack(message)) == message
    assert msg.unpack_address(msg.pack(message))[1] == message[0]


@given(hellos)
def test_hellos_are_read_as_they_were_written(hello):
    frame = msg.pack_frame(FrameKind.HELLO, 7, 8, msg.HELLO.pack(hello))
    kind, here, there, body = msg.unpack_frame(frame)
    assert (kind, here, there) == (FrameKind.HELLO, 7, 8)
    assert read(msg.HELLO, body) == hello


def test_the_layout_is_the_documented_one():
    body = bytes.fromhex("00" * 15 + "05" + "06000000" + "01000000" + "0200000000000000")
    body += bytes.fromhex("03000000" + "01" + "03") + b"out"
    assert HELLO[:-4] == b"MB\x02\x01" + bytes.fromhex("07000000" + "08000000") + body
    torque = msg.pack(msg.Torque(Address(1, 2), 3, (1.0,)))
    assert torque.hex() == "21" + "00" * 15 + "01" + "02000000" + "03000000" + "000000000000f03f"


def test_every_flipped_bit_of_a_frame_is_noticed():
    for bit in range(8 * len(HELLO)):
        damaged = bytearray(HELLO)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="frame"):
            msg.unpack_frame(bytes(damaged))


@given(st.binary(max_size=300))
def test_garbage_is_no_frame_and_no_message(data):
    with pytest.raises(ValueError, match=r"frame|FrameKind"):
        msg.unpack_frame(data)
    for unpack in (msg.unpack, msg.unpack_address, lambda d: read(msg.HELLO, d)):
        try:
            unpack(data)
        except ValueError:
            continue


@pytest.mark.parametrize("kind", [k for k in MESSAGES if k != "piece"])
@given(data=st.data())
def test_messages_that_are_cut_off_or_too_long_are_refused(kind, data):
    whole = msg.pack(data.draw(MESSAGES[kind]))
    for wrong in (whole[:-1], whole[:20], whole + b"\0"):
        with pytest.raises(ValueError, match=r"early|too many|half a number|is not a valid"):
            msg.unpack(wrong)


@pytest.mark.parametrize(
    ("field", "value", "data"),
    [
        (Text(), "aé", b"\3a\xc3\xa9"),
        (Sized(), b"xyz", b"\3\0xyz"),
        (Counted(U16), (1, 515), b"\2\1\0\3\2"),
        (Rest("H"), (1, 515), b"\1\0\3\2"),
        (Rest(), b"xyz", b"xyz"),
        (Layout(msg.Plugged, Text(), U16), msg.Plugged("in", 515), b"\2in\3\2"),
        (Flagged(a=(0, U16), b=(4, U16), c=(2, U16)), {"a": 1, "c": 515}, b"\2\1\0\3\2"),
        (Flagged(a=(0, U16), b=(4, U16), c=(2, U16)), {"a": 1, "b": 7, "c": 2},
         b"\6\1\0\7\0\2\0"),
    ],
)  # fmt: skip
def test_fields_are_written_as_documented_and_read_wherever_they_begin(field, value, data):
    assert field.pack(value) == data
    assert field.unpack(b"??" + data, 2) == (value, 2 + len(data))
    assert read(field, b"??" + data, 2) == value
    assert read(field, data) == value  # from the begin
    if isinstance(field, Layout | Flagged):
        assert field.unpack(data) == (value, len(data))
    if not isinstance(field, Rest):
        for short in (data[:1], data[:-1]):
            with pytest.raises(ValueError, match="ends too early"):
                field.unpack(short, 0)
        with pytest.raises(ValueError, match="3 bytes too many"):
            read(field, data + b"???")


def test_texts_have_64_bytes_at_most_and_flags_are_known_ones():
    text = "x" * 64
    assert Text().unpack(Text().pack(text), 0) == (text, 65)
    with pytest.raises(ValueError, match="longer than 64 bytes"):
        Text().pack(text + "x")
    with pytest.raises(ValueError, match="a text of 65 bytes"):
        Text().unpack(b"A" + b"x" * 65, 0)
    with pytest.raises(ValueError, match="unknown flags 0x9"):
        Flagged(a=(1, U16), b=(2, U16)).unpack(b"\x09\0\0", 0)
    with pytest.raises(ValueError, match="half a number"):
        Rest("H").unpack(b"?xyz", 1)


@pytest.mark.parametrize(("magic", "version"), [(b"MC", 2), (b"MB", 1), (b"MB", 3)])
def test_whole_frames_of_other_buses_and_versions_are_refused(magic, version):
    data = msg.HEADER.pack(magic, version, FrameKind.DATA, 1, 2) + b"body"
    with pytest.raises(ValueError, match="not a frame of this bus"):
        msg.unpack_frame(data + msg.CRC.pack(zlib.crc32(data)))


def test_pieces_make_a_record_in_any_order_and_of_one_size():
    record = bytes(range(256)) * 9 + b"end"  # 2307 bytes
    parts = [msg.Piece(Address(1, 2), *piece) for piece in msg.pieces(record)]
    assert [(p.total, p.offset, len(p.data)) for p in parts] == [
        (2307, 0, 1024), (2307, 1024, 1024), (2307, 2048, 259)
    ]  # fmt: skip
    assert [*msg.pieces(b"")] == [(0, 0, b"")]
    found, whole = (), None
    for part in (parts[2], parts[0], parts[0]):
        found, whole = msg.joined(found, part)
        assert whole is None
    assert [offset for offset, _ in found] == [0, 2048]
    assert msg.joined(found, parts[1]) == ((), record)
    # one of a shorter record drops what lies beyond it
    shorter = msg.Piece(Address(1, 2), 1500, 1024, b"x" * 476)
    assert msg.joined(found, shorter) == ((), parts[0].data + shorter.data)
    largest = msg.Piece(Address(1, 2), msg.LARGEST_RECORD, 0, b"x" * msg.CHUNK)
    assert msg.joined((), largest)[0] == ((0, largest.data),)
    for wrong in (
        largest._replace(total=msg.LARGEST_RECORD + 1), largest._replace(data=b"x" * 1025),
        largest._replace(offset=1), parts[2]._replace(data=b"x" * 260),
    ):  # fmt: skip
        assert msg.joined(found, wrong) == (found, None)


def test_only_signals_for_motors_and_memory_are_a_modules_own():
    outbox = [
        msg.own(msg.DriveSignal((1.5,))), msg.own(msg.Stored(b"r")),
        msg.own(msg.Torque(Address(1, 2), 3, ())), ("in", msg.pack(msg.DriveSignal((2.0,)))),
    ]  # fmt: skip
    assert msg.own_signals(outbox) == [msg.DriveSignal((1.5,)), msg.Stored(b"r")]


def test_a_batch_holds_255_messages_and_an_empty_cycle_is_one_batch():
    found = msg.batches(7, [b""] * 256)
    assert [(batch.number, batch.complete, len(batch.messages)) for batch in found] == [
        (7, False, 255), (7, True, 1)
    ]  # fmt: skip
    assert msg.batches(7, []) == [msg.CycleBatch(7, True, ())]


def test_frames_have_a_least_and_a_largest_size():
    short = (FrameKind.DATA, 1, 2, b"")
    assert msg.unpack_frame(msg.pack_frame(*short)) == short
    msg.unpack_frame(msg.pack_frame(FrameKind.DATA, 1, 2, bytes(msg.LARGEST_FRAME - 16)))
    with pytest.raises(ValueError, match="4097 bytes"):
        msg.unpack_frame(msg.pack_frame(FrameKind.DATA, 1, 2, bytes(msg.LARGEST_FRAME - 15)))


def test_batches_are_filled_to_the_last_byte():
    room = msg.LARGEST_BATCH - 6 - 2  # of one message
    for sizes, batches in (((room,), 1), ((100, room - 102), 1), ((100, room - 101), 2)):
        found = msg.batches(3, [bytes(size) for size in sizes])
        assert [len(batch.messages) for batch in found] == [len(sizes) // batches] * batches
        assert [batch.complete for batch in found] == [False, True][-batches:]


def test_the_largest_report_and_piece_fit_into_a_frame():
    label = "x" * LARGEST_TEXT
    neighbour = msg.Neighbor(label, Address(1, 2), label, 90, Status.HEARD)
    report = msg.ModuleReport(Address(1, 2), 1, label, (neighbour,) * msg.MOST_PORTS)
    piece = msg.Piece(Address(1, 2), 9999, 0, bytes(msg.CHUNK))
    for message in (msg.pack(report), msg.pack(piece)):
        body = b"\0\0\0\0" + message
        frame = msg.pack_frame(FrameKind.DATA, 1, 2, body)
        assert msg.unpack_frame(frame) == (FrameKind.DATA, 1, 2, body)


@pytest.mark.parametrize(
    "signal", [msg.Plugged("out", 270), msg.Unplugged("3"), msg.DriveSignal((1.5, -2.0))]
)
def test_signals_are_read_as_they_were_given_and_never_come_from_a_neighbor(signal):
    assert msg.unpack_signal(msg.pack(signal)) == signal
    with pytest.raises(ValueError, match=r"never leaves a module|too early"):
        msg.unpack(msg.pack(signal) + bytes(20))
