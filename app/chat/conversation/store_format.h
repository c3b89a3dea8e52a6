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
#define STORE_HASH_BYTES 17 /* 16 hexadecimal digits and a zero */

/* The hash of the vocabulary, as 16 hexadecimal digits; this is the form of all hashes here. */
void store_vocabulary(const struct store *s, char out[STORE_HASH_BYTES]);
/* The hash of the bytes of a file. */
void store_hash_bytes(const void *bytes, size_t n_bytes, char out[STORE_HASH_BYTES]);
/* Path of the journal of a saved chat. */
void store_journal_path(const char *path, char out[PATH_BYTES + 16]);

#endif
