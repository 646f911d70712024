"""Names the dominant colour of a PNG, so that a vision check has an answer that can be wrong."""

import struct
import zlib
from collections import Counter

NAMED = {
    "red": (255, 0, 0),
    "green": (0, 160, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "orange": (255, 140, 0),
    "purple": (128, 0, 160),
    "cyan": (0, 255, 255),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "black": (0, 0, 0),
}
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


class PictureError(ValueError):
    """Not a picture that the double can look at."""


def _chunks(data):
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise PictureError("not a PNG")
    at = 8
    while at + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def _paeth(left, up, corner):
    estimate = left + up - corner
    distances = (abs(estimate - left), abs(estimate - up), abs(estimate - corner))
    return (left, up, corner)[distances.index(min(distances))]


def _rows(raw, height, stride, step):
    before = bytes(stride)
    for row in range(height):
        start = row * (stride + 1)
        kind, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        if len(line) != stride or kind > 4:
            raise PictureError("damaged picture data")
        for i in range(stride if kind else 0):
            left = line[i - step] if i >= step else 0
            corner = before[i - step] if i >= step else 0
            guess = (left, before[i], (left + before[i]) // 2, _paeth(left, before[i], corner))[kind - 1]
            line[i] = (line[i] + guess) & 255
        yield line
        before = bytes(line)


def dominant_colour(data):
    """The name of the colour that most pixels are nearest to. 8-bit, non-interlaced PNG only."""
    header, palette, packed = None, b"", b""
    for kind, body in _chunks(data):
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = body
        elif kind == b"IDAT":
            packed += body
    if header is None:
        raise PictureError("PNG without a header")
    width, height, depth, colour, _, _, interlaced = header
    if depth != 8 or interlaced or colour not in CHANNELS:
        raise PictureError("only 8-bit PNG without interlacing")
    step = CHANNELS[colour]
    try:
        raw = zlib.decompress(packed)
    except zlib.error as error:
        raise PictureError(f"damaged picture data: {error}") from error
    pixels = Counter()
    for line in _rows(raw, height, width * step, step):
        for at in range(0, len(line), step):
            pixels[bytes(line[at : at + step])] += 1
    votes = Counter()
    for pixel, count in pixels.items():
        if colour == 3:
            red, green, blue = palette[3 * pixel[0] : 3 * pixel[0] + 3]
        elif colour in (0, 4):
            red = green = blue = pixel[0]
        else:
            red, green, blue = pixel[:3]
        nearest = min(NAMED, key=lambda name: sum((a - b) ** 2 for a, b in zip(NAMED[name], (red, green, blue))))
        votes[nearest] += count
    if not votes:
        raise PictureError("empty picture")
    return votes.most_common(1)[0][0]
