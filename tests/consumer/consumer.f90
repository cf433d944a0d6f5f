! SPDX-License-Identifier: MIT
! The smallest Fortran user: it records each kind of event once and takes one snapshot.
program consumer
    use, intrinsic :: iso_c_binding
    use fdr
    implicit none
    type, bind(c) :: halo_type
        integer(c_int32_t) :: cells
        real(c_double) :: seconds
    end type
    type(halo_type), target :: halo
    type(fdr_usage_type) :: usage
    integer(c_int64_t), target :: pairs(2) = [-5, 6]
    integer(fdr_id) :: outer, inner, temperature, steps, round, pair, exchanged, both, input
    integer(fdr_int) :: began, tally, before
    integer :: i, trigger
    if (fdr_init() /= 0) error stop "fdr_init"
    outer = fdr_region_define("outer loop", "consumer.f90", 10)
    inner = fdr_region_define("inner", "consumer.f90", 14)
    temperature = fdr_metric_define("temperature", "K", fdr_f64, fdr_gauge)
    steps = fdr_metric_define("steps", "", fdr_i64, fdr_counter)
    round = fdr_marker_define("round")
    input = fdr_io_file_define("case-17.h5 ")
    pair = fdr_comm_define("pair", [0_fdr_id, 1_fdr_id])
    exchanged = fdr_event_define("halo exchanged", ["cells  ", "seconds"], [fdr_i32, fdr_f64], [0, 8])
    both = fdr_event_define("both", ["a ", "bc"], [fdr_i64, fdr_u64])
    call fdr_thread_name("solver")
    call fdr_note("case", "17   ")
    do i = 1, 3
        call fdr_enter(outer)
        call fdr_marker(round, int(i, fdr_int))
        call fdr_enter(inner)
        call fdr_metric(temperature, 273.25_fdr_real + i)
        call fdr_metric(steps, int(-i, fdr_int))
        call fdr_message_send(1, 7, pair, 4096_fdr_int)
        call fdr_collective_begin(10)
        call fdr_collective_end(10, 0, -1, 0_fdr_int, 0_fdr_int)
        halo = halo_type(-i, 0.5_c_double * i)
        call fdr_event(exchanged, c_loc(halo))
        call fdr_event(both, c_loc(pairs))
        began = fdr_io_begin(input, fdr_io_read, 512_fdr_int, fdr_io_no_offset)
        call fdr_io_end(input, fdr_io_read, 500_fdr_int, 0, began)
        call fdr_leave(inner)
        call fdr_leave(outer)
    end do
    pair = fdr_comm_define_as("pair", [0_fdr_id, 1_fdr_id], 77_fdr_int)
    call fdr_message_send_nth(1, 8, pair, 64_fdr_int, 41_fdr_int)
    call fdr_message_recv_nth(1, 8, pair, 65_fdr_int, ior(42_fdr_int, fdr_ordinal_ambiguous))
    call fdr_message_recv_open(1, 9, pair, 66_fdr_int, 5_fdr_int)
    call fdr_message_resolve(5_fdr_int, 43_fdr_int)
    call fdr_collective_begin_nth(10, pair, 3_fdr_int)
    call fdr_collective_end_nth(10, pair, -1, 1_fdr_int, 2_fdr_int, 3_fdr_int)
    if (fdr_tally_make(40000, "halo", tally) /= 0) error stop "fdr_tally_make"
    if (fdr_tally_add(tally, 0, 5_fdr_int) /= 0) error stop "fdr_tally_add"
    if (fdr_tally_add(tally, 0, 2_fdr_int, before) /= 0 .or. before /= 5) error stop "fdr_tally_add, before"
    if (fdr_tally_set(tally, 1, 9_fdr_int) /= 0) error stop "fdr_tally_set"
    if (fdr_tally_compare_set(tally, 1, before, 1_fdr_int) /= 0 .or. before /= 9) error stop "fdr_tally_compare_set"
    if (fdr_tally_read(tally, 0, before) /= 0 .or. before /= 7) error stop "fdr_tally_read"
    trigger = fdr_trigger_add("mine: api  ")
    if (trigger <= 0) error stop "fdr_trigger_add"
    if (fdr_trigger_count(trigger) /= 0) error stop "fdr_trigger_count"
    if (fdr_trigger_remove(trigger) /= 0) error stop "fdr_trigger_remove"
    call fdr_trigger_fire(trigger, 1.0_fdr_real) ! no such trigger: nothing happens
    if (fdr_trigger_remove(trigger) == 0) error stop "fdr_trigger_remove of one that is gone"
    if (fdr_snapshot("from Fortran") /= 0) error stop "fdr_snapshot"
    if (index(fdr_last_snapshot(), ".fdr") == 0) error stop "fdr_last_snapshot"
    if (len(fdr_version()) < 5) error stop "fdr_version"
    usage = fdr_usage()
    if (usage%presented /= 42 .or. usage%snapshots /= 1 .or. usage%locations_sure <= 0) error stop "fdr_usage"
    call fdr_finalize()
end program
