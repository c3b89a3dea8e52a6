/*
 * Detection of the x86 instruction sets that the processor has and the operating system allows.
 */
#ifndef ENGINE_CPU_X86_CPU_CAPS_X86_H
#define ENGINE_CPU_X86_CPU_CAPS_X86_H

#include "engine/cpu/cpu_caps.h"

/* Set caps->has to true for each such instruction set, and set caps->is_amd. Other
 * entries keep their values. */
void cpu_caps_detect_x86(struct cpu_caps *caps);

#endif
