/*
 * The bytes of app/demo/demo.gguf, the small model that runs when the user names none. The build
 * generates the source with engine/base/embed_bytes.py. Pass both to bn_file_open_memory.
 */
#ifndef APP_DEMO_MODEL_H
#define APP_DEMO_MODEL_H

#include <stddef.h>
#include <stdint.h>

extern const uint64_t demo_model[];   /* the file in words, the last one padded with zeros */
extern const size_t demo_model_bytes; /* size of the file, without the padding */

#endif
