/*
 * From the public file handle to the parsed file: for engine.c, the inspecting programs and tests.
 */
#ifndef ENGINE_FILE_GGUF_H
#define ENGINE_FILE_GGUF_H

#include "engine/file.h"
#include "engine/gguf/gguf.h"

/* Owned by the file, lives as long. */
const struct gguf *bn_file_gguf(const struct bn_file *file);

#endif
