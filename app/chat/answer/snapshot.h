/*
 * KV snapshots: what the session holds as a file beside the readable conversation, so that a long
 * chat goes on without being read again.
 *
 * A snapshot belongs to one session file and lies in the cache directory, where it may be deleted
 * at any time. It is used only if model file, device and layout of the cache are those it was made
 * with, its ids begin the prompt that is to be read, and its bytes are whole; otherwise it is left
 * alone and the caller is told why. The worker's thread, but for snapshot_path.
 */
#ifndef APP_SNAPSHOT_H
#define APP_SNAPSHOT_H

#include "app/chat/answer/generator.h"
#include "app/common/paths.h"

/* Where the snapshot of the session file `session` lies. BN_EARG: no place for a cache. */
bool snapshot_path(const char *session, char out[PATH_BYTES], struct bn_error *err);

struct snapshot_result {
    size_t n_tokens;
    uint64_t n_bytes; /* of the file */
    double seconds;
};

/* Write what the session shares with `ids` (n_ids); forgets the rest. BN_EARG: they share nothing;
 * BN_EIO; BN_ECANCELLED. The file is replaced as a whole or not at all. */
bool snapshot_write(struct generator *g, const struct bn_file *file, const int32_t *ids,
                    size_t n_ids, const char *path, const struct bn_cancel *cancel,
                    struct snapshot_result *result, struct bn_error *err);

/* Take up a snapshot for the prompt `ids`. n_tokens is 0 where the session holds as much by itself
 * or there is no such file. BN_EFORMAT: it does not fit, or is damaged; BN_EIO, BN_ECONTEXT,
 * BN_ECANCELLED. After a failure the session holds what it held, or nothing. */
bool snapshot_read(struct generator *g, const struct bn_file *file, const int32_t *ids,
                   size_t n_ids, const char *path, const struct bn_cancel *cancel,
                   struct snapshot_result *result, struct bn_error *err);

#endif
