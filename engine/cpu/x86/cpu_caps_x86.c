/*
 * CPUID and XGETBV. A rung counts when the processor has every instruction its files are compiled
 * for and the operating system saves the registers; hypervisors that lie are caught by the
 * self-test.
 *
 * Compiled with -mxsave for the intrinsic; XGETBV runs only where CPUID says OSXSAVE.
 */
#include "engine/cpu/x86/cpu_caps_x86.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>

/* Bit numbers: Intel SDM volume 2, CPUID. */
#define L1_ECX_FMA (1u << 12)
#define L1_ECX_OSXSAVE (1u << 27)
#define L1_ECX_AVX (1u << 28)
#define L1_ECX_F16C (1u << 29)
#define L7_EBX_AVX2 (1u << 5)
#define L7_EBX_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
#define L7_ECX_AVX512_VNNI (1u << 11)
#define L7_1_EAX_AVX_VNNI (1u << 4)
#define XCR0_YMM 0x06u /* SSE, AVX state */
#define XCR0_ZMM 0xe6u /* and opmask, both halves of the 512-bit state */

struct leaf {
    unsigned eax, ebx, ecx, edx;
};

/* All zero where the processor has no such leaf. */
static struct leaf read_leaf(unsigned leaf, unsigned sub)
{
    struct leaf r = {0};
    if (!__get_cpuid_count(leaf, sub, &r.eax, &r.ebx, &r.ecx, &r.edx))
        r = (struct leaf){0};
    return r;
}

static bool all(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

void cpu_caps_detect_x86(struct cpu_caps *caps)
{
    const struct leaf l1 = read_leaf(1, 0), l7 = read_leaf(7, 0);
    if (!all(l1.ecx, L1_ECX_OSXSAVE | L1_ECX_AVX))
        return;
    const uint64_t xcr0 = _xgetbv(0);
    const unsigned granted = (unsigned)xcr0;
    if (!all(granted, XCR0_YMM) || !all(l1.ecx, L1_ECX_FMA | L1_ECX_F16C) ||
        !all(l7.ebx, L7_EBX_AVX2))
        return;
    caps->has[ISA_AVX2] = true;
    if (l7.eax >= 1 && all(read_leaf(7, 1).eax, L7_1_EAX_AVX_VNNI))
        caps->has[ISA_AVXVNNI] = true;
    if (all(granted, XCR0_ZMM) && all(l7.ebx, L7_EBX_AVX512) && all(l7.ecx, L7_ECX_AVX512_VNNI))
        caps->has[ISA_AVX512VNNI] = true;
}
