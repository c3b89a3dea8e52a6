/*
 * JSON with jansson: strings from any bytes, building and writing objects, and conversion to
 * template values.
 *
 * Written text is safe for terminals and editors: U+007F to U+009F, bidirectional controls, line
 * separators and tag characters are always escaped (\uXXXX), in addition to the characters that
 * JSON requires to be escaped.
 *
 * A function that adds a value to an object or list takes over the caller's reference to the value,
 * even on failure.
 */
#ifndef APP_JSON_OUT_H
#define APP_JSON_OUT_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"
#include "engine/base/str.h"
#include "templates/template.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A new JSON string; each invalid byte becomes U+FFFD. NULL: out of memory. */
json_t *json_out_text(struct bn_str text);

/* object[key] = value. False: out of memory, `object` or `value` is NULL, or `key` is not valid
 * UTF-8. */
bool json_out_add(json_t *object, const char *key, json_t *value);

/* These need no check after each step: on failure the target is freed and becomes NULL, and a NULL
 * target stays NULL. A step fails if memory runs out, the added value is NULL or a key is not valid
 * UTF-8. */
void json_out_put(json_t **object, const char *key, json_t *value);    /* (*object)[key] = value */
void json_out_put_count(json_t **object, const char *key, uint64_t n); /* n below 2^63 */
/* Set all keys of `other` in *object, also those that it has already, and release `other`. */
void json_out_merge(json_t **object, json_t *other);
void json_out_append(json_t **list, json_t *item);

enum json_layout { JSON_OUT_LINE, JSON_OUT_INDENT };
/* Write the object and a newline, and release the reference, also on failure. `out` is not flushed.
 * Reals have 9 significant digits, enough for a float. BN_EIO. BN_ENOMEM, also if the object is
 * NULL. */
bool json_out_write(json_t *object, FILE *out, enum json_layout layout, struct bn_error *err);

/* Append what json_out_write writes with JSON_OUT_LINE, and release the reference, also on failure.
 * Sets out->failed if memory runs out or the object is NULL; strbuf_n_failed may not count this. */
void json_out_line(json_t *object, struct strbuf *out);
/* The same, with a last member `key` whose value has all its digits; NULL: without it. `object`
 * must have another member. `value` stays with the caller. */
void json_out_line_with(json_t *object, const char *key, const json_t *value, struct strbuf *out);

/* Append the object without a newline. Reals have 17 digits, enough for a double. The caller keeps
 * its reference. False: out of memory, or the object is NULL; then `out` may hold a part of it,
 * also without out->failed. */
bool json_out_exact(const json_t *object, struct strbuf *out);

/* Correct an error of jansson's parser for a message. If the text names the token at fault, the
 * column becomes that of its first character instead of the last one. A text about a flag of the
 * library becomes one about the input. */
void json_correct_error(json_error_t *where);

/* Convert JSON (not NULL) to a template value in the arena, which gets copies of the texts. NULL:
 * out of memory, or a value inside more than 64 lists and objects. */
struct template_value *json_to_template_value(const json_t *json, struct template_arena *arena);

/* Convert a list of messages in the OpenAI form: an array of objects with a string "role", or an
 * object with such an array as "messages". The array may be empty. *out belongs to the arena.
 * BN_EARG: not such a list (the error names the wrong message), or `json` is NULL. BN_ENOMEM: out
 * of memory, or a value that json_to_template_value rejects. */
bool json_to_template_messages(const json_t *json, struct template_arena *arena,
                               struct template_value **out, struct bn_error *err);

#endif
