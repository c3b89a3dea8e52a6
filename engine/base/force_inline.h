/*
 * BN_FORCE_INLINE, for kernel bodies that are written once and specialised by constant arguments.
 *
 * It includes `static`: without it the linker could use a copy compiled for a newer processor in
 * code for an older one.
 */
#ifndef ENGINE_BASE_FORCE_INLINE_H
#define ENGINE_BASE_FORCE_INLINE_H

#if defined(__GNUC__)
#define BN_FORCE_INLINE static inline __attribute__((always_inline))
#else
#define BN_FORCE_INLINE static inline
#endif

#endif
