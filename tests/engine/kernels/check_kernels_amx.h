/*
 * The AMX kernels with emulated tile instructions, for check_kernels.
 */
#ifndef TESTS_ENGINE_CHECK_KERNELS_AMX_H
#define TESTS_ENGINE_CHECK_KERNELS_AMX_H

#include "engine/cpu/kernels.h"

/* Replace the kernels of a table for AVX-512 VNNI by those for AMX. Does nothing on processors that
 * are not x86. */
void use_emulated_amx(struct cpu_kernels *k);

#endif
