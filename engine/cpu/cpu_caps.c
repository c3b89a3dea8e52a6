/*
 * Names of the instruction sets, and the limit that the user can set. x86/ and arm/ detect the
 * instruction sets of the processor; cpu_caps_selftest.c tests their kernels.
 */
#include "engine/cpu/cpu_caps.h"

#include <string.h>

#if defined(__x86_64__)
#include "engine/cpu/x86/cpu_caps_x86.h"
#elif defined(__aarch64__)
#include "engine/cpu/arm/cpu_caps_arm.h"
#endif

struct isa_row {
    const char *name, *title;
    enum cpu_isa family; /* lowest instruction set of its processor family */
    const char *needs;   /* for the error message */
};

static const struct isa_row isa_rows[ISA_N] = {
    [ISA_REF] = {"ref", "plain C", ISA_REF, "nothing"},
    [ISA_AVX2] = {"avx2", "AVX2", ISA_AVX2, "AVX2, FMA and F16C"},
    [ISA_AVXVNNI] = {"avxvnni", "AVX-VNNI", ISA_AVX2, "AVX-VNNI beside AVX2"},
    [ISA_AVX512VNNI] = {"avx512vnni", "AVX-512 VNNI", ISA_AVX2,
                        "AVX-512 F, BW, DQ, VL and VNNI beside AVX2"},
    [ISA_AMX] = {"amx", "AMX", ISA_AVX2, "AMX int8 tiles beside AVX-512 VNNI"},
    [ISA_NEON] = {"neon", "NEON", ISA_NEON, "an ARM processor with NEON"},
    [ISA_DOTPROD] = {"dotprod", "NEON dot product", ISA_NEON, "the ARM dot product instructions"},
    [ISA_I8MM] = {"i8mm", "NEON int8 matrix multiply", ISA_NEON, "the ARM i8mm instructions"},
};

const char *cpu_isa_name(enum cpu_isa isa)
{
    return isa_rows[isa].name;
}

const char *cpu_isa_title(enum cpu_isa isa)
{
    return isa_rows[isa].title;
}

void cpu_caps_detect(struct cpu_caps *caps)
{
    *caps = (struct cpu_caps){.has[ISA_REF] = true};
#if defined(__x86_64__)
    cpu_caps_detect_x86(caps);
#elif defined(__aarch64__)
    cpu_caps_detect_arm(caps);
#endif
}

bool cpu_caps_limit(struct cpu_caps *caps, const char *isa, struct bn_error *err)
{
    if (!isa)
        return true;
    enum cpu_isa top = ISA_REF;
    while (top < ISA_N && strcmp(isa_rows[top].name, isa) != 0)
        top++;
    if (top == ISA_N)
        return bn_fail(err, BN_EARG,
                       "no instruction set is called '%s' "
                       "(ref, avx2, avxvnni, avx512vnni, amx, neon, dotprod, i8mm)",
                       isa);
    if (!caps->has[top])
        return bn_fail(err, BN_EUNSUPPORTED,
                       "kernels for %s cannot run here: "
                       "they need %s, and a build and an operating system that allow it",
                       isa_rows[top].title, isa_rows[top].needs);
    for (enum cpu_isa i = ISA_REF + 1; i < ISA_N; i++)
        if (i > top || isa_rows[i].family != isa_rows[top].family)
            caps->has[i] = false;
    return true;
}
