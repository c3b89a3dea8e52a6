/*
 * A turn as one JSON object: see turn_json.h.
 */
#include "app/chat/turn_json.h"

#include "app/common/json_out.h"

#include <stdio.h>
#include <stdlib.h>

/* The decimal number that the user gave, 0.7, instead of the float's 0.699999988. */
static double as_given(float x)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.6g", (double)x); /* fits */
    return strtod(text, NULL);
}

static json_t *settings_json(const struct turn *turn)
{
    const struct sampler_params *p = &turn->sampler;
    json_t *o = json_object();
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"temp", as_given(p->temp)},
        {"top_k", p->top_k},
        {"top_p", as_given(p->top_p)},
        {"min_p", as_given(p->min_p)},
        {"typical", as_given(p->typical)},
        {"repeat_penalty", as_given(p->repeat_penalty)},
        {"presence_penalty", as_given(p->presence_penalty)},
        {"frequency_penalty", as_given(p->frequency_penalty)},
        {"repeat_last_n", p->repeat_last_n},
        {"max_tokens", (double)turn->max_tokens},
    };
    bool ok = o != NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_int_t whole = (json_int_t)rows[i].value;
        ok = ok && json_out_add(o, rows[i].name,
                                (double)whole == rows[i].value ? json_integer(whole)
                                                               : json_real(rows[i].value));
    }
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *alt_json(const struct tokenizer *t, struct generator_alt alt)
{
    json_t *o = json_object();
    if (o && json_out_add(o, "id", json_integer(alt.id)) &&
        json_out_add(o, "text", json_out_text(tokenizer_token_text(t, alt.id))) &&
        json_out_add(o, "logprob", json_real((double)alt.logprob)))
        return o;
    json_decref(o);
    return NULL;
}

/* One object for each token: the chosen token, and "top" with the best alternatives. */
static json_t *logprobs_json(const struct tokenizer *t, const struct turn *turn)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < turn->n_alt_tokens; i++) {
        const struct generator_alt *alts = turn->alts + i * turn->n_alts;
        json_t *entry = alt_json(t, alts[turn->n_alts - 1]);
        json_t *top = json_array();
        for (size_t k = 0; top && k + 1 < turn->n_alts; k++)
            if (alts[k].id >= 0)
                (void)json_array_append_new(top, alt_json(t, alts[k]));
        if (!entry || !json_out_add(entry, "top", top) || json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *turn_json(const struct tokenizer *t, const char *model, const struct turn *turn)
{
    const struct answer_result *r = &turn->result;
    json_t *o = json_object();
    bool ok = o && json_out_add(o, "model", json_out_text(bn_str_of(model))) &&
              json_out_add(o, "text", json_out_text(strbuf_str(&turn->shown))) &&
              json_out_add(o, "thought",
                           turn->thought.n_bytes > 0 ? json_out_text(strbuf_str(&turn->thought))
                                                     : json_null()) &&
              json_out_add(o, "finish", json_string(finish_name(turn->finish))) &&
              json_out_add(o, "seed", json_integer((json_int_t)turn->sampler.seed)) &&
              json_out_add(o, "settings", settings_json(turn)) &&
              json_out_add(o, "prompt_tokens", json_integer((json_int_t)r->n_prompt)) &&
              json_out_add(o, "reused_tokens", json_integer((json_int_t)r->n_reused)) &&
              json_out_add(o, "evaluated_tokens", json_integer((json_int_t)r->n_evaluated)) &&
              json_out_add(o, "completion_tokens", json_integer((json_int_t)r->n_tokens)) &&
              json_out_add(o, "drafted_tokens", json_integer((json_int_t)r->n_drafted)) &&
              json_out_add(o, "accepted_tokens", json_integer((json_int_t)r->n_accepted)) &&
              json_out_add(o, "prefill_s", json_real(r->prefill_s)) &&
              json_out_add(o, "decode_s", json_real(r->decode_s)) &&
              json_out_add(o, "prefill_tokens_per_s", json_real(answer_prefill_rate(r))) &&
              json_out_add(o, "decode_tokens_per_s", json_real(answer_decode_rate(r))) &&
              json_out_add(o, "first_token_s", json_real(r->first_token_s)) &&
              json_out_add(o, "dropped_turns", json_integer((json_int_t)turn->n_dropped));
    if (ok && turn->n_alts > 0)
        ok = json_out_add(o, "logprobs", logprobs_json(t, turn));
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}
