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

/* object[key] = value; `value` is taken over, also on failure. False: out of memory, or value is
 * NULL. */
bool json_out_add(json_t *object, const char *key, json_t *value);

enum json_layout { JSON_OUT_LINE, JSON_OUT_INDENT };
/* Write the object, then a newline, and drop the reference. BN_EIO, BN_ENOMEM. */
bool json_out_write(json_t *object, FILE *out, enum json_layout layout, struct bn_error *err);

/* The same as one line at the end of a text, which fails where the object is NULL. */
void json_out_line(json_t *object, struct strbuf *out);

/* JSON to a template value in the arena. NULL: out of memory or nested too deep. */
struct template_value *json_out_value(const json_t *json, struct template_arena *arena);

/* A list of messages in the OpenAI form: an array, or an object with "messages".
 * BN_EARG: no such list (the text names the message that is wrong); BN_ENOMEM. */
bool json_out_messages(const json_t *json, struct template_arena *arena,
                       struct template_value **out, struct bn_error *err);

#endif
