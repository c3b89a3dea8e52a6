/*
 * The CPU backend. engine/backend/backend.c reaches it only through this table of operations.
 */
#ifndef ENGINE_CPU_CPU_BACKEND_H
#define ENGINE_CPU_CPU_BACKEND_H

#include "engine/backend/backend.h"

extern const struct backend_ops cpu_backend_ops;

#endif
