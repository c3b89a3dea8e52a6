#!/usr/bin/env python3
"""
lint_headers.py ROOT COMPILER...: each header compiles alone, and when it is included twice.

Headers of one instruction set or of CUDA need compiler flags of their own and are skipped.
"""
import os
import subprocess
import sys
import tempfile

from lint import walk

FLAGS = ['-std=c11', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-D_POSIX_C_SOURCE=200809L']
SKIPPED = ('engine/cpu/x86/', 'engine/cpu/arm/', 'engine/cuda/')


def compiles(root, compiler, header):
    """The compiler's errors for a file that includes `header` twice, '' if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, 'unit.c')
        with open(unit, 'w', encoding='utf-8') as file:
            file.write(f'#include "{header}"\n#include "{header}"\nextern int unit;\n')
        done = subprocess.run(compiler + FLAGS + ['-I', root, unit], stderr=subprocess.PIPE,
                              text=True, check=False)
        return '' if done.returncode == 0 else done.stderr or 'the compiler failed'


def main():
    root, compiler = sys.argv[1], sys.argv[2:]
    headers = [p for p in walk(root) if p.endswith('.h') and not p.startswith(SKIPPED)]
    bad = 0
    for header in headers:
        errors = compiles(root, compiler, header)
        if errors:
            print(f'{header} does not compile alone:\n{errors}')
            bad += 1
    print(f'{len(headers)} headers, {bad} do not compile alone')
    return 1 if bad or not headers else 0


if __name__ == '__main__':
    sys.exit(main())
