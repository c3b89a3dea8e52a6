/*
 * Snapshots: the KV cache of a session as a file, so that a long chat can continue without a new
 * prefill.
 *
 * A snapshot belongs to one saved chat. It is in the cache directory and may be deleted at any
 * time. It is used only if the model file and bn_session_kv_version are the same, the prompt begins
 * with at least half of the ids in the snapshot, and the checksum matches. Otherwise the snapshot
 * is ignored and the caller gets the reason. The ids often differ in the last answer, because some
 * templates write that one in another way than earlier answers.
 *
 * All functions except snapshot_path run on the worker's thread.
 */
#ifndef APP_SNAPSHOT_H
#define APP_SNAPSHOT_H

#include "app/chat/answer/generator.h"
#include "app/common/file/paths.h"

/* The path of the snapshot that belongs to the saved chat with the path `saved`. BN_EARG: there is
 * no cache directory, or its path is too long. */
bool snapshot_path(const char *saved, char out[PATH_BYTES], struct bn_error *err);

struct snapshot_result {
    size_t n_tokens;  /* whose keys and values were written or loaded */
    uint64_t n_bytes; /* of the file, if n_tokens is not 0 */
    double seconds;   /* that the call took */
};

/* Truncate the session to the prefix that it has in common with `ids`, or to the nearest shorter
 * length that it can return to. *n_bytes is the size of the file that snapshot_write then writes.
 * BN_EARG: no id is left. After an error the session may be truncated. */
bool snapshot_prepare(struct generator *g, const int32_t *ids, size_t n_ids, uint64_t *n_bytes,
                      struct bn_error *err);
/* Write the KV cache of the session. The file is replaced as a whole or not at all. cancel may be
 * NULL. BN_EIO: the file cannot be written. BN_ECANCELLED. Errors of bn_session_save. After an
 * error *result is unchanged. */
bool snapshot_write(struct generator *g, const struct bn_file *file, const char *path,
                    const struct bn_cancel *cancel, struct snapshot_result *result,
                    struct bn_error *err);

/* Load a snapshot for the prompt `ids`, and truncate the session to the ids that both have in
 * common, or to the nearest shorter length that it can return to. *result is written in any case.
 * Sets n_tokens to 0, and returns true, if the file does not exist or if the session already holds
 * as many tokens of the prompt as the snapshot has. cancel may be NULL.
 * BN_EFORMAT: the snapshot does not match or is damaged, or the session can return to no length
 * above 0. BN_EIO: the file cannot be opened, or cannot be read to the end of the KV cache.
 * BN_ECANCELLED. Other errors of bn_session_load. After a failure the session is unchanged or
 * empty. */
bool snapshot_read(struct generator *g, const struct bn_file *file, const int32_t *ids,
                   size_t n_ids, const char *path, const struct bn_cancel *cancel,
                   struct snapshot_result *result, struct bn_error *err);

#endif
