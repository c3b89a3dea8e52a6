/*
 * Hints for the processor. They do nothing on a processor or compiler not named below.
 *
 * Call cpu_relax in loops that wait for another thread. It saves power and makes the other hardware
 * thread of the core faster.
 */
#ifndef ENGINE_BASE_RELAX_H
#define ENGINE_BASE_RELAX_H

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* stalls for some cycles; `yield` is a no-op on most cores */
#endif
}

/* Start to load the cache line that contains p. Any address is allowed. */
static inline void cpu_prefetch(const void *p)
{
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

#endif
