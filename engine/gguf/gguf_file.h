/*
 * Access to the parsed file behind the public file handle, for engine.c, bitnet-inspect and tests.
 */
#ifndef ENGINE_GGUF_GGUF_FILE_H
#define ENGINE_GGUF_GGUF_FILE_H

#include "engine/file.h"
#include "engine/gguf/gguf.h"

/* The file owns the result. */
const struct gguf *bn_file_gguf(const struct bn_file *file);

#endif
