/*
 * The instruction sets of this processor, and the self-test of their kernels.
 *
 * An x86 instruction set counts only if the operating system enables its registers (XGETBV; for AMX
 * also arch_prctl). Only x86/cpu_caps_x86.c, a part of this module, reads CPUID.
 */
#ifndef ENGINE_CPU_CPU_CAPS_H
#define ENGINE_CPU_CPU_CAPS_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Within each processor family, kernels of a later set replace those of an earlier one. A processor
 * may lack a set in between. */
enum cpu_isa {
    ISA_REF,
    ISA_AVX2,
    ISA_AVXVNNI,
    ISA_AVX512VNNI,
    ISA_AMX,
    ISA_NEON,
    ISA_DOTPROD,
    ISA_I8MM,
    ISA_N
};

struct cpu_caps {
    bool has[ISA_N]; /* has[ISA_REF] is always true */
    bool is_amd;     /* the processor is made by AMD; cpu_kernels_init makes other choices then */
};

/* Fill in *caps for this processor, operating system and build. */
void cpu_caps_detect(struct cpu_caps *caps);

/* Remove the instruction sets above `isa` (a cpu_isa_name) from `caps`. NULL changes nothing.
 * BN_EARG: unknown name. BN_EUNSUPPORTED: `caps` does not have it. */
bool cpu_caps_limit(struct cpu_caps *caps, const char *isa, struct bn_error *err);

const char *cpu_isa_name(enum cpu_isa isa);  /* "avx512vnni", for options and JSON */
const char *cpu_isa_title(enum cpu_isa isa); /* "AVX-512 VNNI", for messages */

/* Compare the kernels of a table with ref in a forked child process, so that an illegal instruction
 * or an endless loop cannot harm this process. False if a kernel differs, if the child crashes or
 * does not end within some seconds, or if it cannot run. `why` must not be NULL; it receives the
 * reason of a false result and is not written otherwise. */
struct cpu_kernels;
bool cpu_caps_try_kernels(const struct cpu_kernels *k, char *why, size_t why_bytes);

/* Test the kernels of each instruction set with cpu_caps_try_kernels and remove the sets that fail.
 * Each set is tested together with the lower sets that passed. `why` (may be NULL) receives a line
 * for each removed set, cut to why_bytes, or an empty text. Takes a few milliseconds. */
void cpu_caps_self_test(struct cpu_caps *caps, char *why, size_t why_bytes);

#endif
