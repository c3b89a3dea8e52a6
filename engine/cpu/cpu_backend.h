/*
 * The CPU backend: a whole model on the cores of this machine. Its table of operations is all that
 * backend.c sees of it.
 */
#ifndef ENGINE_CPU_CPU_BACKEND_H
#define ENGINE_CPU_CPU_BACKEND_H

#include "engine/backend/backend.h"

extern const struct backend_ops cpu_backend_ops;

#endif
