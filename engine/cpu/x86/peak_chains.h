/*
 * Independent sums for a loop that measures arithmetic, each a variable of its own: arrays of them
 * would live in memory. Twelve are more than any of the instructions is deep (5 cycles, two begin
 * in each), and fit beside their operands in 16 registers.
 */
#ifndef ENGINE_CPU_X86_PEAK_CHAINS_H
#define ENGINE_CPU_X86_PEAK_CHAINS_H

#define CHAINS 12
#define EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

#endif
