/*
 * Macros for a loop that measures the arithmetic peak of one instruction on independent sums in
 * registers. Each sum is a separate variable, because the compiler would keep an array in memory.
 * Twelve sums hide the latency of every measured instruction (5 cycles, two start per cycle) and
 * fit with their operands in 16 registers.
 */
#ifndef ENGINE_CPU_X86_PEAK_CHAINS_H
#define ENGINE_CPU_X86_PEAK_CHAINS_H

#define CHAINS 12
#define EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

/* Hides the value of a register from the compiler, which could otherwise compute the result of the
 * loop in advance, or a constant product only once. */
#define OPAQUE(v) __asm__ volatile("" : "+x"(v))

#endif
