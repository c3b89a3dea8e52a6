/*
 * Detection of the ARM instruction sets that the processor has and the operating system allows.
 */
#ifndef ENGINE_CPU_ARM_CPU_CAPS_ARM_H
#define ENGINE_CPU_ARM_CPU_CAPS_ARM_H

#include "engine/cpu/cpu_caps.h"

/* Set the ARM entries of caps->has. Other members keep their values. */
void cpu_caps_detect_arm(struct cpu_caps *caps);

#endif
