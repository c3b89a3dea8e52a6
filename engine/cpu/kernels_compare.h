/*
 * One small comparison of every kernel of a table with ref. The self-test runs it in a child
 * process when a model is opened; tests/engine/check_kernels is the thorough comparison.
 */
#ifndef ENGINE_CPU_KERNELS_COMPARE_H
#define ENGINE_CPU_KERNELS_COMPARE_H

#include "engine/cpu/kernels.h"

/* Returns the name of the first kernel whose bytes differ from ref's, NULL if there is none. Takes
 * about a millisecond and 250 kB of stack. */
const char *kernels_first_difference(const struct cpu_kernels *k);

#endif
