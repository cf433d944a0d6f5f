/* SPDX-License-Identifier: MIT */
/* Names of system calls in which threads wait. */
#ifndef FDRI_BASE_SYSTEM_CALL_NAMES_H
#define FDRI_BASE_SYSTEM_CALL_NAMES_H
/* NULL: a call that this table lacks. */
const char *fdri_system_call_name(long number);
#endif
