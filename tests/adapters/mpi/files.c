/* SPDX-License-Identifier: MIT */
/* Two ranks write and read files in every way of MPI-IO. They print how often they did, and how many bytes moved. fdr
 * must have recorded the same numbers. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 256 };
static int rank, size, buffer[MOST];
static long opened, closed, synced, reads, read_bytes, writes, write_bytes;

static void wrote(int count) { writes++, write_bytes += count * (long)sizeof(int); }
static void got(int count) { reads++, read_bytes += count * (long)sizeof(int); }

static MPI_File open_file(const char *name, MPI_Comm comm)
{
    MPI_File f;
    if (MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f)) exit(3);
    opened++;
    return f;
}

static void close_file(MPI_File *f) { MPI_File_close(f), closed++; }

static MPI_Offset own_place(int i) { return (MPI_Offset)(i * size + rank) * MOST * (int)sizeof(int); }

static void blocking(MPI_File f)
{
    MPI_Status status;
    MPI_File_write_at(f, own_place(0), buffer, 10, MPI_INT, &status), wrote(10);
    MPI_File_write_at_all(f, own_place(1), buffer, 11, MPI_INT, MPI_STATUS_IGNORE), wrote(11);
    MPI_File_seek(f, own_place(2), MPI_SEEK_SET);
    MPI_File_write(f, buffer, 12, MPI_INT, MPI_STATUS_IGNORE), wrote(12);
    MPI_File_write_all(f, buffer, 13, MPI_INT, MPI_STATUS_IGNORE), wrote(13);
    MPI_File_sync(f), synced++;
    MPI_File_read_at(f, own_place(0), buffer, 10, MPI_INT, &status), got(10);
    MPI_File_read_at_all(f, own_place(1), buffer, 11, MPI_INT, MPI_STATUS_IGNORE), got(11);
    MPI_File_seek(f, own_place(2), MPI_SEEK_SET);
    MPI_File_read(f, buffer, 12, MPI_INT, MPI_STATUS_IGNORE), got(12);
    MPI_File_read_all(f, buffer, 13, MPI_INT, MPI_STATUS_IGNORE), got(13);
}

static void shared(MPI_File f)
{
    MPI_File_write_shared(f, buffer, 20, MPI_INT, MPI_STATUS_IGNORE), wrote(20);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
    MPI_File_read_shared(f, buffer, 20, MPI_INT, MPI_STATUS_IGNORE), got(20);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(f, buffer, 21, MPI_INT, MPI_STATUS_IGNORE), wrote(21);
    MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(f, buffer, 21, MPI_INT, MPI_STATUS_IGNORE), got(21);
}

static void in_two_calls(MPI_File f)
{
    MPI_Status status;
    MPI_File_write_at_all_begin(f, own_place(3), buffer, 30, MPI_INT);
    MPI_File_write_at_all_end(f, buffer, &status), wrote(30);
    MPI_File_read_at_all_begin(f, own_place(3), buffer, 30, MPI_INT);
    MPI_File_read_at_all_end(f, buffer, MPI_STATUS_IGNORE), got(30);
    MPI_File_seek(f, own_place(4), MPI_SEEK_SET);
    MPI_File_write_all_begin(f, buffer, 31, MPI_INT);
    MPI_File_write_all_end(f, buffer, MPI_STATUS_IGNORE), wrote(31);
    MPI_File_seek(f, own_place(4), MPI_SEEK_SET);
    MPI_File_read_all_begin(f, buffer, 31, MPI_INT);
    MPI_File_read_all_end(f, buffer, MPI_STATUS_IGNORE), got(31);
}

static void requests(MPI_File f)
{
    MPI_Request r[2];
    int done = 0;
    MPI_File_iwrite_at(f, own_place(5), buffer, 40, MPI_INT, &r[0]), wrote(40);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_File_iread_at(f, own_place(5), buffer, 40, MPI_INT, &r[0]), got(40);
    while (!done) MPI_Test(&r[0], &done, MPI_STATUS_IGNORE);
    MPI_File_seek(f, own_place(6), MPI_SEEK_SET);
    MPI_File_iwrite(f, buffer, 41, MPI_INT, &r[0]), wrote(41);
    MPI_File_iwrite_at(f, own_place(7), buffer, 42, MPI_INT, &r[1]), wrote(42);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

/* A view in which each rank has every other integer: bytes stay those that are moved. */
static void view(void)
{
    MPI_Datatype every_other;
    MPI_File f = open_file("view.dat", MPI_COMM_WORLD);
    MPI_Type_vector(MOST, 1, size, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_File_set_view(f, rank * (int)sizeof(int), MPI_INT, every_other, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(f, 2, buffer, 50, MPI_INT, MPI_STATUS_IGNORE), wrote(50);
    MPI_File_read_at(f, 2, buffer, 50, MPI_INT, MPI_STATUS_IGNORE), got(50);
    MPI_Type_free(&every_other);
    close_file(&f);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File f = open_file("data.dat", MPI_COMM_WORLD), none;
    blocking(f);
    in_two_calls(f);
    requests(f);
    close_file(&f);
    f = open_file("shared.dat", MPI_COMM_WORLD);
    shared(f);
    close_file(&f);
    view();
    if (MPI_File_open(MPI_COMM_SELF, "nowhere/x.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &none) == MPI_SUCCESS) exit(4);
    opened++; /* it failed, and counts */
    MPI_Finalize();
    printf("rank %d open %ld close %ld sync %ld read %ld %ld write %ld %ld\n", rank, opened, closed, synced, reads,
           read_bytes, writes, write_bytes);
    return 0;
}
