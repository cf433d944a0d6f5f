/* SPDX-License-Identifier: MIT */
/* The version of the libraries and of the command. The file format has its own number, in format/arena.h. */
#ifndef FDR_VERSION_H
#define FDR_VERSION_H

#define FDR_VERSION_MAJOR  0
#define FDR_VERSION_MINOR  1
#define FDR_VERSION_PATCH  0
#define FDR_VERSION_STRING "0.1.0"

#endif
