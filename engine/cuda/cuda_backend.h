/*
 * The backend for NVIDIA GPUs: an implementation of engine/backend/backend.h. At run time it needs
 * compute capability 8.0 or later, and a driver that supports the major CUDA version of the build.
 * The build needs no GPU and no driver.
 */
#ifndef ENGINE_CUDA_CUDA_BACKEND_H
#define ENGINE_CUDA_CUDA_BACKEND_H

#include "engine/backend/backend.h"

extern const struct backend_ops cuda_backend_ops;

#endif
