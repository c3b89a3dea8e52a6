/*
 * From the public file handle to the parsed file: for engine.c, the inspecting programs and tests.
 */
#ifndef ENGINE_GGUF_GGUF_FILE_H
#define ENGINE_GGUF_GGUF_FILE_H

#include "engine/file.h"
#include "engine/gguf/gguf.h"

/* Owned by the file, lives as long. */
const struct gguf *bn_file_gguf(const struct bn_file *file);

#endif
