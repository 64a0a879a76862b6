"""The order of streams in exchanges by DLPack: the consumer's stream waits for the producer's."""

from __future__ import annotations

from typing import Any

from lamella.cuda import streams

# DLPack's numbers of the default stream and of the default stream of a thread.
_DEFAULT, _OF_THREAD = 1, 2


def consumer_stream(index: int) -> int:
    """The number of the stream that imported memory will be used on: the current one."""
    return streams.current_stream(index).cuda_stream or _DEFAULT


def producer_stream(index: int, stream: Any) -> None:
    """Makes a consumer's stream wait for the work on the current one; -1: no wait is wanted."""
    if stream == -1:
        return
    number = _DEFAULT if stream is None else stream
    if not isinstance(number, int) or number < 1:
        raise BufferError(
            "__dlpack__: expected 'stream' to be None, -1, 1, 2 or the handle of a stream, "
            f"got {stream!r}"
        )
    current = streams.current_stream(index)
    if number in (_DEFAULT, _OF_THREAD):
        other = streams.default_stream(index)
    else:
        other = streams.ExternalStream(number, index)
    if other != current:
        other.wait_stream(current)
