! SPDX-License-Identifier: MIT
! One-sided communication of `use mpi`, or of mpi_f08 with -DF08, counted by the program itself; see rma.c.
program rma
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Win) :: win
  type(MPI_Request) :: request
#else
  use mpi
  implicit none
  integer :: win, request
#endif
  integer, parameter :: most = 4096, width = 4
  integer(MPI_ADDRESS_KIND) :: bytes = most * width, place
  integer :: rank, other, error, memory(most), out(most), in(most)
  integer(8) :: did(3, 0:31) = 0 ! operations to the other rank: times, bytes sent, bytes received
  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  other = ieor(rank, 1)
  memory = 0
  out = rank
  call mpi_win_create(memory, bytes, width, MPI_INFO_NULL, MPI_COMM_WORLD, win, error)
  call count_of(9, 0, 0)
  call mpi_win_fence(0, win, error)
  call count_of(16, 0, 0)
  place = 0
  call mpi_put(out, 10, MPI_INTEGER, other, place, 10, MPI_INTEGER, win, error)
  call count_of(1, 10, 0)
  place = 100
  call mpi_get(in, 11, MPI_INTEGER, other, place, 11, MPI_INTEGER, win, error)
  call count_of(2, 0, 11)
  place = 200
  call mpi_accumulate(out, 12, MPI_INTEGER, other, place, 12, MPI_INTEGER, MPI_SUM, win, error)
  call count_of(3, 12, 0)
  call mpi_win_fence(0, win, error)
  call count_of(16, 0, 0)
  call mpi_win_lock(MPI_LOCK_SHARED, other, 0, win, error)
  call count_of(12, 0, 0)
  place = 300
  call mpi_get_accumulate(out, 13, MPI_INTEGER, in, 13, MPI_INTEGER, other, place, 13, MPI_INTEGER, MPI_NO_OP, win, error)
  call count_of(4, 0, 13)
  place = 400
  call mpi_fetch_and_op(out, in, MPI_INTEGER, other, place, MPI_SUM, win, error)
  call count_of(5, 1, 1)
  call mpi_compare_and_swap(out, out(2), in(2), MPI_INTEGER, other, place, win, error)
  call count_of(6, 1, 1)
  call mpi_win_flush(other, win, error)
  call count_of(20, 0, 0)
  place = 500
  call mpi_rput(out, 14, MPI_INTEGER, other, place, 14, MPI_INTEGER, win, request, error)
  call count_of(1, 14, 0)
  call mpi_wait(request, MPI_STATUS_IGNORE, error)
  call mpi_win_unlock(other, win, error)
  call count_of(18, 0, 0)
  call mpi_win_free(win, error)
  call count_of(10, 0, 0)
  call mpi_finalize(error)
  call print_all()
contains
  subroutine count_of(what, sent, received)
    integer, intent(in) :: what, sent, received
    did(:, what) = did(:, what) + [1, sent * width, received * width]
  end subroutine
  subroutine print_all()
    integer :: what, target
    do what = 0, 31
      target = other
      if (any([9, 10, 16] == what)) target = -1
      if (did(1, what) > 0) print '(5(a, i0, 1x), a, i0)', 'rank ', rank, 'what ', what, 'target ', target, &
        'times ', did(1, what), 'sent ', did(2, what), 'received ', did(3, what)
    end do
  end subroutine
end program
