/* SPDX-License-Identifier: MIT */
/* An MPI program of many short functions: heat on a square. Rows are shared among the ranks, with a halo exchange and a
 * norm in each step. For mpi_figures.py.
 *
 *     mpi_solver SIZE STEPS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, size, rows;
static double *now, *next;

static inline __attribute__((always_inline, no_instrument_function)) double *cell(double *grid, int row, int column)
{
    return &grid[(size_t)row * (size_t)size + (size_t)column];
}

/* Some hundred ns: the conductivity of a cell depends on its temperature. */
static __attribute__((noinline)) double conductivity(double temperature)
{
    double k = 1;
    for (int i = 0; i < 40; i++) k = 0.5 * (k + (1 + temperature * 1e-3) / k);
    return k;
}

static double relax_cell(int row, int column)
{
    double mean = 0.25 * (*cell(now, row - 1, column) + *cell(now, row + 1, column) + *cell(now, row, column - 1) +
                          *cell(now, row, column + 1));
    double change = (mean - *cell(now, row, column)) * 0.5 * conductivity(mean);
    *cell(next, row, column) = *cell(now, row, column) + change;
    return change * change;
}

static double relax_row(int row)
{
    double change = 0;
    for (int column = 1; column < size - 1; column++) change += relax_cell(row, column);
    return change;
}

static void exchange(void)
{
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Request request[4];
    MPI_Irecv(cell(now, 0, 0), size, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &request[0]);
    MPI_Irecv(cell(now, rows + 1, 0), size, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &request[1]);
    MPI_Isend(cell(now, 1, 0), size, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &request[2]);
    MPI_Isend(cell(now, rows, 0), size, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &request[3]);
    MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
}

static double step(void)
{
    double change = 0, all;
    exchange();
    for (int row = 1; row <= rows; row++) change += relax_row(row);
    MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double *old = now;
    now = next, next = old;
    return all;
}

int main(int argc, char **argv)
{
    double change = 0;
    MPI_Init(&argc, &argv);
    if (argc != 3) return 64;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size = atoi(argv[1]), rows = size / ranks;
    size_t cells = (size_t)(rows + 2) * (size_t)size;
    now = calloc(cells, sizeof *now), next = calloc(cells, sizeof *next);
    if (!now || !next) return 1;
    if (!rank)
        for (int column = 0; column < size; column++) *cell(now, 1, column) = *cell(next, 1, column) = column;
    for (int i = 0; i < atoi(argv[2]); i++) change = step();
    if (!rank) printf("%.12g\n", change);
    MPI_Finalize();
    free(now);
    free(next);
    return 0;
}
