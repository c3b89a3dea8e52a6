#!/usr/bin/env python3
"""
cuda_embed.py IN OUT: a file of bytes as a C array of 64-bit words, so that no tool beside the
compiler is needed to link it into the program.
"""
import struct
import sys


def main():
    with open(sys.argv[1], 'rb') as file:
        data = file.read()
    data += bytes(-len(data) % 8)
    words = struct.unpack(f'={len(data) // 8}Q', data)
    with open(sys.argv[2], 'w', encoding='ascii') as file:
        file.write('#include "engine/cuda/cuda_fatbin.h"\n\nconst uint64_t cuda_fatbin[] = {\n')
        for i in range(0, len(words), 4):
            file.write(', '.join(f'0x{word:016x}' for word in words[i:i + 4]) + ',\n')
        file.write('};\n')


if __name__ == '__main__':
    main()
