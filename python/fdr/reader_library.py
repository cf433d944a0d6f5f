# SPDX-License-Identifier: MIT
"""libfdr-reader by ctypes: the structures and functions of <fdr/reader.h> that the package uses.

Structures are declared up to the last field used. test_python compares each field with the header."""
import ctypes as c
import glob
import os

U8, U32, U64, I32, I64 = c.c_uint8, c.c_uint32, c.c_uint64, c.c_int32, c.c_int64
TEXT, BOOL, SIZE, POINTER = c.c_char_p, c.c_bool, c.c_size_t, c.c_void_p


def _structure(name, fields):
    return type(name, (c.Structure,), {"_fields_": fields})


FileInfo = _structure("fdr_file_info", [
    ("format", U32), ("state", TEXT), ("reason", TEXT), ("has_cause", BOOL), ("cause_signal", I32), ("cause_code", I32),
    ("cause_addr", U64), ("cause_time_ns", U64), ("cause_tid", U32), ("pid", U32), ("rank", I32), ("host", TEXT),
    ("exe", TEXT), ("build_id", TEXT), ("config", TEXT), ("strategy", TEXT), ("created_realtime_ns", U64),
    ("time_unit_ns", c.c_double), ("buffer_bytes", U64), ("bin_bytes", U64), ("bins", U64), ("bins_free", U64),
    ("meta_bytes", U64), ("bytes_stored", U64), ("first_ns", U64), ("last_ns", U64), ("common_from_ns", U64),
    ("lost_locations", U64), ("lost_unattached", U64), ("lost_definitions", U64), ("dropped_bins", U64),
    ("unlisted_bins", U64), ("realtime_offset_ns", I64), ("taken_ns", U64)])
LocationInfo = _structure("fdr_location_info", [
    ("id", U32), ("name", TEXT), ("tid", U32), ("ended_threads", U32), ("parent", U32), ("samples", BOOL),
    ("numa_node", U32), ("live", BOOL), ("start_ns", U64), ("end_ns", U64), ("from_ns", U64), ("to_ns", U64),
    ("open_count", SIZE)])
Definition = _structure("fdr_definition", [
    ("kind", U32), ("id", U32), ("name", TEXT), ("file", TEXT), ("line", U32), ("address", U64), ("symbol", TEXT)])
Origin = _structure("fdr_origin", [("file", SIZE), ("rank", I32), ("id", U32)])
MetricInfo = _structure("fdr_metric_info", [
    ("id", U32), ("name", TEXT), ("unit", TEXT), ("type", U32), ("counter", BOOL)])
CommInfo = _structure("fdr_comm_info", [
    ("id", U32), ("name", TEXT), ("size", U32), ("identity", U64), ("world_rank", c.POINTER(U32))])
FieldInfo = _structure("fdr_field_info", [
    ("name", TEXT), ("type", U32), ("unit", TEXT), ("metric", U32), ("word", c.POINTER(TEXT))])
KindInfo = _structure("fdr_kind_info", [
    ("name", TEXT), ("phase", TEXT), ("class_", U32), ("named_by", U32), ("field_count", U32), ("field", POINTER)])
Total = _structure("fdr_total", [
    ("location", U32), ("class_", U32), ("id", U32), ("rest", BOOL), ("at_least", BOOL), ("saturated", BOOL),
    ("calls", U64), ("untimed", U64), ("inclusive_ns", U64), ("exclusive_ns", U64), ("min_ns", U64), ("max_ns", U64),
    ("sum_u", U64), ("min_u", U64), ("max_u", U64), ("has_histogram", BOOL), ("histogram", U64 * 64),
    ("operation", U32)])
LedgerRow = _structure("fdr_ledger_row", [
    ("location", U32), ("class_", U32), ("depth", U32), ("presented", U64), ("kept", U64), ("filtered", U64),
    ("reduced", U64), ("lost", U64)])
Place = _structure("fdr_place", [("function", TEXT), ("file", TEXT), ("module", TEXT), ("line", U32)])
SamplePath = _structure("fdr_sample_path", [
    ("pc", U64), ("weight", U64), ("number", U64), ("flags", U32), ("region_count", U32), ("frame_count", U32),
    ("region", c.POINTER(U32)), ("frame", c.POINTER(U64)), ("state", U32)])
NoteInfo = _structure("fdr_note_info", [("key", TEXT), ("value", TEXT)])
Event = _structure("fdr_read_event", [
    ("time_ns", U64), ("location", U32), ("kind", U8), ("class_", U8), ("repaired", BOOL), ("reduced", BOOL),
    ("depth", U32), ("id", U32), ("duration_ns", U64), ("field_count", U32), ("filtered", BOOL), ("not_over", BOOL),
    ("open", BOOL), ("sample", c.POINTER(SamplePath)), ("ordinal_kind", U8), ("ordinal", U64), ("field", U64 * 16)])
Select = _structure("fdr_select", [
    ("locations", c.POINTER(U32)), ("location_count", SIZE), ("classes", U32), ("depth_min", U32), ("depth_max", U32),
    ("from_ns", U64), ("to_ns", U64), ("min_duration_ns", U64), ("regions", c.POINTER(U8)), ("region_count", SIZE),
    ("one_location_after_another", BOOL), ("progress", POINTER), ("progress_context", POINTER)])
STRUCTURES = [FileInfo, LocationInfo, Definition, Origin, MetricInfo, CommInfo, FieldInfo, KindInfo, Total, LedgerRow,
              Place, SamplePath, NoteInfo, Event, Select]

# enum fdr_event_class, fdr_event_kind, fdr_definition_kind, fdr_value_type, fdr_ordinal_kind
CLASSES = ["region", "message", "collective", "metric", "marker", "sample", "io", "task", "user"]
ENTER, LEAVE, SEND, RECV, METRIC, SAMPLE = 1, 2, 3, 4, 7, 9
REGION_DEFINITION, METRIC_DEFINITION = 1, 2
I64_VALUE, F64_VALUE = 1, 2
ORDINAL_KNOWN = 1
NONE = 0xFFFFFFFF

FUNCTIONS = {
    "fdr_file_open": (I32, [TEXT, c.POINTER(POINTER), TEXT, SIZE]),
    "fdr_file_close": (None, [POINTER]),
    "fdr_files_join": (POINTER, [c.POINTER(POINTER), c.POINTER(I32), SIZE]),
    "fdr_location_origin": (BOOL, [POINTER, U32, c.POINTER(Origin)]),
    "fdr_file_met": (I32, [POINTER]),
    "fdr_file_verify": (I32, [POINTER]),
    "fdr_file_damage_count": (SIZE, [POINTER]),
    "fdr_file_damage": (TEXT, [POINTER, SIZE]),
    "fdr_file_info": (c.POINTER(FileInfo), [POINTER]),
    "fdr_location_count": (SIZE, [POINTER]),
    "fdr_location_info": (c.POINTER(LocationInfo), [POINTER, SIZE]),
    "fdr_definition_count": (SIZE, [POINTER, U32]),
    "fdr_definition": (c.POINTER(Definition), [POINTER, U32, U32]),
    "fdr_metric_info": (c.POINTER(MetricInfo), [POINTER, U32]),
    "fdr_comm_info": (c.POINTER(CommInfo), [POINTER, U32]),
    "fdr_kind_info": (c.POINTER(KindInfo), [U32]),
    "fdr_id_name": (TEXT, [POINTER, U32, U32]),
    "fdr_event_fields": (SIZE, [POINTER, c.POINTER(Event), c.POINTER(c.POINTER(FieldInfo))]),
    "fdr_totals": (SIZE, [POINTER, c.POINTER(c.POINTER(Total))]),
    "fdr_ledger": (SIZE, [POINTER, c.POINTER(c.POINTER(LedgerRow))]),
    "fdr_notes": (SIZE, [POINTER, c.POINTER(c.POINTER(NoteInfo))]),
    "fdr_place_at": (c.POINTER(Place), [POINTER, U64, BOOL, U64]),
    "fdr_iter_open": (POINTER, [POINTER, c.POINTER(Select)]),
    "fdr_iter_next": (BOOL, [POINTER, c.POINTER(Event)]),
    "fdr_iter_take": (SIZE, [POINTER, c.POINTER(Event), SIZE]),
    "fdr_iter_close": (None, [POINTER]),
    "fdr_reader_version": (TEXT, []),
}


def _candidates():
    """FDR_READER_LIBRARY; beside an installed package (PREFIX/lib/python3.x/dist-packages); what the loader finds."""
    if os.environ.get("FDR_READER_LIBRARY"):
        return [os.environ["FDR_READER_LIBRARY"]]
    up, found = os.path.dirname(os.path.abspath(__file__)), []
    for _ in range(4):
        up = os.path.dirname(up)
        found += glob.glob(os.path.join(glob.escape(up), "libfdr-reader.so.0"))
        found += glob.glob(os.path.join(glob.escape(up), "*-linux-gnu*", "libfdr-reader.so.0"))
    return found + ["libfdr-reader.so.0"]


def load():
    error = None
    for path in _candidates():
        try:
            library = c.CDLL(path)
            break
        except OSError as e:
            error = e
    else:
        raise ImportError(f"fdr: libfdr-reader cannot be loaded: {error}; set FDR_READER_LIBRARY to its path")
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"fdr: {path} is too old for this package: it lacks {name}") from None
        function.restype, function.argtypes = result, arguments
    return library


def text(value):
    return (value or b"").decode("utf-8", "replace")
