#!/usr/bin/env python3
"""
embed_bytes.py IN OUT HEADER NAME: writes the file IN as C source OUT, so that the compiler can link
its bytes into a program. OUT defines `const uint64_t NAME[]`, padded with zeros, and `const size_t
NAME_bytes`, the size of IN. HEADER declares both. Words make the source shorter than bytes.
"""
import struct
import sys


def main():
    path, out, header, name = sys.argv[1:]
    with open(path, 'rb') as file:
        data = file.read()
    words = struct.unpack(f'={(len(data) + 7) // 8}Q', data + bytes(-len(data) % 8))
    with open(out, 'w', encoding='ascii') as file:
        file.write(f'#include "{header}"\n\nconst size_t {name}_bytes = {len(data)};\n'
                   f'_Alignas(64) const uint64_t {name}[] = {{\n')
        for i in range(0, len(words), 4):
            file.write(', '.join(f'0x{word:016x}' for word in words[i:i + 4]) + ',\n')
        file.write('};\n')


if __name__ == '__main__':
    main()
