/*
 * Messages about files that the program refuses. A message about a model that cannot run names the
 * row of docs/models.md that explains why and what to use instead. A file that is not GGUF gets one
 * line about its probable origin.
 */
#ifndef ENGINE_GGUF_REFUSAL_H
#define ENGINE_GGUF_REFUSAL_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum refusal {
    REFUSED_HUNYUAN,
    REFUSED_TILED,
    REFUSED_OLD_IK,
    REFUSED_DENSE,
    REFUSED_TABLE,
    REFUSED_SAFETENSORS,
    REFUSED_EMBEDDINGS,
    REFUSED_OTHER_GRAPH,
    REFUSED_OTHER_GGUF,
    N_REFUSALS
};

/* Names of the rows in the table "Refused" of docs/models.md. */
extern const char *const refusal_rows[N_REFUSALS];

/* bn_fail with ": see models.md of the documentation, row 'NAME'" behind the message, which is cut
 * if it is long. The text is right both in the source tree and where the document is installed.
 * Returns false. */
bool refusal_fail(struct bn_error *err, enum refusal row, enum bn_errcode code, const char *fmt,
                  ...) BN_PRINTF(4, 5);
/* Append this text to the message of an error, unless it already names a row. Returns false. */
bool refusal_append_row(struct bn_error *err, enum refusal row);

/* The row of an architecture that is not supported. */
enum refusal refusal_of_arch(struct bn_str arch);
/* The row of a tensor type that cannot be used, by its name in messages: "TL2 (39)". A name that is
 * unknown or NULL gives REFUSED_DENSE. */
enum refusal refusal_of_type(const char *type_name);
/* The row of a tensor that is not in the graph of the architecture. */
enum refusal refusal_of_tensor(struct bn_str name);

/* BN_EFORMAT for a file in which bytes are missing, for example after an interrupted download. The
 * message says so before the detail `fmt`, and advises to download the file again. Returns
 * false. */
bool refusal_of_cut(struct bn_error *err, const char *fmt, ...) BN_PRINTF(2, 3);

/* Write an error about a file that does not begin as a GGUF file. Its first bytes often show the
 * mistake: a web page or a Git LFS pointer instead of the file, or another format. BN_EFORMAT or
 * BN_EUNSUPPORTED. Returns false. */
bool refusal_of_file(const uint8_t *bytes, size_t n_bytes, struct bn_error *err);

#endif
