/*
 * The config file: UTF-8 text with lines `name = value` and the names of long options. Blanks
 * around the name and the value are removed. `#` at the beginning of a line or after a blank starts
 * a comment. A value in double quotes may contain `#`, and may begin and end with blanks. The
 * quotes are removed, unless text other than a comment follows the second one: then they are part
 * of the value. A byte order mark at the beginning of the file is ignored.
 */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include "app/options/options.h"
#include "engine/base/str.h"

enum config_remark {
    CONFIG_WARNING, /* a line is ignored because its name is unknown, or a text without quotes has a
                       comment behind it */
    CONFIG_ERROR,   /* a wrong line; config_apply returns the last one if no remark follows it */
};

/* Receives a sentence about a line, which is valid during the call. */
typedef void (*config_remark_fn)(void *ud, enum config_remark kind, const char *sentence);

#define CONFIG_MAX_ERRORS 10 /* config_apply stops at this error: the file is no config file */

/* Apply `text`, the contents of the file `path`, which is only named in messages. Passes `ud` to
 * `remark`. A blank line or a comment does nothing. BN_EARG: any other line without '=', a line of
 * 4096 bytes or more, a NUL byte, a bad value, or an option that a config file cannot set; the
 * message has the path and the line number. The lines after a wrong one are read too, so that a
 * user sees up to CONFIG_MAX_ERRORS at once. BN_ENOMEM. */
bool config_apply(struct options *o, const char *path, struct bn_str text, config_remark_fn remark,
                  void *ud, struct bn_error *err);

/* Apply the file $BITNET_CHAT_CONFIG, which must exist, or else the file "config" in the program's
 * config directory, which may be missing. BN_EIO: the file cannot be read or has more than 1 MiB.
 * BN_ENOMEM and errors of config_apply. */
bool config_load(struct options *o, config_remark_fn remark, void *ud, struct bn_error *err);

#endif
