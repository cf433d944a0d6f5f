! SPDX-License-Identifier: MIT
! Messages and collectives of mpi_f08, counted by the program itself; see traffic.c.
program traffic
  use mpi_f08
  implicit none
  integer :: rank, ranks, partner, i, n, flagged, buffer(100), other(100), indices(8)
  integer(8) :: sent(2) = 0, received(2) = 0, together(2) = 0
  logical :: flag
  type(MPI_Request) :: request(8)
  type(MPI_Status) :: status, statuses(8)
  type(MPI_Comm) :: half
  type(MPI_Message) :: message
  call mpi_init()
  call mpi_comm_rank(MPI_COMM_WORLD, rank)
  call mpi_comm_size(MPI_COMM_WORLD, ranks)
  partner = ieor(rank, 1)
  buffer = rank
  if (rank == 0) then
    call mpi_send(buffer, 5, MPI_INTEGER, partner, 1, MPI_COMM_WORLD)
    call count_of(sent, 5)
  else
    call mpi_recv(other, 100, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call count_of(received, 5)
  end if
  call mpi_sendrecv(buffer, 7, MPI_INTEGER, partner, 2, other, 100, MPI_INTEGER, partner, 2, MPI_COMM_WORLD, status)
  call both(7)
  if (status%MPI_SOURCE /= partner) error stop 3
  call post()
  do i = 1, 8
    if (mod(i, 2) == 0) call mpi_wait(request(i), MPI_STATUS_IGNORE)
    if (mod(i, 2) == 1) call mpi_wait(request(i), status)
  end do
  call post()
  call mpi_waitall(8, request, MPI_STATUSES_IGNORE)
  call post()
  call mpi_waitall(8, request, statuses)
  if (statuses(1)%MPI_SOURCE /= partner .or. statuses(3)%MPI_TAG /= 2) error stop 4
  call post()
  do i = 1, 8
    call mpi_waitany(8, request, n, MPI_STATUS_IGNORE)
  end do
  call post()
  flagged = 0
  do while (flagged < 8)
    call mpi_testsome(8, request, n, indices, MPI_STATUSES_IGNORE)
    flagged = flagged + n
  end do
  call post()
  flag = .false.
  do while (.not. flag)
    call mpi_testall(8, request, flag, statuses)
  end do
  call mpi_isend(buffer, 6, MPI_INTEGER, partner, 9, MPI_COMM_WORLD, request(1))
  call mpi_mprobe(partner, 9, MPI_COMM_WORLD, message, status)
  call mpi_mrecv(other, 6, MPI_INTEGER, message, MPI_STATUS_IGNORE)
  call mpi_wait(request(1), status)
  call both(6)
  call mpi_barrier(MPI_COMM_WORLD)
  call collective(0)
  call mpi_bcast(buffer, 4, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call collective(4)
  call mpi_allreduce(MPI_IN_PLACE, buffer, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call collective(8)
  call mpi_gather(MPI_IN_PLACE, 0, MPI_INTEGER, other, 4, MPI_INTEGER, 0, MPI_COMM_SELF)
  call collective(8)
  call mpi_iallreduce(buffer, other, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request(1))
  call mpi_wait(request(1), MPI_STATUS_IGNORE)
  call collective(8)
  call mpi_comm_split(MPI_COMM_WORLD, 0, -rank, half)
  call mpi_sendrecv(buffer, 2, MPI_INTEGER, rank, 2, other, 2, MPI_INTEGER, rank, 2, half, MPI_STATUS_IGNORE)
  call both(2)
  call mpi_comm_set_name(half, 'turned round')
  call mpi_comm_free(half)
  call mpi_finalize()
  print '(a,i0,a,i0,1x,i0,a,i0,1x,i0,a,i0,1x,i0)', 'rank ', rank, ' sent ', sent, ' received ', received, &
    ' collectives ', together
contains
  subroutine count_of(what, n)
    integer(8), intent(inout) :: what(2)
    integer, intent(in) :: n
    what = what + [1, 4 * n]
  end subroutine
  subroutine both(n)
    integer, intent(in) :: n
    call count_of(sent, n)
    call count_of(received, n)
  end subroutine
  subroutine collective(n)
    integer, intent(in) :: n
    call count_of(together, n)
  end subroutine
  subroutine post()
    integer :: k
    do k = 1, 4
      call mpi_irecv(other(k), 1, MPI_INTEGER, partner, k, MPI_COMM_WORLD, request(2 * k - 1))
      call mpi_isend(buffer, 1, MPI_INTEGER, partner, k, MPI_COMM_WORLD, request(2 * k))
      call both(1)
    end do
  end subroutine
end program
