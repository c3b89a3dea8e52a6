/*
 * BN_FORCE_INLINE, for kernel bodies that are written once and specialised by constant arguments.
 *
 * It includes `static`: a copy that is not inlined must stay in its file, because other files are
 * compiled for other processors.
 */
#ifndef ENGINE_BASE_FORCE_INLINE_H
#define ENGINE_BASE_FORCE_INLINE_H

#if defined(__GNUC__)
#define BN_FORCE_INLINE static inline __attribute__((always_inline))
#else
#define BN_FORCE_INLINE static inline
#endif

#endif
