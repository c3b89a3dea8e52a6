"""
Changes of GGUF files for tests. make_model writes the files; a test that needs a file which make_model cannot write
changes one of these. This is the only Python code of the tests that knows how GGUF stores keys and tensors.
"""
import struct

I32, F32, STRING, I64 = 5, 6, 8, 11  # types of values
FORMATS = {I32: '<i', F32: '<f', I64: '<q'}
ALIGNMENT = 32  # of the tensor data
N_KEYS = slice(16, 24)  # after the magic, the version and the number of tensors
FIRST_KEY = 24


def string(text):
    """A string as GGUF stores it."""
    return struct.pack('<Q', len(text.encode())) + text.encode()


def entry(key, kind, value):
    """A key with its value."""
    data = string(value) if kind == STRING else struct.pack(FORMATS[kind], value)
    return string(key) + struct.pack('<I', kind) + data


def with_keys(data, *entries):
    """The file with more keys: (key, type, value). A string behind them keeps the tensor data aligned."""
    added = b''.join(entry(*each) for each in entries)
    n_without = len(added) + len(entry('test.padding', STRING, ''))
    added += entry('test.padding', STRING, ' ' * (-n_without % ALIGNMENT))
    n_keys, = struct.unpack('<Q', data[N_KEYS])
    changed = bytearray(data)
    changed[N_KEYS] = struct.pack('<Q', n_keys + len(entries) + 1)
    changed[FIRST_KEY:FIRST_KEY] = added
    return bytes(changed)


def value_at(data, key):
    """The offset of the value of this key, which is no array."""
    return data.index(string(key)) + len(string(key)) + 4


def items_at(data, key):
    """The offset of the first item of an array: behind the type of the items and their number."""
    return value_at(data, key) + 4 + 8


class TensorInfo:
    """What a file says about one tensor. `dims` and `offset` are those of the file, the other members are places."""

    def __init__(self, data, name):
        self.n_dims_at = data.index(string(name)) + len(string(name))
        n_dims, = struct.unpack_from('<I', data, self.n_dims_at)
        self.dims_at = self.n_dims_at + 4
        self.dims = struct.unpack_from(f'<{n_dims}Q', data, self.dims_at)
        self.type_at = self.dims_at + 8 * n_dims
        self.offset, = struct.unpack_from('<Q', data, self.type_at + 4)
        self.end = self.type_at + 4 + 8
