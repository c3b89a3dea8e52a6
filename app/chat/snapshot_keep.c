/*
 * When snapshots are written and taken up: --snapshot, /save, /load, and the way out.
 */
#include "app/app.h"
#include "app/chat/answer/snapshot.h"

#include <unistd.h>

void app_use_snapshot(struct app *app, const char *session)
{
    struct bn_error no_place; /* then there is no snapshot either */
    char *path = app->chat.snapshot;
    if (!snapshot_path(session, path, &no_place) || access(path, F_OK) != 0)
        path[0] = 0;
}

void app_keep_snapshot(struct app *app, const char *session)
{
    const struct transcript_state *s = &app->chat.transcript.now;
    const struct bn_model_info *info = worker_info(app->worker);
    char path[PATH_BYTES];
    struct prompt p;
    struct bn_error err;
    if (!options_flag(app->options, "snapshot") || app->is_private || !session[0] || !info ||
        app->chat.totals.n_turns == 0) /* nothing new was read */
        return;
    if (!prompt_encode(&app->chat.maker, s, s->n_skipped, PROMPT_WHOLE, &p, &err)) {
        ui_notice(&app->ui, TONE_WARNING, "no snapshot: %s", err.text);
        return;
    }
    if (snapshot_path(session, path, &err)) {
        ui_notice(&app->ui, TONE_NOTE, "writing a snapshot of about %.1f MB to %s",
                  (double)p.ids.n * (double)info->kv_bytes_per_token / 1e6, path);
        if (worker_save(app->worker, p.ids.ids, p.ids.n, path, &err)) {
            prompt_finish(&p);
            return;
        }
    }
    ui_notice(&app->ui, TONE_WARNING, "no snapshot: %s", err.text);
    prompt_finish(&p);
}
