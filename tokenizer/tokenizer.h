/*
 * The tokenizer: converts text to token ids and back. Public header.
 *
 * It supports byte-level BPE ("gpt2") and SentencePiece ("llama") vocabularies; docs/formats.md
 * describes formats and rules. A tokenizer is immutable after tokenizer_open and
 * tokenizer_add_ends. Several threads may use one, each with a separate detok. The file may be
 * closed after tokenizer_open.
 */
#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "tokenizer/segment.h"
#include "tokenizer/vocab/token_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_file;
struct tokenizer;

/* Used only during tokenizer_open. */
struct tokenizer_config {
    const char *pre;        /* pre-tokenizer to use instead of the one in the file, or NULL; ignored
                               for SentencePiece */
    const char *no_repair;  /* see bn_repair_allowed: pre-tokenizer, end-of-turn, control-text,
                             * token-type */
    struct bn_notes *notes; /* receives repairs and warnings; may be NULL */
};

/* BN_EFORMAT: no vocabulary, an array that is missing or has the wrong type or length, broken
 * merges, a vocabulary that is empty or too large, too many hash collisions.
 * BN_EUNSUPPORTED: the tokenizer model is neither gpt2 nor llama. BN_EARG: cfg->pre is unknown.
 * BN_ENOMEM. A special id outside the vocabulary is ignored with a warning. If the file names an
 * unknown pre-tokenizer, or none and the repair "pre-tokenizer" does not apply, "default" is used,
 * with a warning. */
bool tokenizer_open(const struct bn_file *file, const struct tokenizer_config *cfg,
                    struct tokenizer **out, struct bn_error *err);
void tokenizer_close(struct tokenizer *t); /* accepts NULL */

struct tokenizer_info {
    const char *model; /* "gpt2" or "llama" */
    const char *pre;   /* pre-tokenizer in use; "" for SentencePiece */
    size_t n_vocab;
    size_t n_merges;
    /* Begin and end of text, end of turn, unknown, padding. TOKEN_NONE: none was found. */
    int32_t bos, eos, eot, unk, pad;
    /* (n_eog) end of generation: every id that ends an answer, ascending. Valid until
     * tokenizer_add_ends or tokenizer_close. */
    const int32_t *eog;
    size_t n_eog;
    bool add_bos;          /* a prompt begins with exactly one bos; false: none is added */
    bool add_space_prefix; /* SentencePiece: a space is added before text that is at the start or
                              after a special token */
    uint64_t hash; /* of all token texts and types in the file; identifies the vocabulary in saved
                      chats */
};
/* Valid as long as the tokenizer; tokenizer_add_ends changes eog and n_eog in it. */
const struct tokenizer_info *tokenizer_info(const struct tokenizer *t);
/* Whether the id ends an answer. False for an id out of range. */
bool tokenizer_is_eog(const struct tokenizer *t, int32_t id);

/* Make these ids (n) end an answer too, for example ids that delimit the turns of a template.
 * Message text no longer produces those of them that are special tokens; an ordinary word stays a
 * word. Call it before other threads use `t`. Ids outside the vocabulary are ignored. BN_ENOMEM:
 * some ids may have been added. */
bool tokenizer_add_ends(struct tokenizer *t, const int32_t *ids, size_t n, struct bn_error *err);

/* The decoded text of a token, special tokens included. It can be any bytes, such as a part of a
 * UTF-8 character. n_bytes is 0 for an id out of range. Valid as long as the tokenizer. */
struct bn_str tokenizer_token_text(const struct tokenizer *t, int32_t id);
/* The token type, after repairs. False for an id out of range. */
bool tokenizer_is_control(const struct tokenizer *t, int32_t id); /* control or unknown */
bool tokenizer_is_user_defined(const struct tokenizer *t, int32_t id);
/* Whether a special token (control, user-defined, unknown) has this text. Without one, a template
 * that writes the text sends ordinary characters. */
bool tokenizer_has_special(const struct tokenizer *t, struct bn_str text);

enum tokenizer_bos {
    TOKENIZER_BOS_NEVER,
    TOKENIZER_BOS_AUTO, /* one bos at the start if info.add_bos; several there become one */
};

/* Append the ids of `segments` to `out`. Takes O(n log n) time for any text of n bytes.
 *
 * Special tokens are matched leftmost first, then longest. In TEMPLATE text all of them are found.
 * In MESSAGE and ANSWER text only some are found: user-defined tokens that end no answer and do not
 * occur in TEMPLATE text of the same call. Such a token is also found if it begins in TEMPLATE text
 * and ends in the MESSAGE text behind it, or the reverse. Text between special tokens is normalised
 * to Unicode NFC if the pre-tokenizer requires it (qwen2, qwen35). Ill-formed UTF-8 is tokenised as
 * bytes.
 *
 * BN_ENOMEM, also for a piece of 2 GiB or more. BN_EARG: an id outside the vocabulary, or too much
 * text. BN_EFORMAT: an expression of the pre-tokenizer exceeds its match limit. On failure `out`
 * keeps its contents. */
bool tokenizer_encode(const struct tokenizer *t, const struct segment *segments, size_t n_segments,
                      enum tokenizer_bos bos, struct token_list *out, struct bn_error *err);

enum tokenizer_special { TOKENIZER_SPECIAL_HIDE, TOKENIZER_SPECIAL_SHOW };
/* The bytes that `id` adds to a text. Control and unknown tokens add nothing unless `special` is
 * SHOW; an id out of range adds nothing. Only detok_push removes the leading space of
 * SentencePiece. Valid as long as the tokenizer. */
struct bn_str tokenizer_piece(const struct tokenizer *t, int32_t id,
                              enum tokenizer_special special);

/*
 * The streaming detokeniser: accepts ids one by one and returns the text that is certain so far.
 *
 * It holds back incomplete UTF-8 characters and text that may be the beginning of a stop string.
 * Invalid bytes are returned unchanged; the caller decides how to show them. */
struct detok;

struct detok_config {
    const char *const *stops; /* (n_stops) stop strings; copied, none may be empty */
    size_t n_stops;
    enum tokenizer_special special;
    bool at_start; /* the first id begins a text: drop the space that SentencePiece puts there */
};

/* `t` must outlive the detokeniser. BN_EARG: an empty stop string. BN_ENOMEM. */
bool detok_open(const struct tokenizer *t, const struct detok_config *cfg, struct detok **out,
                struct bn_error *err);
void detok_close(struct detok *d); /* accepts NULL */

/* Feed one id. *text is the text that can be shown now. It may be empty and is valid until the next
 * call on `d`. *stopped is set to whether a stop string is complete. If so, the text ends before
 * the stop string, and later ids are ignored. BN_ENOMEM. */
bool detok_push(struct detok *d, int32_t id, struct bn_str *text, bool *stopped,
                struct bn_error *err);
/* Call it at the end of an answer: returns the text that is still held back, empty after a stop
 * string. Valid until the next call on `d`. */
struct bn_str detok_flush(struct detok *d);

#endif
