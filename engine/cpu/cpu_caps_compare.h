/*
 * The comparison that the self-test (cpu_caps_selftest.c) runs in a child process.
 */
#ifndef ENGINE_CPU_CPU_CAPS_COMPARE_H
#define ENGINE_CPU_CPU_CAPS_COMPARE_H

#include "engine/cpu/kernels.h"

/* The name of the first kernel whose bytes differ from those of ref, as static text; NULL if there
 * is none. Takes about a millisecond and 400 kB of stack. A kernel may crash or never end. */
const char *cpu_caps_first_difference(const struct cpu_kernels *k);

#endif
