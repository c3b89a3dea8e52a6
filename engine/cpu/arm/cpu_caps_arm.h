/*
 * Detection of the ARM instruction sets that the processor has and the operating system allows.
 */
#ifndef ENGINE_CPU_ARM_CPU_CAPS_ARM_H
#define ENGINE_CPU_ARM_CPU_CAPS_ARM_H

#include "engine/cpu/cpu_caps.h"

/* Set caps->has for NEON and, on Linux, for dotprod and i8mm. Other entries and members keep their
 * values. */
void cpu_caps_detect_arm(struct cpu_caps *caps);

#endif
