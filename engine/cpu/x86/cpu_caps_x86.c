/*
 * Detects the x86 instruction sets with CPUID and XGETBV. An instruction set is usable if the
 * processor has the extensions that its files are compiled for and the operating system saves its
 * registers. (PREFETCHW needs no test: see meson.build.) The self-test (cpu_caps_selftest.c)
 * detects hypervisors that report extensions that do not work.
 *
 * This file is compiled with -mxsave for the XGETBV intrinsic. XGETBV runs only if CPUID reports
 * OSXSAVE. Linux permits AMX tiles only after a request with arch_prctl; a second request is
 * harmless.
 */
#define _GNU_SOURCE /* syscall */
#include "engine/cpu/x86/cpu_caps_x86.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bit numbers: Intel SDM volume 2, CPUID. */
#define L1_ECX_FMA (1u << 12)
#define L1_ECX_OSXSAVE (1u << 27)
#define L1_ECX_AVX (1u << 28)
#define L1_ECX_F16C (1u << 29)
#define L7_EBX_AVX2 (1u << 5)
#define L7_EBX_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
#define L7_ECX_AVX512_VNNI (1u << 11)
#define L7_EDX_AMX (1u << 24 | 1u << 25) /* tiles, int8 products */
#define L7_1_EAX_AVX_VNNI (1u << 4)
#define XCR0_YMM 0x06u /* SSE and AVX state */
#define XCR0_ZMM 0xe6u /* XCR0_YMM, mask registers and both parts of the 512-bit state */
#define XCR0_TILES (1u << 17 | 1u << 18)
#define PALETTE_1_EBX (8u << 16 | 64u) /* leaf 1DH: 8 tiles, rows of 64 bytes */
#define PALETTE_1_ECX 16u              /* 16 rows in a tile */
/* Linux asm/prctl.h. XTILEDATA is a state component: Intel SDM volume 1, 13.1. */
#define REQ_XCOMP_PERM 0x1023
#define XTILEDATA 18

/* The registers that CPUID returns. */
struct leaf {
    unsigned eax, ebx, ecx, edx;
};

/* All zero if the processor has no such leaf. */
static struct leaf read_leaf(unsigned leaf, unsigned sub)
{
    struct leaf r = {0};
    if (!__get_cpuid_count(leaf, sub, &r.eax, &r.ebx, &r.ecx, &r.edx))
        r = (struct leaf){0};
    return r;
}

static bool has_all(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

/* Request the use of AMX tiles for this process. False if the processor lacks AMX int8 or does not
 * have eight tiles of 16 rows of 64 bytes, or if the operating system does not allow it. `granted`
 * has the low bits of XCR0: the registers that the operating system saves. */
static bool tiles_granted(const struct leaf *l7, unsigned granted)
{
    if (!has_all(l7->edx, L7_EDX_AMX) || !has_all(granted, XCR0_TILES))
        return false;
    const struct leaf palette = read_leaf(0x1d, 1);
    return palette.ebx == PALETTE_1_EBX && palette.ecx == PALETTE_1_ECX &&
           syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0;
}

/* Leaf 0 holds the name of the maker in EBX, EDX and ECX. */
static bool is_amd(void)
{
    const struct leaf l0 = read_leaf(0, 0);
    const unsigned name[3] = {l0.ebx, l0.edx, l0.ecx};
    return memcmp(name, "AuthenticAMD", sizeof name) == 0;
}

void cpu_caps_detect_x86(struct cpu_caps *caps)
{
    caps->is_amd = is_amd();
    const struct leaf l1 = read_leaf(1, 0), l7 = read_leaf(7, 0);
    if (!has_all(l1.ecx, L1_ECX_OSXSAVE | L1_ECX_AVX))
        return;
    const uint64_t xcr0 = _xgetbv(0);
    const unsigned granted = (unsigned)xcr0;
    if (!has_all(granted, XCR0_YMM) || !has_all(l1.ecx, L1_ECX_FMA | L1_ECX_F16C) ||
        !has_all(l7.ebx, L7_EBX_AVX2))
        return;
    caps->has[ISA_AVX2] = true;
    /* EAX of leaf 7 is the number of its last sub-leaf. */
    if (l7.eax >= 1 && has_all(read_leaf(7, 1).eax, L7_1_EAX_AVX_VNNI))
        caps->has[ISA_AVXVNNI] = true;
    if (has_all(granted, XCR0_ZMM) && has_all(l7.ebx, L7_EBX_AVX512) &&
        has_all(l7.ecx, L7_ECX_AVX512_VNNI))
        caps->has[ISA_AVX512VNNI] = true;
    if (caps->has[ISA_AVX512VNNI] && tiles_granted(&l7, granted))
        caps->has[ISA_AMX] = true;
}
