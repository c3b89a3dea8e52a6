/*
 * Numbers of the coarse plane of an output head that every device must agree on, so that all make
 * the same bytes: docs/kernels.md, "The head, screened". For kernels too: nothing is included.
 */
#ifndef ENGINE_MODEL_COARSE_CODE_H
#define ENGINE_MODEL_COARSE_CODE_H

#define COARSE_KEY 0x636f61727365u /* any number will do; never chosen by a model or a user */
#define COARSE_MAX 1e15f           /* magnitudes above are not packed */
#define COARSE_MIN_STEP 0x0d80u    /* 2^-100 as BF16: its reciprocal is a number */

/* Hidden states are screened whose largest |x| lies between MIN and MAX. */
#define COARSE_X_MIN 1e-15f  /* where nothing below underflows */
#define COARSE_X_MAX 1e15f   /* 1e15 * COARSE_MAX * 2^20 columns is still a number */
#define COARSE_LIMIT 16256.0 /* 127 * 128: the largest |x| as a code, so that planes are bytes */

#endif
