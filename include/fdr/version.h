/* SPDX-License-Identifier: MIT */
/* Version of the libraries and of the command. The file format has a version of its own: docs/FORMAT.md. */
#ifndef FDR_VERSION_H
#define FDR_VERSION_H

#define FDR_VERSION_MAJOR  0
#define FDR_VERSION_MINOR  1
#define FDR_VERSION_PATCH  0
#define FDR_VERSION_STRING "0.1.0"

#endif
