/*
 * Unknown members of a JSON object: see extra_keys.h.
 */
#include "app/chat/conversation/extra_keys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_known(const char *key, const char *known)
{
    const size_t n = strlen(key);
    for (const char *at = known; n > 0 && (at = strstr(at, key)) != NULL; at += n)
        if ((at == known || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

bool extra_keys_take(const json_t *o, const char *known, struct strbuf *out)
{
    json_t *extra = json_object();
    void *iter = json_object_iter((json_t *)(uintptr_t)o); /* the object is not changed */
    bool ok = extra != NULL;
    for (; ok && iter; iter = json_object_iter_next((json_t *)(uintptr_t)o, iter))
        if (!is_known(json_object_iter_key(iter), known))
            ok = json_object_set(extra, json_object_iter_key(iter), json_object_iter_value(iter)) ==
                 0;
    if (ok && json_object_size(extra) > 0) {
        char *text =
            json_dumps(extra, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
        ok = text != NULL;
        if (ok)
            strbuf_add_text(out, text);
        free(text);
    }
    json_decref(extra);
    return ok && !out->failed;
}

bool extra_keys_put(json_t *o, struct bn_str extra)
{
    if (extra.n_bytes == 0)
        return true;
    json_t *members = json_loadb(extra.ptr, extra.n_bytes, JSON_ALLOW_NUL, NULL);
    const bool ok = json_is_object(members) && json_object_update_missing(o, members) == 0;
    json_decref(members);
    return ok;
}
