/*
 * A turn as one JSON object: see turn_json.h.
 */
#include "app/chat/turn_json.h"

#include "app/common/json_out.h"

#include <stdio.h>
#include <stdlib.h>

/* A float with six significant digits: 0.7 instead of 0.699999988. */
static double rounded(float x)
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
        {"temp", rounded(p->temp)},
        {"top_k", p->top_k},
        {"top_p", rounded(p->top_p)},
        {"min_p", rounded(p->min_p)},
        {"typical", rounded(p->typical)},
        {"repeat_penalty", rounded(p->repeat_penalty)},
        {"presence_penalty", rounded(p->presence_penalty)},
        {"frequency_penalty", rounded(p->frequency_penalty)},
        {"repeat_last_n", p->repeat_last_n},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) { /* whole numbers without ".0" */
        const json_int_t whole = (json_int_t)rows[i].value;
        json_out_put(&o, rows[i].name,
                     (double)whole == rows[i].value ? json_integer(whole)
                                                    : json_real(rows[i].value));
    }
    json_out_put(&o, "max_tokens",
                 turn->max_tokens == 0 ? json_null() : json_integer((json_int_t)turn->max_tokens));
    json_out_put(&o, "think_budget",
                 turn->think_budget == THINK_NO_BUDGET
                     ? json_null()
                     : json_integer((json_int_t)turn->think_budget));
    return o;
}

static json_t *alt_json(const struct tokenizer *t, struct generator_alt alt)
{
    return json_pack("{s:i, s:o, s:f}", "id", alt.id, "text",
                     json_out_text(tokenizer_token_text(t, alt.id)), "logprob",
                     (double)alt.logprob);
}

/* One object for each token that the turn has generated: the chosen token, and "top" with the best
 * alternatives. */
static json_t *logprobs_json(const struct tokenizer *t, const struct turn *turn)
{
    json_t *list = json_array();
    /* A row has the alternatives, best first, and the chosen token at its end. If the vocabulary
     * has fewer tokens than there are alternatives, the others have the id -1. */
    for (size_t i = 0; i < turn->n_alt_tokens; i++) {
        const struct generator_alt *row = turn_alts(turn, i);
        json_t *entry = alt_json(t, row[turn->n_alts]);
        json_t *top = json_array();
        for (size_t k = 0; k < turn->n_alts; k++)
            if (row[k].id >= 0)
                json_out_append(&top, alt_json(t, row[k]));
        json_out_put(&entry, "top", top);
        json_out_append(&list, entry);
    }
    return list;
}

json_t *turn_json(const struct tokenizer *t, const char *model, const struct turn *turn)
{
    const struct answer_result *r = &turn->result;
    const bool has_thought = turn->thought.n_bytes > 0;
    json_t *o = json_object();
    json_out_put(&o, "model", json_out_text(bn_str_of(model)));
    json_out_put(&o, "text", json_out_text(strbuf_str(&turn->shown))); /* without the thought */
    json_out_put(&o, "thought",
                 has_thought ? json_out_text(strbuf_str(&turn->thought)) : json_null());
    json_out_put(&o, "finish", json_string(finish_reason_name(turn->finish)));
    json_out_put_count(&o, "seed", turn->sampler.seed);
    json_out_put(&o, "settings", settings_json(turn));
    json_out_put_count(&o, "prompt_tokens", r->n_prompt);
    json_out_put_count(&o, "reused_tokens", r->n_reused);
    json_out_put_count(&o, "evaluated_tokens", r->n_evaluated);
    json_out_put_count(&o, "reevaluated_tokens", turn_reevaluated(turn));
    json_out_put_count(&o, "saved_states", r->states.n_states);
    json_out_put_count(&o, "saved_state_bytes", r->states.n_bytes);
    json_out_put_count(&o, "completion_tokens", r->n_tokens);
    json_out_put_count(&o, "thought_tokens", r->n_thought);
    json_out_put(&o, "thought_cut", json_boolean(r->is_thought_cut));
    json_out_put_count(&o, "drafted_tokens", r->n_drafted);
    json_out_put_count(&o, "accepted_tokens", r->n_accepted);
    json_out_put(&o, "prefill_s", json_real(r->prefill_s));
    json_out_put(&o, "decode_s", json_real(r->decode_s));
    json_out_put(&o, "prefill_tokens_per_s", json_real(answer_prefill_rate(r)));
    json_out_put(&o, "decode_tokens_per_s", json_real(answer_decode_rate(r)));
    json_out_put(&o, "first_token_s", json_real(r->first_token_s));
    json_out_put(&o, "token_gap_p50_s", json_real(r->gaps.p50));
    json_out_put(&o, "token_gap_p95_s", json_real(r->gaps.p95));
    json_out_put(&o, "token_gap_p99_s", json_real(r->gaps.p99));
    json_out_put_count(&o, "dropped_turns", turn->n_dropped);
    if (turn->n_alts > 0)
        json_out_put(&o, "logprobs", logprobs_json(t, turn));
    return o;
}
