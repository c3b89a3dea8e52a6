/*
 * One small comparison of every kernel in a table with ref. The self-test runs it in a child
 * process; tests/engine/check_kernels is the thorough one.
 */
#ifndef ENGINE_CPU_KERNELS_AGREE_H
#define ENGINE_CPU_KERNELS_AGREE_H

#include "engine/cpu/kernels.h"

/* Name of the first kernel whose bytes differ from ref's, NULL if none. About a millisecond and 200
 * kB of stack. */
const char *kernels_disagreement(const struct cpu_kernels *k);

/* The same in a forked child, so that an illegal instruction or an endless loop costs nothing here.
 * False: `why` says what happened. Where the system refuses to fork, the kernels are not trusted:
 * false. */
bool kernels_try(const struct cpu_kernels *k, char *why, size_t why_bytes);

#endif
