! SPDX-License-Identifier: MIT
!> fdr for Fortran 2008: the functions of <fdr/fdr.h> under the same names, with Fortran's strings. That header is their
!> contract: what each does, where it may be called, what it costs. A module file fits one compiler only, so compile
!> this file with your program:
!>
!>     gfortran -c PREFIX/include/fdr/fdr.f90 && gfortran app.f90 fdr.o -lfdr
!>
!>     use fdr
!>     integer(fdr_id), save :: solve = 0
!>     integer :: status
!>     status = fdr_init()                                                 ! settings from the environment
!>     if (solve == 0) solve = fdr_region_define("solve", "app.f90", 12)   ! once; an id stays valid
!>     call fdr_enter(solve)
!>     ...
!>     call fdr_leave(solve)
!>     status = fdr_snapshot("after solve")
!>
!> Trailing blanks of strings are dropped. An id of 0 does no harm: its events are shown as [unknown].
!> In C only: readings, samples, regions by address, settings by structure, fdr_modules_changed, fdr_handlers_changed,
!> fdr_handlers_chain, fdr_ending, fdr_build.
module fdr
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_int64_t, c_null_char, c_null_ptr, c_ptr, &
        c_size_t, c_f_pointer, c_associated, c_loc
    implicit none
    private

    integer, parameter, public :: fdr_id = c_int32_t    !< regions, metrics, markers, communicators
    integer, parameter, public :: fdr_int = c_int64_t   !< values, bytes, times in ns
    integer, parameter, public :: fdr_real = c_double
    !> Types of metrics and of fields of events.
    integer(c_int), parameter, public :: fdr_u64 = 0, fdr_i64 = 1, fdr_f64 = 2, fdr_u32 = 3, fdr_i32 = 4, fdr_f32 = 5
    !> Operations of fdr_io_begin and fdr_io_end.
    integer(c_int32_t), parameter, public :: fdr_io_open = 0, fdr_io_close = 1, fdr_io_read = 2, fdr_io_write = 3
    integer(c_int32_t), parameter, public :: fdr_io_sync = 4, fdr_io_other = 5
    integer(c_int64_t), parameter, public :: fdr_io_no_offset = -1
    !> Ordinals of messages.
    integer(c_int64_t), parameter, public :: fdr_ordinal_unknown = -1, fdr_ordinal_ambiguous = ishft(1_c_int64_t, 63)
    integer(c_int), parameter, public :: fdr_gauge = 0, fdr_counter = 1               !< kinds of metrics

    !> struct fdr_usage; <fdr/fdr.h> explains the fields.
    type, bind(c), public :: fdr_usage_type
        integer(c_int64_t) :: buffer_bytes, bin_bytes, bins, bins_free, meta_bytes
        integer(c_int64_t) :: locations, presented, stored, filtered, reduced, lost, reductions
        integer(c_int64_t) :: bytes_stored, snapshots, reduction_ns, reduction_worst_ns, bins_used, locations_sure
    end type
    type, bind(c) :: c_field
        type(c_ptr) :: name
        integer(c_int) :: type
        integer(c_size_t) :: offset
    end type

    public :: fdr_init, fdr_finalize, fdr_region_define, fdr_enter, fdr_leave, fdr_enter_at, fdr_leave_at
    public :: fdr_metric_define, fdr_metric, fdr_metric_at, fdr_marker_define, fdr_marker, fdr_marker_at
    public :: fdr_comm_define_as, fdr_message_send_nth, fdr_message_recv_nth, fdr_message_send_nth_at
    public :: fdr_message_recv_nth_at, fdr_message_recv_open, fdr_message_recv_open_at, fdr_message_resolve
    public :: fdr_message_resolve_at, fdr_collective_begin_nth, fdr_collective_end_nth
    public :: fdr_collective_begin_nth_at, fdr_collective_end_nth_at
    public :: fdr_comm_define, fdr_message_send, fdr_message_recv, fdr_message_send_at, fdr_message_recv_at
    public :: fdr_collective_begin, fdr_collective_end, fdr_collective_begin_at, fdr_collective_end_at
    public :: fdr_tally_make, fdr_tally_add, fdr_tally_set, fdr_tally_read, fdr_tally_compare_set
    public :: fdr_tally_set_all
    public :: fdr_io_file_define, fdr_io_begin, fdr_io_end, fdr_io_begin_at, fdr_io_end_at
    public :: fdr_thread_name, fdr_note, fdr_pause, fdr_resume, fdr_rewind_mark, fdr_rewind
    public :: fdr_phase_begin, fdr_phase_end, fdr_snapshot, fdr_last_snapshot, fdr_version
    public :: fdr_event_define, fdr_event, fdr_event_at, fdr_usage
    public :: fdr_trigger_add, fdr_trigger_remove, fdr_trigger_fire, fdr_trigger_count

    interface
        subroutine fdr_finalize() bind(c, name="fdr_finalize")
        end subroutine
        subroutine fdr_enter(region) bind(c, name="fdr_enter")
            import :: c_int32_t
            integer(c_int32_t), value :: region
        end subroutine
        subroutine fdr_leave(region) bind(c, name="fdr_leave")
            import :: c_int32_t
            integer(c_int32_t), value :: region
        end subroutine
        subroutine fdr_enter_at(region, time_ns) bind(c, name="fdr_enter_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: region
            integer(c_int64_t), value :: time_ns
        end subroutine
        subroutine fdr_leave_at(region, time_ns) bind(c, name="fdr_leave_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: region
            integer(c_int64_t), value :: time_ns
        end subroutine
        subroutine fdr_marker(marker, value) bind(c, name="fdr_marker")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: marker
            integer(c_int64_t), value :: value
        end subroutine
        subroutine fdr_marker_at(marker, value, time_ns) bind(c, name="fdr_marker_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: marker
            integer(c_int64_t), value :: value, time_ns
        end subroutine
        !> peer: a world rank; comm: 0 is the world; bytes: size of the payload.
        subroutine fdr_message_send(peer, tag, comm, bytes) bind(c, name="fdr_message_send")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes
        end subroutine
        subroutine fdr_message_recv(peer, tag, comm, bytes) bind(c, name="fdr_message_recv")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes
        end subroutine
        subroutine fdr_message_send_at(peer, tag, comm, bytes, time_ns) bind(c, name="fdr_message_send_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, time_ns
        end subroutine
        subroutine fdr_message_recv_at(peer, tag, comm, bytes, time_ns) bind(c, name="fdr_message_recv_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, time_ns
        end subroutine
        !> The same with an ordinal: message n of the sender is message n of the receiver. Ambiguous ones add
        !> fdr_ordinal_ambiguous.
        subroutine fdr_message_send_nth(peer, tag, comm, bytes, ordinal) bind(c, name="fdr_message_send_nth")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, ordinal
        end subroutine
        subroutine fdr_message_recv_nth(peer, tag, comm, bytes, ordinal) bind(c, name="fdr_message_recv_nth")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, ordinal
        end subroutine
        subroutine fdr_message_send_nth_at(peer, tag, comm, bytes, ordinal, time_ns) &
            bind(c, name="fdr_message_send_nth_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, ordinal, time_ns
        end subroutine
        subroutine fdr_message_recv_nth_at(peer, tag, comm, bytes, ordinal, time_ns) &
            bind(c, name="fdr_message_recv_nth_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, ordinal, time_ns
        end subroutine
        !> A receive whose ordinal fdr_message_resolve says later. token: a number that the process uses once.
        subroutine fdr_message_recv_open(peer, tag, comm, bytes, token) bind(c, name="fdr_message_recv_open")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, token
        end subroutine
        subroutine fdr_message_resolve(token, ordinal) bind(c, name="fdr_message_resolve")
            import :: c_int64_t
            integer(c_int64_t), value :: token, ordinal
        end subroutine
        subroutine fdr_message_recv_open_at(peer, tag, comm, bytes, token, time_ns) &
            bind(c, name="fdr_message_recv_open_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: peer, tag, comm
            integer(c_int64_t), value :: bytes, token, time_ns
        end subroutine
        subroutine fdr_message_resolve_at(token, ordinal, time_ns) bind(c, name="fdr_message_resolve_at")
            import :: c_int64_t
            integer(c_int64_t), value :: token, ordinal, time_ns
        end subroutine
        !> Counters of the process, by key: <fdr/tally.h>. counter: 0 to 2. 0, or a negative errno.
        integer(c_int) function fdr_tally_set(tally, counter, value) bind(c, name="fdr_tally_set")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tally, value
            integer(c_int), value :: counter
        end function
        !> All counters of `count` tallies by one operation.
        integer(c_int) function fdr_tally_set_all(tally, count, value) bind(c, name="fdr_tally_set_all")
            import :: c_int, c_int64_t, c_size_t
            integer(c_size_t), value :: count
            integer(c_int64_t), intent(in) :: tally(count), value(3 * count)
        end function
        integer(c_int) function fdr_tally_read(tally, counter, value) bind(c, name="fdr_tally_read")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tally
            integer(c_int), value :: counter
            integer(c_int64_t), intent(out) :: value
        end function
        !> 1 if the counter was `expected`; else `expected` becomes its value.
        integer(c_int) function fdr_tally_compare_set(tally, counter, expected, desired) &
            bind(c, name="fdr_tally_compare_set")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tally, desired
            integer(c_int), value :: counter
            integer(c_int64_t), intent(inout) :: expected
        end function
        !> operation: fdr_io_read ...; bytes: asked for; offset: fdr_io_no_offset if it is not known. The result is for
        !> fdr_io_end.
        integer(c_int64_t) function fdr_io_begin(file, operation, bytes, offset) bind(c, name="fdr_io_begin")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: file, operation
            integer(c_int64_t), value :: bytes, offset
        end function
        !> bytes: moved; error: an errno, 0: none.
        subroutine fdr_io_end(file, operation, bytes, error, began) bind(c, name="fdr_io_end")
            import :: c_int, c_int32_t, c_int64_t
            integer(c_int32_t), value :: file, operation
            integer(c_int), value :: error
            integer(c_int64_t), value :: bytes, began
        end subroutine
        integer(c_int64_t) function fdr_io_begin_at(file, operation, bytes, offset, time_ns) &
            bind(c, name="fdr_io_begin_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: file, operation
            integer(c_int64_t), value :: bytes, offset, time_ns
        end function
        subroutine fdr_io_end_at(file, operation, bytes, error, began, time_ns) bind(c, name="fdr_io_end_at")
            import :: c_int, c_int32_t, c_int64_t
            integer(c_int32_t), value :: file, operation
            integer(c_int), value :: error
            integer(c_int64_t), value :: bytes, began, time_ns
        end subroutine
        subroutine fdr_collective_begin(operation) bind(c, name="fdr_collective_begin")
            import :: c_int32_t
            integer(c_int32_t), value :: operation
        end subroutine
        subroutine fdr_collective_end(operation, comm, root, sent, received) bind(c, name="fdr_collective_end")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation, comm, root
            integer(c_int64_t), value :: sent, received
        end subroutine
        subroutine fdr_collective_begin_at(operation, time_ns) bind(c, name="fdr_collective_begin_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation
            integer(c_int64_t), value :: time_ns
        end subroutine
        subroutine fdr_collective_end_at(operation, comm, root, sent, received, time_ns) bind(c, name="fdr_collective_end_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation, comm, root
            integer(c_int64_t), value :: sent, received, time_ns
        end subroutine
        !> The same with an ordinal: how many collectives the communicator had before.
        subroutine fdr_collective_begin_nth(operation, comm, ordinal) bind(c, name="fdr_collective_begin_nth")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation, comm
            integer(c_int64_t), value :: ordinal
        end subroutine
        subroutine fdr_collective_end_nth(operation, comm, root, sent, received, ordinal) &
            bind(c, name="fdr_collective_end_nth")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation, comm, root
            integer(c_int64_t), value :: sent, received, ordinal
        end subroutine
        subroutine fdr_collective_begin_nth_at(operation, comm, ordinal, time_ns) &
            bind(c, name="fdr_collective_begin_nth_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation, comm
            integer(c_int64_t), value :: ordinal, time_ns
        end subroutine
        subroutine fdr_collective_end_nth_at(operation, comm, root, sent, received, ordinal, time_ns) &
            bind(c, name="fdr_collective_end_nth_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: operation, comm, root
            integer(c_int64_t), value :: sent, received, ordinal, time_ns
        end subroutine
        !> payload: c_loc of a variable with the fields that fdr_event_define described.
        subroutine fdr_event(event, payload) bind(c, name="fdr_event")
            import :: c_int32_t, c_ptr
            integer(c_int32_t), value :: event
            type(c_ptr), value :: payload
        end subroutine
        subroutine fdr_event_at(event, payload, time_ns) bind(c, name="fdr_event_at")
            import :: c_int32_t, c_int64_t, c_ptr
            integer(c_int32_t), value :: event
            type(c_ptr), value :: payload
            integer(c_int64_t), value :: time_ns
        end subroutine
        type(fdr_usage_type) function fdr_usage() bind(c, name="fdr_usage")
            import :: fdr_usage_type
        end function
        subroutine fdr_pause() bind(c, name="fdr_pause")
        end subroutine
        subroutine fdr_resume() bind(c, name="fdr_resume")
        end subroutine
        subroutine fdr_rewind_mark() bind(c, name="fdr_rewind_mark")
        end subroutine
        subroutine fdr_rewind() bind(c, name="fdr_rewind")
        end subroutine
        integer(c_int) function fdr_trigger_remove(trigger) bind(c, name="fdr_trigger_remove")
            import :: c_int
            integer(c_int), value :: trigger
        end function
        subroutine fdr_trigger_fire(trigger, value) bind(c, name="fdr_trigger_fire")
            import :: c_int, c_double
            integer(c_int), value :: trigger
            real(c_double), value :: value
        end subroutine
        integer(c_int64_t) function fdr_trigger_count(trigger) bind(c, name="fdr_trigger_count")
            import :: c_int, c_int64_t
            integer(c_int), value :: trigger
        end function
    end interface

    interface ! the C functions behind those that take or give strings
        integer(c_int) function c_init(config) bind(c, name="fdr_init")
            import :: c_int, c_ptr
            type(c_ptr), value :: config
        end function
        integer(c_int32_t) function c_region_define(name, file, line) bind(c, name="fdr_region_define")
            import :: c_int32_t, c_int, c_char
            character(kind=c_char), intent(in) :: name(*), file(*)
            integer(c_int), value :: line
        end function
        integer(c_int32_t) function c_metric_define(name, unit, type, kind) bind(c, name="fdr_metric_define")
            import :: c_int32_t, c_int, c_char
            character(kind=c_char), intent(in) :: name(*), unit(*)
            integer(c_int), value :: type, kind
        end function
        integer(c_int32_t) function c_marker_define(name) bind(c, name="fdr_marker_define")
            import :: c_int32_t, c_char
            character(kind=c_char), intent(in) :: name(*)
        end function
        integer(c_int) function c_tally_make(kind, key, tally) bind(c, name="fdr_tally_make")
            import :: c_int, c_int32_t, c_int64_t, c_char
            integer(c_int32_t), value :: kind
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int64_t), intent(out) :: tally
        end function
        integer(c_int) function c_tally_add(tally, counter, more, before) bind(c, name="fdr_tally_add")
            import :: c_int, c_int64_t, c_ptr
            integer(c_int64_t), value :: tally, more
            integer(c_int), value :: counter
            type(c_ptr), value :: before
        end function
        integer(c_int32_t) function c_io_file_define(name) bind(c, name="fdr_io_file_define")
            import :: c_int32_t, c_char
            character(kind=c_char), intent(in) :: name(*)
        end function
        integer(c_int32_t) function c_comm_define(name, ranks, size) bind(c, name="fdr_comm_define")
            import :: c_int32_t, c_char, c_size_t
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), intent(in) :: ranks(*)
            integer(c_size_t), value :: size
        end function
        integer(c_int32_t) function c_comm_define_as(name, ranks, size, identity) bind(c, name="fdr_comm_define_as")
            import :: c_int32_t, c_int64_t, c_char, c_size_t
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), intent(in) :: ranks(*)
            integer(c_size_t), value :: size
            integer(c_int64_t), value :: identity
        end function
        integer(c_int32_t) function c_event_define(name, fields, count) bind(c, name="fdr_event_define")
            import :: c_int32_t, c_char, c_size_t, c_field
            character(kind=c_char), intent(in) :: name(*)
            type(c_field), intent(in) :: fields(*)
            integer(c_size_t), value :: count
        end function
        subroutine c_metric_i64(metric, value) bind(c, name="fdr_metric_i64")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: metric
            integer(c_int64_t), value :: value
        end subroutine
        subroutine c_metric_f64(metric, value) bind(c, name="fdr_metric_f64")
            import :: c_int32_t, c_double
            integer(c_int32_t), value :: metric
            real(c_double), value :: value
        end subroutine
        subroutine c_metric_i64_at(metric, value, time_ns) bind(c, name="fdr_metric_i64_at")
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: metric
            integer(c_int64_t), value :: value, time_ns
        end subroutine
        subroutine c_metric_f64_at(metric, value, time_ns) bind(c, name="fdr_metric_f64_at")
            import :: c_int32_t, c_int64_t, c_double
            integer(c_int32_t), value :: metric
            real(c_double), value :: value
            integer(c_int64_t), value :: time_ns
        end subroutine
        subroutine c_thread_name(name) bind(c, name="fdr_thread_name")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine c_note(key, value) bind(c, name="fdr_note")
            import :: c_char
            character(kind=c_char), intent(in) :: key(*), value(*)
        end subroutine
        subroutine c_phase_begin(name) bind(c, name="fdr_phase_begin")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine c_phase_end(name) bind(c, name="fdr_phase_end")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        integer(c_int) function c_trigger_add(line) bind(c, name="fdr_trigger_add")
            import :: c_int, c_char
            character(kind=c_char), intent(in) :: line(*)
        end function
        integer(c_int) function c_snapshot(reason) bind(c, name="fdr_snapshot")
            import :: c_int, c_char
            character(kind=c_char), intent(in) :: reason(*)
        end function
        type(c_ptr) function c_last_snapshot() bind(c, name="fdr_last_snapshot")
            import :: c_ptr
        end function
        type(c_ptr) function c_version() bind(c, name="fdr_version")
            import :: c_ptr
        end function
    end interface

    interface fdr_metric !< a value of kind fdr_int or fdr_real
        module procedure metric_int, metric_real
    end interface
    interface fdr_metric_at
        module procedure metric_int_at, metric_real_at
    end interface

contains

    !> Settings from the environment, else the defaults. Returns 0, or minus an error number; then nothing records.
    integer function fdr_init()
        fdr_init = int(c_init(c_null_ptr))
    end function

    integer(fdr_id) function fdr_region_define(name, file, line)
        character(len=*), intent(in) :: name, file
        integer, intent(in) :: line
        fdr_region_define = c_region_define(text(name), text(file), int(line, c_int))
    end function

    !> type: fdr_u64, fdr_i64 or fdr_f64; kind: fdr_gauge or fdr_counter.
    integer(fdr_id) function fdr_metric_define(name, unit, type, kind)
        character(len=*), intent(in) :: name, unit
        integer(c_int), intent(in) :: type, kind
        fdr_metric_define = c_metric_define(text(name), text(unit), type, kind)
    end function

    integer(fdr_id) function fdr_marker_define(name)
        character(len=*), intent(in) :: name
        fdr_marker_define = c_marker_define(text(name))
    end function

    !> kind: 32768 and above. key: at most 24 bytes; zeros fill it up.
    integer(c_int) function fdr_tally_make(kind, key, tally)
        integer(c_int32_t), intent(in) :: kind
        character(len=*), intent(in) :: key
        integer(fdr_int), intent(out) :: tally
        character(kind=c_char, len=24) :: whole
        whole = repeat(c_null_char, 24)
        whole(1:min(24, len(key))) = key
        fdr_tally_make = c_tally_make(kind, whole, tally)
    end function

    !> before: the value before.
    integer(c_int) function fdr_tally_add(tally, counter, more, before)
        integer(fdr_int), intent(in) :: tally, more
        integer(c_int), intent(in) :: counter
        integer(fdr_int), intent(out), optional, target :: before
        type(c_ptr) :: to
        to = c_null_ptr
        if (present(before)) to = c_loc(before)
        fdr_tally_add = c_tally_add(tally, counter, more, to)
    end function

    integer(fdr_id) function fdr_io_file_define(name)
        character(len=*), intent(in) :: name
        fdr_io_file_define = c_io_file_define(text(name))
    end function

    !> world_ranks: the ranks of the communicator.
    integer(fdr_id) function fdr_comm_define(name, world_ranks)
        character(len=*), intent(in) :: name
        integer(fdr_id), intent(in) :: world_ranks(:)
        fdr_comm_define = c_comm_define(text(name), world_ranks, size(world_ranks, kind=c_size_t))
    end function

    !> identity: not 0, and known to all members.
    integer(fdr_id) function fdr_comm_define_as(name, world_ranks, identity)
        character(len=*), intent(in) :: name
        integer(fdr_id), intent(in) :: world_ranks(:)
        integer(fdr_int), intent(in) :: identity
        fdr_comm_define_as = c_comm_define_as(text(name), world_ranks, size(world_ranks, kind=c_size_t), identity)
    end function

    !> fields: names; types: fdr_i64, fdr_f64 ...; offsets: of each field in the payload of fdr_event, in bytes. Without
    !> offsets the fields follow each other, 8 bytes each.
    integer(fdr_id) function fdr_event_define(name, fields, types, offsets)
        character(len=*), intent(in) :: name, fields(:)
        integer(c_int), intent(in) :: types(:)
        integer, intent(in), optional :: offsets(:)
        character(kind=c_char, len=len(fields) + 1), target :: names(size(fields))
        type(c_field) :: list(size(fields))
        integer :: i
        do i = 1, size(fields)
            names(i) = text(fields(i))
            list(i) = c_field(c_loc(names(i)), types(i), int(8 * (i - 1), c_size_t))
            if (present(offsets)) list(i)%offset = int(offsets(i), c_size_t)
        end do
        fdr_event_define = c_event_define(text(name), list, size(fields, kind=c_size_t))
    end function

    subroutine metric_int(metric, value)
        integer(fdr_id), intent(in) :: metric
        integer(fdr_int), intent(in) :: value
        call c_metric_i64(metric, value)
    end subroutine
    subroutine metric_real(metric, value)
        integer(fdr_id), intent(in) :: metric
        real(fdr_real), intent(in) :: value
        call c_metric_f64(metric, value)
    end subroutine
    subroutine metric_int_at(metric, value, time_ns)
        integer(fdr_id), intent(in) :: metric
        integer(fdr_int), intent(in) :: value, time_ns
        call c_metric_i64_at(metric, value, time_ns)
    end subroutine
    subroutine metric_real_at(metric, value, time_ns)
        integer(fdr_id), intent(in) :: metric
        real(fdr_real), intent(in) :: value
        integer(fdr_int), intent(in) :: time_ns
        call c_metric_f64_at(metric, value, time_ns)
    end subroutine

    subroutine fdr_thread_name(name)
        character(len=*), intent(in) :: name
        call c_thread_name(text(name))
    end subroutine
    subroutine fdr_note(key, value)
        character(len=*), intent(in) :: key, value
        call c_note(text(key), text(value))
    end subroutine
    subroutine fdr_phase_begin(name)
        character(len=*), intent(in) :: name
        call c_phase_begin(text(name))
    end subroutine
    subroutine fdr_phase_end(name)
        character(len=*), intent(in) :: name
        call c_phase_end(text(name))
    end subroutine

    !> line: as in docs/TRIGGERS.md. Returns the trigger's id, which is greater than 0, or minus an error number.
    integer function fdr_trigger_add(line)
        character(len=*), intent(in) :: line
        fdr_trigger_add = int(c_trigger_add(text(line)))
    end function

    !> Returns 0, or minus an error number.
    integer function fdr_snapshot(reason)
        character(len=*), intent(in) :: reason
        fdr_snapshot = int(c_snapshot(text(reason)))
    end function

    !> Path of the newest snapshot of this process; empty if there is none.
    function fdr_last_snapshot() result(path)
        character(len=:), allocatable :: path
        path = string(c_last_snapshot())
    end function
    function fdr_version() result(version)
        character(len=:), allocatable :: version
        version = string(c_version())
    end function

    pure function text(s) result(c)
        character(len=*), intent(in) :: s
        character(kind=c_char, len=:), allocatable :: c
        c = trim(s)//c_null_char
    end function

    function string(p) result(s)
        type(c_ptr), intent(in) :: p
        character(len=:), allocatable :: s
        character(kind=c_char), pointer :: c(:)
        integer :: n
        s = ''
        if (.not. c_associated(p)) return
        call c_f_pointer(p, c, [4096])
        do n = 1, 4096
            if (c(n) == c_null_char) exit
            s = s//c(n)
        end do
    end function
end module fdr
