/* SPDX-License-Identifier: MIT */
/* value.h - single values: from text into their fields, and in words. */
#ifndef WR_SHELL_CONFIG_VALUE_H
#define WR_SHELL_CONFIG_VALUE_H

#include "base/buf.h"
#include "shell/config/config.h"

/* What YAML calls null: somebody wrote a key and no value. */
bool wr_config_is_nothing(struct wr_span text, bool quoted);

/* Stores a value in the struct at `base`. False, and nothing stored, if it is not what the field takes. `quoted`: it
 * stood in quotes, and is text whatever it looks like. */
bool wr_config_store(const struct wr_config_field *field, struct wr_span text, bool quoted, char *base);

/* Whether its values, or the items of them, are in no complaint. */
bool wr_config_is_secret(const struct wr_config_field *field);

/* What stands there instead: " is \"wide\"", or of a secret " is invalid". */
void wr_config_append_scalar(struct wr_buf *buf, const struct wr_config_field *field, struct wr_span text);

/* What the field takes: "a whole number, 1 ... 500 (in cm)". */
void wr_config_append_wanted(struct wr_buf *buf, const struct wr_config_field *field);

/* 'unknown key "widht" in a door; did you mean "width"?' */
void wr_config_append_unknown(struct wr_buf *buf, const struct wr_config_schema *schema, struct wr_span key);

#endif
