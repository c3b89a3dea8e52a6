/*
 * BN_FORCE_INLINE: for kernel bodies written once and instantiated by constant arguments. Always
 * static, so that no copy compiled for a newer processor is linked into code for an older one.
 */
#ifndef ENGINE_BASE_FORCE_INLINE_H
#define ENGINE_BASE_FORCE_INLINE_H

#if defined(__GNUC__)
#define BN_FORCE_INLINE static inline __attribute__((always_inline))
#else
#define BN_FORCE_INLINE static inline
#endif

#endif
