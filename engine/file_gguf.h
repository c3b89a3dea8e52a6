/*
 * Access to the parsed file behind the public file handle, for engine.c, bitnet-inspect and tests.
 */
#ifndef ENGINE_FILE_GGUF_H
#define ENGINE_FILE_GGUF_H

#include "engine/file.h"
#include "engine/gguf/gguf.h"

/* The file owns the result. */
const struct gguf *bn_file_gguf(const struct bn_file *file);

#endif
