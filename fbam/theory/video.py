r"""The argument from video: bytes that arrive against bytes that a streaming model holds (paper, section 7).

$$\text{bytes a second} = \text{width} \cdot \text{height} \cdot \text{bytes a pixel} \cdot \text{frames a second}$$
"""

from __future__ import annotations

from dataclasses import dataclass

FULL_HD = (1920, 1080)
RGB_BYTES = 3
"""8 bits a channel."""
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Stream:
    """Frames of `frame_bytes` bytes at `frames_a_second`."""

    name: str
    frame_bytes: int
    frames_a_second: float

    @property
    def bytes_a_second(self) -> float:
        """Bytes that arrive in one second."""
        return self.frame_bytes * self.frames_a_second

    def held(self, seconds: float) -> float:
        """Bytes that a model holds which can look back at every frame of the last `seconds`."""
        return self.bytes_a_second * seconds


def full_hd(frames_a_second: float) -> Stream:
    """Full HD in 8-bit RGB, uncompressed."""
    width, height = FULL_HD
    return Stream("Full HD, 8-bit RGB", width * height * RGB_BYTES, frames_a_second)


def lstm_state_bytes(layers: int, width: int) -> int:
    """Bytes of the state of a stack of LSTM layers, h and c of each in single precision."""
    return 2 * layers * width * FLOAT_BYTES


def working_bytes(stream: Stream, layers: int, width: int) -> int:
    """Bytes that streaming holds: the frame at hand and the state, whatever came before."""
    return stream.frame_bytes + lstm_state_bytes(layers, width)
