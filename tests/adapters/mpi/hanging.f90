! SPDX-License-Identifier: MIT
! An MPI program in Fortran that hangs in the way of its argument, after some healthy rounds. Rank 1 is the one to blame.
program hanging
  use mpi
  implicit none
  integer :: rank, ranks, i, ierror, x, status(MPI_STATUS_SIZE)
  integer, volatile :: turns
  character(len=16) :: how
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, how)
  turns = 0
  do i = 1, 5
    call all()
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 3, x, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 3, &
                      MPI_COMM_WORLD, status, ierror)
  end do
  select case (how)
  case ('compute')
    do while (rank == 1)
      turns = turns + 1
    end do
  case ('pair')
    if (rank < 2) call MPI_Recv(x, 1, MPI_INTEGER, 1 - rank, 7, MPI_COMM_WORLD, status, ierror)
  case ('circle')
    call MPI_Recv(x, 1, MPI_INTEGER, mod(rank + 1, ranks), 7, MPI_COMM_WORLD, status, ierror)
  case ('mismatch')
    if (rank == 1) call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end select
  call all()
  call MPI_Finalize(ierror)
contains
  subroutine all()
    integer :: total
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  end subroutine
end program
