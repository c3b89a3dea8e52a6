/*
 * Macros for loops that measure the arithmetic peak on independent sums ("chains") in registers.
 * Each sum is a separate variable, because the compiler would keep an array in memory. Twelve sums
 * are enough: a measured instruction takes at most 5 cycles, and two start per cycle. The sums and
 * the operands fit in 16 registers.
 */
#ifndef ENGINE_CPU_X86_PEAK_CHAINS_H
#define ENGINE_CPU_X86_PEAK_CHAINS_H

#define CHAINS 12
/* Expand DO(i) for each chain i. */
#define EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

/* Hides the value of a register from the compiler. Otherwise the compiler could compute the result
 * of the loop in advance, or compute a constant product only once. */
#define OPAQUE(v) __asm__ volatile("" : "+x"(v))

#endif
