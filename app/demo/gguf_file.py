"""The trained model as a GGUF file: I2_S ternary layers (128 codes in 32 bytes), F32 norms, F16 embedding."""
import struct

import numpy as np

U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
TYPES = {"f32": 0, "f16": 1, "i2_s": 36}
NAMES = {number: name for name, number in TYPES.items()}
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


def from_i2s(data, shape):
    """-> (codes -1, 0, +1 as float, scale)"""
    n = shape[0] * shape[1]
    packed = np.frombuffer(data, np.uint8, n // 4).reshape(-1, 1, 32)
    q = np.concatenate([packed >> 6, packed >> 4 & 3, packed >> 2 & 3, packed & 3], 1)
    return q.reshape(shape).astype(np.float32) - 1, struct.unpack_from("<f", data, n // 4)[0]


def read(path):
    """For files of write(). -> ({key: value}, {tensor: codes and scale, or the values as float32})"""
    with open(path, "rb") as f:
        data = f.read()
    at = 0

    def take(kind):
        nonlocal at
        if kind == STR:
            n = take("<Q")
            at += n
            return data[at - n:at].decode()
        if kind == ARR:
            item, n = take("<I"), take("<Q")
            return [take(item) for _ in range(n)]
        form = {**PACK, I32: "<i"}.get(kind, kind)
        at += struct.calcsize(form)
        return struct.unpack_from(form, data, at - struct.calcsize(form))[0]

    at = 8
    n_tensors, n_meta = take("<Q"), take("<Q")
    meta = {}
    for _ in range(n_meta):
        key = take(STR)
        meta[key] = take(take("<I"))
    places = []
    for _ in range(n_tensors):
        name = take(STR)
        dims = [take("<Q") for _ in range(take("<I"))]
        places.append((name, tuple(dims[::-1]), NAMES[take("<I")], take("<Q")))
    start, tensors = padded(at), {}
    for name, shape, kind, offset in places:
        if kind == "i2_s":
            tensors[name] = from_i2s(data[start + offset:], shape)
        else:
            kind, n = {"f32": "<f4", "f16": "<f2"}[kind], int(np.prod(shape))
            tensors[name] = np.frombuffer(data, kind, n, start + offset).reshape(shape).astype(np.float32)
    return meta, tensors
