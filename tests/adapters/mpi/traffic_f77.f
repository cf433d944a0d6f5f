C SPDX-License-Identifier: MIT
C Messages and collectives of mpif.h, counted by the program itself; see
C traffic.c.
      program traffic
      implicit none
      include 'mpif.h'
      integer rank, ranks, other, i, error, requests(8), half
      integer status(MPI_STATUS_SIZE), buffer(100), answer(100)
      integer sent, sentb, recvd, recvb, colls, collb, n
      sent = 0
      sentb = 0
      recvd = 0
      recvb = 0
      colls = 0
      collb = 0
      call mpi_init(error)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
      call mpi_comm_size(MPI_COMM_WORLD, ranks, error)
      other = 1 - rank
      do 10 i = 1, 5
        if (rank .eq. 0) then
          call mpi_send(buffer, i, MPI_INTEGER, other, i,
     &      MPI_COMM_WORLD, error)
          sent = sent + 1
          sentb = sentb + 4 * i
        else
          call mpi_recv(answer, 100, MPI_INTEGER, MPI_ANY_SOURCE, i,
     &      MPI_COMM_WORLD, status, error)
          if (status(MPI_SOURCE) .ne. other) stop 3
          recvd = recvd + 1
          recvb = recvb + 4 * i
        end if
   10 continue
      do 20 i = 1, 4
        call mpi_irecv(answer(i), 1, MPI_INTEGER, other, i,
     &    MPI_COMM_WORLD, requests(i), error)
        call mpi_isend(buffer, 1, MPI_INTEGER, other, i,
     &    MPI_COMM_WORLD, requests(4 + i), error)
        sent = sent + 1
        sentb = sentb + 4
        recvd = recvd + 1
        recvb = recvb + 4
   20 continue
      call mpi_wait(requests(1), MPI_STATUS_IGNORE, error)
      call mpi_waitany(8, requests, n, status, error)
      call mpi_waitall(8, requests, MPI_STATUSES_IGNORE, error)
      call mpi_comm_dup(MPI_COMM_WORLD, half, error)
      call mpi_barrier(half, error)
      call mpi_comm_free(half, error)
      call mpi_reduce(buffer, answer, 3, MPI_INTEGER, MPI_SUM, 1,
     &  MPI_COMM_WORLD, error)
      colls = colls + 2
      collb = collb + 12
      if (rank .eq. 1) collb = collb + 12
      call mpi_finalize(error)
      print '(a,i0,a,i0,1x,i0,a,i0,1x,i0,a,i0,1x,i0)', 'rank ', rank,
     &  ' sent ', sent, sentb, ' received ', recvd, recvb,
     &  ' collectives ', colls, collb
      end
