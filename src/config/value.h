/* SPDX-License-Identifier: MIT */
/* value.h - stores single values in their fields, and describes values in error messages. */
#ifndef WR_CONFIG_VALUE_H
#define WR_CONFIG_VALUE_H

#include "base/buf.h"
#include "config/config.h"

/* Returns true if the text is null in YAML: the key has no value. */
bool wr_config_is_null(struct wr_span text, bool quoted);

/* Stores a value in the struct at `base`. Returns false and stores nothing if the field does not
 * accept the value. `quoted`: the value was in quotes and is always text. */
bool wr_config_store(const struct wr_config_field *field, struct wr_span text, bool quoted, char *base);

/* Returns true if error messages must not show the field's value or items. */
bool wr_config_is_secret(const struct wr_config_field *field);

/* Appends the actual value: " is \"wide\"", " is invalid" for a secret, " is a text" or " is empty"
 * where lines of "key: value" are expected. */
void wr_config_append_scalar(struct wr_buf *buf, const struct wr_config_field *field, struct wr_span text);

/* Appends the accepted values: "a whole number, 1 ... 500 (in cm)". */
void wr_config_append_wanted(struct wr_buf *buf, const struct wr_config_field *field);

/* Appends 'unknown key "widht" in a door; did you mean "width"?'. */
void wr_config_append_unknown(struct wr_buf *buf, const struct wr_config_schema *schema, struct wr_span key);

#endif
