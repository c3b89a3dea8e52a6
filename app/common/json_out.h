/*
 * Small helpers over jansson: texts of unknown bytes become valid JSON, JSON becomes template
 * values, and a finished object is written out and freed.
 *
 * References: json_out_add steals the value, as jansson's _new functions do.
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

/* A string; invalid UTF-8 becomes U+FFFD. NULL: out of memory. */
json_t *json_out_text(struct bn_str text);

/* object[key] = value. False: out of memory, or value is NULL. */
bool json_out_add(json_t *object, const char *key, json_t *value);

/* For building without a check after each step: on failure the target is freed and becomes NULL. A
 * NULL target stays NULL. */
void json_out_put(json_t **object, const char *key, json_t *value); /* (*object)[key] = value */
void json_out_merge(json_t **object, json_t *other);                /* adds all keys of `other` */
void json_out_append(json_t **list, json_t *item);

enum json_layout { JSON_OUT_LINE, JSON_OUT_INDENT };
/* Write the object, then a newline, and drop the reference. BN_EIO, BN_ENOMEM. */
bool json_out_write(json_t *object, FILE *out, enum json_layout layout, struct bn_error *err);

/* The same as one line at the end of a text, which fails where the object is NULL. */
void json_out_line(json_t *object, struct strbuf *out);

/* JSON to a template value in the arena; every string in it carries `message`. Depth is bounded.
 * NULL: out of memory or too deep. */
struct template_value *json_out_value(const json_t *json, struct template_arena *arena,
                                      size_t message);

/* A list of messages in the OpenAI form: an array, or an object with "messages". Roles system,
 * user, assistant and tool are the program's own text; all else carries its message's index.
 * BN_EARG: no such list (says which message is wrong); BN_ENOMEM. */
bool json_out_messages(const json_t *json, struct template_arena *arena,
                       struct template_value **out, struct bn_error *err);

#endif
