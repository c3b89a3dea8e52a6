"""Writes the trained model as a GGUF file: I2_S ternary layers (128 codes in 32 bytes), F32 norms, F16 table."""
import struct

import numpy as np

U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
TYPES = {"f32": 0, "f16": 1, "i2_s": 36}
ALIGN = 32
PACK = {U32: "<I", F32: "<f", BOOL: "<?"}


def text(x):
    b = x.encode()
    return struct.pack("<Q", len(b)) + b


def entry(key, kind, value, item=None):
    head = text(key) + struct.pack("<I", kind)
    if kind == STR:
        return head + text(value)
    if kind != ARR:
        return head + struct.pack(PACK[kind], value)
    head += struct.pack("<IQ", item, len(value))
    if item == STR:
        return head + b"".join(text(v) for v in value)
    return head + np.asarray(value, {F32: "<f4", I32: "<i4"}[item]).tobytes()


def i2s(codes, scale):
    """codes (rows, cols) of -1, 0, +1: element p + 32 i of each 128 is in bits 7-2i, 6-2i of byte p."""
    q = (codes + 1).astype(np.uint8).reshape(-1, 4, 32)
    packed = q[:, 0] << 6 | q[:, 1] << 4 | q[:, 2] << 2 | q[:, 3]
    return packed.tobytes() + struct.pack("<f", scale) + bytes(28)


def padded(n):
    return (n + ALIGN - 1) // ALIGN * ALIGN


def write(path, meta, tensors):
    """meta: entries; tensors: (name, shape as in PyTorch, type name, bytes)"""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + b"".join(meta)
    offset = 0
    for name, shape, kind, data in tensors:
        dims = shape[::-1]
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, TYPES[kind], offset)
        offset += padded(len(data))
    with open(path, "wb") as f:
        f.write(head + bytes(padded(len(head)) - len(head)))
        for _, _, _, data in tensors:
            f.write(data + bytes(padded(len(data)) - len(data)))
