/* SPDX-License-Identifier: MIT */
/* The parts of an ELF file that its symbols need. */
#ifndef FDRI_BASE_ELF_ELF_FILE_H
#define FDRI_BASE_ELF_ELF_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fdri_elf_part {
    uint64_t offset, bytes;
};
/* An open file: its symbol table with the strings of that. */
struct fdri_elf_file {
    int fd;       /* -1: none */
    bool dynamic; /* only the dynamic symbols are there: the file is stripped */
    struct fdri_elf_part symbols, text;
};

/* Opens the file at `path` if it has this build id, as hexadecimal text; "": any file. If it has no table of all
 * symbols, a separate debug file with the same build id takes its place. False: there is no such file. */
bool fdri_elf_open(struct fdri_elf_file *f, const char *path, const char *build_id);
void fdri_elf_close(struct fdri_elf_file *f);
/* Reads up to `bytes` at `offset`; returns how many there were. */
size_t fdri_elf_read_at(int fd, void *to, size_t bytes, uint64_t offset);

#endif
