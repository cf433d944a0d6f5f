/* SPDX-License-Identifier: MIT */
/* Settings: from text to values. */
#ifndef FDRI_RECORDER_LIFE_SETTINGS_H
#define FDRI_RECORDER_LIFE_SETTINGS_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/recording.h"

bool fdri_life_parse_size(const char *text, uint64_t *bytes);
bool fdri_life_parse_duration(const char *text, uint64_t *ns);
/* Fills *s from config, else the environment, else defaults. A bad value costs one message and its default is used.
 * Returns 0, or -EINVAL if a value was bad and the caller is strict. */
int fdri_life_settings_parse(struct fdri_life_settings *s, const struct fdr_config *config);

/* A message for each FDR_ variable of the environment that is close to a known name. */
void fdri_life_check_misspelt(const char *const *known, size_t count);
/* Path of the executable; "" if unknown. */
void fdri_life_program_path(char *path, size_t bytes);

#endif
