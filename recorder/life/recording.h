/* SPDX-License-Identifier: MIT */
/* The former place of recorder.h and settings.h, for record/ and names/filter_rules.c. It goes when these include the
 * two headers themselves. */
#ifndef FDRI_RECORDER_LIFE_RECORDING_H
#define FDRI_RECORDER_LIFE_RECORDING_H

#include "recorder/life/settings.h"
#include "recorder/recorder.h"

#endif
