/*
 * What this processor can do, asked in one place. Nothing else reads CPUID.
 *
 * A capability counts only if the operating system grants its registers (XGETBV; AMX: arch_prctl)
 * and, for the rung in use, a self-test ran its kernels in a child process and compared them with
 * ref: an illegal instruction there costs nothing.
 */
#ifndef ENGINE_CPU_CPU_CAPS_H
#define ENGINE_CPU_CPU_CAPS_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Rungs in ascending order within a family. */
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
};

void cpu_caps_detect(struct cpu_caps *caps);

/* Lower `caps` to rungs up to `isa` ("ref" ... "i8mm"). BN_EARG: no such name; BN_EUNSUPPORTED:
 * this machine does not have it (the sentence says what is missing). NULL leaves caps alone. */
bool cpu_caps_limit(struct cpu_caps *caps, const char *isa, struct bn_error *err);

const char *cpu_isa_name(enum cpu_isa isa);  /* "avx512vnni": option and JSON */
const char *cpu_isa_title(enum cpu_isa isa); /* "AVX-512 VNNI": for people */

/* Numbers of the CPUs that the calling thread's mask allows: one of each physical core, then their
 * siblings. At most cap are written; returns how many there are, n_cores how many cores. 0: the
 * system does not say. */
size_t cpu_list_allowed(size_t *cpus, size_t cap, size_t *n_cores);

/* CPUs this process may use: affinity mask, cgroup quota, one per physical core. At least 1. */
size_t cpu_default_threads(void);
/* Whole CPUs that the quotas of the control groups pay for, rounded up; SIZE_MAX: no limit. Reads
 * ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup: "" but in tests. */
size_t cpu_quota_threads(const char *root);

/* Compare the kernels of a table with ref in a forked child process, so that an illegal instruction
 * or an endless loop cannot harm this process. False: `why` has the reason. Kernels are not trusted
 * either where the system refuses to fork. */
struct cpu_kernels;
bool cpu_caps_try_kernels(const struct cpu_kernels *k, char *why, size_t why_bytes);

/* Try each instruction set in `caps` so, and clear those that fail. `why` (may be NULL) gets one
 * line for each. Takes a few milliseconds. */
void cpu_caps_self_test(struct cpu_caps *caps, char *why, size_t why_bytes);

#endif
