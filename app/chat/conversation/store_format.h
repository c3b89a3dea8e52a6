/*
 * Definitions for both reading and writing of saved chats: names in the files, and the hash that
 * connects a journal with its saved chat. Private to the files store_*.c.
 */
#ifndef APP_STORE_FORMAT_H
#define APP_STORE_FORMAT_H

#include "app/chat/conversation/store.h"

#define STORE_FORMAT "bitnet-chat session"
#define STORE_JOURNAL_FORMAT "bitnet-chat journal"
#define STORE_VERSION 1
#define STORE_JOURNAL_PATH_BYTES (PATH_BYTES + 8) /* 8: for ".journal" */

/* The hash of the vocabulary as text. */
void store_vocabulary(const struct store *s, char out[STORE_HASH_BYTES]);
/* The hash of the bytes of a file as text. */
void store_hash_bytes(const void *bytes, size_t n_bytes, char out[STORE_HASH_BYTES]);
/* Path of the journal of a saved chat. */
void store_journal_path(const char *path, char out[STORE_JOURNAL_PATH_BYTES]);

#endif
