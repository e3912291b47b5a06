"""Damaged pictures at the decoders' door: in one limited process, because a decoder that crashes ends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import PIL

import nexo

FOLDERS = [str(Path(nexo.__file__).parents[1]), str(Path(PIL.__file__).parents[1])]
CASES = 300
PROGRAM = """
import io, json, random, sys
sys.path += FOLDERS
from PIL import Image
from nexo.files.media import jail
from nexo.files.media.pictures import prepare, read_picture
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF")
chance = random.Random(2026)
images = [Image.frombytes("RGB", (40, 30), chance.randbytes(3600)), Image.new("P", (30, 40), 3)]
images.append(Image.new("RGBA", (9, 9)))
samples = []
for name in FORMATS:
    prepare(name)
    for image in images:
        out = io.BytesIO()
        (image.convert("RGB") if name in ("JPEG", "BMP") else image).save(out, name)
        samples.append((name, out.getvalue()))
jail.limit(1 << 30, 60, 110)
jail.allow_only(jail.COMPUTING)
results = {}
for number in range(CASES):
    name, content = chance.choice(samples)
    damaged = bytearray(content)
    for _ in range(chance.randrange(1, 12)):
        kind, at = chance.randrange(4), chance.randrange(len(damaged))
        if kind == 0: damaged[at] = chance.randrange(256)
        elif kind == 1: damaged[at:at + 4] = chance.choice((b"\\xff" * 4, b"\\0" * 4, b"\\x7f\\xff\\xff\\xff"))
        elif kind == 2: del damaged[at:at + chance.randrange(1, 40)]
        else: damaged[at:at] = chance.randbytes(chance.randrange(1, 40))
        damaged = damaged or bytearray(b"x")
    try:
        found = read_picture(io.BytesIO(bytes(damaged)), name, 1_000_000)
        assert found.width * found.height <= 1_000_000 and len(found.placeholder) <= 64
        result = "read"
    except AssertionError:
        raise
    except Exception as error:
        result = "refused"
        if isinstance(error, (PermissionError, ImportError)):  # the limits broke a decoder
            result = repr(error)
    results[result] = results.get(result, 0) + 1
print(json.dumps(results))
"""


def test_damaged_pictures_are_read_or_refused_within_the_limits() -> None:
    program = PROGRAM.replace("FOLDERS", repr(FOLDERS)).replace("CASES", str(CASES))
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout)
    assert set(results) == {"read", "refused"}
    assert sum(results.values()) == CASES
    assert min(results.values()) > CASES // 10
