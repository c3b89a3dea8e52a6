/*
 * Detects the ARM instruction sets. NEON is part of the 64-bit architecture. The Linux kernel
 * reports dotprod and i8mm in the auxiliary vector of the process; on other operating systems only
 * NEON is used.
 */
#include "engine/cpu/arm/cpu_caps_arm.h"

#if defined(__linux__)
#include <sys/auxv.h>
#endif

/* Bits of the auxiliary vector: arch/arm64/include/uapi/asm/hwcap.h in the Linux sources. */
#define HWCAP_DOTPROD (1ul << 20)      /* HWCAP_ASIMDDP there */
#define HWCAP2_INT8_MATMUL (1ul << 13) /* HWCAP2_I8MM there */

void cpu_caps_detect_arm(struct cpu_caps *caps)
{
    caps->has[ISA_NEON] = true;
#if defined(__linux__)
    caps->has[ISA_DOTPROD] = getauxval(AT_HWCAP) & HWCAP_DOTPROD;
    /* The file with the i8mm kernel is compiled with dotprod, too (meson.build). */
    caps->has[ISA_I8MM] = caps->has[ISA_DOTPROD] && getauxval(AT_HWCAP2) & HWCAP2_INT8_MATMUL;
#endif
}
