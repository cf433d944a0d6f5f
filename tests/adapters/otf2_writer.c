/* SPDX-License-Identifier: MIT */
/* A program that writes an OTF2 archive with OTF2's own functions, for test_otf2_writer.py. The archive has all events,
 * attributes and metrics. One thread, or several, write several locations; definitions come at the end.
 *   otf2_writer DIRECTORY MODE [ROUNDS]     mode: every, threads, turns, handed, two, loops, killed, locks */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <otf2/OTF2_Pthread_Locks.h>
#include <otf2/otf2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OTF2_Archive *archive;
static unsigned long rounds = 10;
enum { REGIONS = 5, LOCATIONS = 8, FAR = 715827882 };
/* Instrumenters give each rank references of its own, as from a third of 2^31 on. */
static uint32_t ref(uint32_t region) { return region == REGIONS - 1 ? FAR : region; }
static uint64_t written[LOCATIONS], newest;

/* In mode locks the program is an instrumenter that records locks, in its own thread. It cannot see whose they are. */
static __thread OTF2_EvtWriter *of_locks;
static __thread unsigned recording;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    if (!real) real = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (of_locks && !recording++) {
        OTF2_EvtWriter_Enter(of_locks, NULL, newest, 0);
        OTF2_EvtWriter_Leave(of_locks, NULL, newest, 0);
    }
    if (of_locks) recording--;
    return real(mutex);
}

static OTF2_FlushType before_flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_FLUSH;
}
static OTF2_FlushCallbacks flush = {before_flush, NULL};

static void attributes(OTF2_AttributeList *list, uint64_t n)
{
    OTF2_AttributeList_AddUint64(list, 0, n);
    OTF2_AttributeList_AddDouble(list, 1, (double)n / 3);
    OTF2_AttributeList_AddStringRef(list, 2, 3);
}

static void messages(OTF2_EvtWriter *w, uint64_t *t, uint32_t n)
{
    OTF2_EvtWriter_MpiSend(w, NULL, ++*t, 1, 0, n, 100);
    OTF2_EvtWriter_MpiRecv(w, NULL, ++*t, 1, 1, 7, 200 + n);
    OTF2_EvtWriter_MpiIrecvRequest(w, NULL, ++*t, 2 * n + 1);
    OTF2_EvtWriter_MpiIsend(w, NULL, ++*t, 0, 1, UINT32_MAX, 300, 2 * n);
    OTF2_EvtWriter_MpiRequestTest(w, NULL, ++*t, 2 * n);
    OTF2_EvtWriter_MpiIsendComplete(w, NULL, ++*t, 2 * n);
    OTF2_EvtWriter_MpiIrecv(w, NULL, ++*t, 1, 0, 5, 1ull << 40, 2 * n + 1);
    OTF2_EvtWriter_MpiIrecvRequest(w, NULL, ++*t, ~(uint64_t)n);
    OTF2_EvtWriter_MpiRequestCancelled(w, NULL, ++*t, ~(uint64_t)n);
    OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, ++*t);
    OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, ++*t, (OTF2_CollectiveOp)(n % 20), 0,
                                    n % 2 ? 1 : OTF2_COLLECTIVE_ROOT_NONE, n, 9);
}

static void rma(OTF2_EvtWriter *w, uint64_t *t, uint64_t n)
{
    OTF2_EvtWriter_RmaWinCreate(w, NULL, ++*t, 0);
    OTF2_EvtWriter_RmaPut(w, NULL, ++*t, 0, 1, 800, n);
    OTF2_EvtWriter_RmaOpCompleteBlocking(w, NULL, ++*t, 0, n);
    OTF2_EvtWriter_RmaGet(w, NULL, ++*t, 0, 1, 900, n + 1);
    OTF2_EvtWriter_RmaOpTest(w, NULL, ++*t, 0, n + 1);
    OTF2_EvtWriter_RmaOpCompleteNonBlocking(w, NULL, ++*t, 0, n + 1);
    OTF2_EvtWriter_RmaAtomic(w, NULL, ++*t, 0, 1, OTF2_RMA_ATOMIC_TYPE_SWAP, 8, 8, n + 2);
    OTF2_EvtWriter_RmaOpCompleteRemote(w, NULL, ++*t, 0, n + 2);
    OTF2_EvtWriter_RmaRequestLock(w, NULL, ++*t, 0, 1, 6, OTF2_LOCK_SHARED);
    OTF2_EvtWriter_RmaAcquireLock(w, NULL, ++*t, 0, 1, 6, OTF2_LOCK_SHARED);
    OTF2_EvtWriter_RmaTryLock(w, NULL, ++*t, 0, 1, 6, OTF2_LOCK_EXCLUSIVE);
    OTF2_EvtWriter_RmaReleaseLock(w, NULL, ++*t, 0, 1, 6);
    OTF2_EvtWriter_RmaSync(w, NULL, ++*t, 0, 1, OTF2_RMA_SYNC_TYPE_MEMORY);
    OTF2_EvtWriter_RmaGroupSync(w, NULL, ++*t, OTF2_RMA_SYNC_LEVEL_MEMORY, 0, 1);
    OTF2_EvtWriter_RmaWaitChange(w, NULL, ++*t, 0);
    OTF2_EvtWriter_RmaCollectiveBegin(w, NULL, ++*t);
    OTF2_EvtWriter_RmaCollectiveEnd(w, NULL, ++*t, OTF2_COLLECTIVE_OP_BARRIER, OTF2_RMA_SYNC_LEVEL_MEMORY, 0, 1, 2, 3);
    OTF2_EvtWriter_RmaWinDestroy(w, NULL, ++*t, 0);
}

static void threads_and_tasks(OTF2_EvtWriter *w, uint64_t *t, uint32_t n)
{
    OTF2_EvtWriter_ThreadFork(w, NULL, ++*t, OTF2_PARADIGM_OPENMP, 4);
    OTF2_EvtWriter_ThreadTeamBegin(w, NULL, ++*t, 0);
    OTF2_EvtWriter_ThreadAcquireLock(w, NULL, ++*t, OTF2_PARADIGM_OPENMP, 3, n);
    OTF2_EvtWriter_ThreadReleaseLock(w, NULL, ++*t, OTF2_PARADIGM_OPENMP, 3, n);
    OTF2_EvtWriter_ThreadTaskCreate(w, NULL, ++*t, 0, 0, n);
    OTF2_EvtWriter_ThreadTaskSwitch(w, NULL, ++*t, 0, 0, n);
    OTF2_EvtWriter_ThreadTaskComplete(w, NULL, ++*t, 0, 0, n);
    OTF2_EvtWriter_ThreadTeamEnd(w, NULL, ++*t, 0);
    OTF2_EvtWriter_ThreadJoin(w, NULL, ++*t, OTF2_PARADIGM_OPENMP);
    OTF2_EvtWriter_ThreadCreate(w, NULL, ++*t, 0, n);
    OTF2_EvtWriter_ThreadBegin(w, NULL, ++*t, 0, n);
    OTF2_EvtWriter_ThreadWait(w, NULL, ++*t, 0, n);
    OTF2_EvtWriter_ThreadEnd(w, NULL, ++*t, 0, n);
    OTF2_EvtWriter_MeasurementOnOff(w, NULL, ++*t, OTF2_MEASUREMENT_OFF);
    OTF2_EvtWriter_MeasurementOnOff(w, NULL, ++*t, OTF2_MEASUREMENT_ON);
    OTF2_EvtWriter_CallingContextEnter(w, NULL, ++*t, 0, 2);
    OTF2_EvtWriter_CallingContextSample(w, NULL, ++*t, 0, 2, 0);
    OTF2_EvtWriter_CallingContextLeave(w, NULL, ++*t, 0);
    OTF2_EvtWriter_NonBlockingCollectiveRequest(w, NULL, ++*t, n);
    OTF2_EvtWriter_NonBlockingCollectiveComplete(w, NULL, ++*t, OTF2_COLLECTIVE_OP_BCAST, 0, 1, 2, 3, n);
    OTF2_EvtWriter_CommCreate(w, NULL, ++*t, 1);
    OTF2_EvtWriter_CommDestroy(w, NULL, ++*t, 1);
}

static void io(OTF2_EvtWriter *w, OTF2_AttributeList *list, uint64_t *t, uint64_t n)
{
    OTF2_EvtWriter_IoCreateHandle(w, NULL, ++*t, 0, OTF2_IO_ACCESS_MODE_READ_WRITE, OTF2_IO_CREATION_FLAG_CREATE,
                                  OTF2_IO_STATUS_FLAG_APPEND);
    OTF2_EvtWriter_IoSeek(w, NULL, ++*t, 0, -5, OTF2_IO_SEEK_FROM_END, 95);
    attributes(list, n);
    OTF2_EvtWriter_IoOperationBegin(w, list, ++*t, 0, OTF2_IO_OPERATION_MODE_WRITE, OTF2_IO_OPERATION_FLAG_NON_BLOCKING,
                                    512, 3 * n);
    OTF2_EvtWriter_IoOperationIssued(w, NULL, ++*t, 0, 3 * n);
    OTF2_EvtWriter_IoOperationBegin(w, NULL, ++*t, 0, OTF2_IO_OPERATION_MODE_READ, OTF2_IO_OPERATION_FLAG_NONE, 99,
                                    3 * n + 1);
    OTF2_EvtWriter_IoOperationTest(w, NULL, ++*t, 0, 3 * n);
    attributes(list, n + 1);
    OTF2_EvtWriter_IoOperationComplete(w, list, ++*t, 0, 500, 3 * n);
    OTF2_EvtWriter_IoOperationCancelled(w, NULL, ++*t, 0, 3 * n + 1);
    OTF2_EvtWriter_IoOperationBegin(w, NULL, ++*t, 0, OTF2_IO_OPERATION_MODE_READ, OTF2_IO_OPERATION_FLAG_NONE, 0,
                                    3 * n + 2);
    OTF2_EvtWriter_IoOperationComplete(w, NULL, ++*t, 0, 0, 3 * n + 2); /* the end of the file */
    OTF2_EvtWriter_IoAcquireLock(w, NULL, ++*t, 0, OTF2_LOCK_EXCLUSIVE);
    OTF2_EvtWriter_IoTryLock(w, NULL, ++*t, 0, OTF2_LOCK_SHARED);
    OTF2_EvtWriter_IoReleaseLock(w, NULL, ++*t, 0, OTF2_LOCK_EXCLUSIVE);
    OTF2_EvtWriter_IoChangeStatusFlags(w, NULL, ++*t, 0, OTF2_IO_STATUS_FLAG_SYNC);
    OTF2_EvtWriter_IoDuplicateHandle(w, NULL, ++*t, 0, 1, OTF2_IO_STATUS_FLAG_NONE);
    OTF2_EvtWriter_IoDestroyHandle(w, NULL, ++*t, 1);
    OTF2_EvtWriter_IoDeleteFile(w, NULL, ++*t, 0, 0);
}

static void metrics(OTF2_EvtWriter *w, uint64_t *t, unsigned long n)
{
    const OTF2_Type one[] = {OTF2_TYPE_UINT64}, three[] = {OTF2_TYPE_UINT64, OTF2_TYPE_INT64, OTF2_TYPE_DOUBLE};
    const OTF2_MetricValue a[] = {{.unsigned_int = 1ull << 63 | n}}, b[] = {{.unsigned_int = n},
                                                                            {.signed_int = -5 - (int64_t)n},
                                                                            {.floating_point = (double)n / 7}};
    OTF2_EvtWriter_Metric(w, NULL, ++*t, 0, 1, one, a);
    OTF2_EvtWriter_Metric(w, NULL, ++*t, 2, 1, three + 1, b + 1);
    OTF2_EvtWriter_Metric(w, NULL, ++*t, 3, 1, three + 2, b + 2);
    OTF2_EvtWriter_Metric(w, NULL, ++*t, 1, 3, three, b);
    OTF2_EvtWriter_ParameterInt(w, NULL, ++*t, 0, -3 * (int64_t)n);
    OTF2_EvtWriter_ParameterUnsignedInt(w, NULL, ++*t, 1, ~0ull - n);
    OTF2_EvtWriter_ParameterString(w, NULL, ++*t, 2, 3);
}

static uint64_t every(OTF2_EvtWriter *w, uint64_t t)
{
    OTF2_AttributeList *list = OTF2_AttributeList_New();
    const OTF2_StringRef argument[] = {1, 2, 3};
    OTF2_EvtWriter_ProgramBegin(w, NULL, t, 1, 3, argument);
    for (unsigned long n = 0; n < rounds; n++) {
        attributes(list, n);
        OTF2_EvtWriter_Enter(w, list, ++t, 0);
        OTF2_EvtWriter_Enter(w, NULL, t, 1 + n % 3); /* at the same time */
        OTF2_EvtWriter_Leave(w, NULL, t, 1 + n % 3);
        messages(w, &t, (uint32_t)n);
        rma(w, &t, n * 10);
        OTF2_EvtWriter_Enter(w, NULL, ++t, ref(4));
        threads_and_tasks(w, &t, (uint32_t)n);
        io(w, list, &t, n);
        metrics(w, &t, n);
        OTF2_EvtWriter_Leave(w, NULL, t, ref(4));
        attributes(list, n + 2);
        OTF2_EvtWriter_Leave(w, list, ++t, 0);
    }
    OTF2_EvtWriter_ProgramEnd(w, NULL, ++t, -1);
    OTF2_EvtWriter_Enter(w, NULL, ++t, 2); /* stays open */
    OTF2_AttributeList_Delete(list);
    return t;
}

/* Calls of many depths, for archives that have to give events back. */
static uint64_t loops(OTF2_EvtWriter *w, uint64_t t)
{
    for (unsigned long n = 0; n < rounds; n++) {
        OTF2_EvtWriter_Enter(w, NULL, t += 10, 0);
        for (uint32_t d = 1; d < REGIONS; d++) OTF2_EvtWriter_Enter(w, NULL, t += 1 + n * 7 % 13, ref(d));
        messages(w, &t, (uint32_t)n);
        for (uint32_t d = REGIONS; d-- > 1;) OTF2_EvtWriter_Leave(w, NULL, t += 1 + n * 5 % 11, ref(d));
        OTF2_EvtWriter_Leave(w, NULL, t += 10, 0);
    }
    return t;
}

static void close_writer(OTF2_EvtWriter *w, unsigned location, uint64_t t)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    OTF2_EvtWriter_GetNumberOfEvents(w, &written[location]);
    if (t > newest) newest = t;
    pthread_mutex_unlock(&lock);
    OTF2_Archive_CloseEvtWriter(archive, w);
}

static void *in_a_thread(void *location)
{
    unsigned l = (unsigned)(uintptr_t)location;
    OTF2_EvtWriter *w = OTF2_Archive_GetEvtWriter(archive, l);
    close_writer(w, l, every(w, 1000 * l));
    return NULL;
}

static void threads(void)
{
    pthread_t t[LOCATIONS];
    for (uintptr_t i = 1; i < LOCATIONS; i++) pthread_create(&t[i], NULL, in_a_thread, (void *)i);
    in_a_thread(NULL);
    for (int i = 1; i < LOCATIONS; i++) pthread_join(t[i], NULL);
}

/* One thread writes to all locations in turn, each with its own times. */
static void turns(void)
{
    OTF2_EvtWriter *w[LOCATIONS];
    uint64_t t[LOCATIONS] = {0};
    for (unsigned i = 0; i < LOCATIONS; i++) w[i] = OTF2_Archive_GetEvtWriter(archive, i);
    for (int again = 0; again < 3; again++)
        for (unsigned i = LOCATIONS; i-- > 0;) t[i] = loops(w[i], t[i]);
    for (unsigned i = 0; i < LOCATIONS; i++) close_writer(w[i], i, t[i]);
}

/* Two threads write to one location, one after the other. */
struct handed {
    OTF2_EvtWriter *writer;
    uint64_t time;
};
static void *goes_on(void *handed)
{
    struct handed *h = handed;
    h->time = loops(h->writer, h->time);
    return NULL;
}

static void handed(void)
{
    struct handed h = {.writer = OTF2_Archive_GetEvtWriter(archive, 0)};
    pthread_t t;
    goes_on(&h);
    pthread_create(&t, NULL, goes_on, &h);
    pthread_join(t, NULL);
    goes_on(&h);
    close_writer(h.writer, 0, h.time);
}

/* ---- definitions ---- */

static bool is_second; /* the archive whose definitions are written: its first region has another name */

static const char *const text[] = {"",          "program",   "the argument", "a text",      "region 0",
                                   "region 1",  "region 2",  "region 1",     "deep region", "file.c",
                                   "machine",   "process",   "metric",       "bytes",       "parameter",
                                   "attribute", "/tmp/file", "world",        "POSIX"};
enum { REGION = 4, FILE_ = 9, MACHINE, PROCESS, METRIC, BYTES, PARAMETER, ATTRIBUTE, PATH, WORLD, POSIX };

static void groups(OTF2_GlobalDefWriter *d)
{
    const uint64_t locations[] = {0, 1}, ranks[] = {0, 1};
    OTF2_GlobalDefWriter_WriteGroup(d, 0, WORLD, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                    OTF2_GROUP_FLAG_NONE, 2, locations);
    OTF2_GlobalDefWriter_WriteGroup(d, 1, WORLD, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, 2,
                                    ranks);
    OTF2_GlobalDefWriter_WriteComm(d, 0, WORLD, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
    OTF2_GlobalDefWriter_WriteComm(d, 1, 3, 1, 0, OTF2_COMM_FLAG_NONE);
    OTF2_GlobalDefWriter_WriteRmaWin(d, 0, 3, 0, OTF2_RMA_WIN_FLAG_NONE);
    OTF2_GlobalDefWriter_WriteIoParadigm(d, 0, POSIX, POSIX, OTF2_IO_PARADIGM_CLASS_SERIAL, OTF2_IO_PARADIGM_FLAG_OS, 0,
                                         NULL, NULL, NULL);
    OTF2_GlobalDefWriter_WriteIoRegularFile(d, 0, PATH, 0);
    for (uint32_t i = 0; i < 2; i++)
        OTF2_GlobalDefWriter_WriteIoHandle(d, i, PATH, 0, 0, OTF2_IO_HANDLE_FLAG_NONE, OTF2_UNDEFINED_COMM,
                                           OTF2_UNDEFINED_IO_HANDLE);
}

static void metric_definitions(OTF2_GlobalDefWriter *d)
{
    static const OTF2_Type type[] = {OTF2_TYPE_UINT64, OTF2_TYPE_INT64, OTF2_TYPE_DOUBLE};
    const OTF2_MetricMemberRef members[] = {0, 1, 2};
    for (uint32_t i = 0; i < 3; i++)
        OTF2_GlobalDefWriter_WriteMetricMember(d, i, METRIC, 0, OTF2_METRIC_TYPE_USER, OTF2_METRIC_ABSOLUTE_POINT,
                                               type[i], OTF2_BASE_DECIMAL, 0, BYTES);
    OTF2_GlobalDefWriter_WriteMetricClass(d, 0, 1, members, OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_UNKNOWN);
    OTF2_GlobalDefWriter_WriteMetricClass(d, 1, 3, members, OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_UNKNOWN);
    OTF2_GlobalDefWriter_WriteMetricClass(d, 2, 1, members + 1, OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_UNKNOWN);
    OTF2_GlobalDefWriter_WriteMetricClass(d, 3, 1, members + 2, OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_UNKNOWN);
    OTF2_GlobalDefWriter_WriteParameter(d, 0, PARAMETER, OTF2_PARAMETER_TYPE_INT64);
    OTF2_GlobalDefWriter_WriteParameter(d, 1, PARAMETER, OTF2_PARAMETER_TYPE_UINT64);
    OTF2_GlobalDefWriter_WriteParameter(d, 2, PARAMETER, OTF2_PARAMETER_TYPE_STRING);
    OTF2_GlobalDefWriter_WriteAttribute(d, 0, ATTRIBUTE, 0, OTF2_TYPE_UINT64);
    OTF2_GlobalDefWriter_WriteAttribute(d, 1, ATTRIBUTE, 0, OTF2_TYPE_DOUBLE);
    OTF2_GlobalDefWriter_WriteAttribute(d, 2, ATTRIBUTE, 0, OTF2_TYPE_STRING);
    OTF2_GlobalDefWriter_WriteInterruptGenerator(d, 0, METRIC, OTF2_INTERRUPT_GENERATOR_MODE_TIME, OTF2_BASE_DECIMAL,
                                                 -9, 1000000);
    OTF2_GlobalDefWriter_WriteCallingContext(d, 0, 1, OTF2_UNDEFINED_SOURCE_CODE_LOCATION,
                                             OTF2_UNDEFINED_CALLING_CONTEXT);
}

static void define_all(unsigned locations)
{
    OTF2_GlobalDefWriter *d = OTF2_Archive_GetGlobalDefWriter(archive);
    OTF2_GlobalDefWriter_WriteClockProperties(d, 1000000000, 0, newest + 1, OTF2_UNDEFINED_TIMESTAMP);
    for (uint32_t i = 0; i < sizeof text / sizeof *text; i++)
        OTF2_GlobalDefWriter_WriteString(d, i, is_second && i == REGION ? "second region 0" : text[i]);
    for (uint32_t i = 0; i < REGIONS; i++)
        OTF2_GlobalDefWriter_WriteRegion(d, ref(i), REGION + i, REGION + i, 0, OTF2_REGION_ROLE_FUNCTION,
                                         OTF2_PARADIGM_USER, OTF2_REGION_FLAG_NONE, FILE_, 10 + i, 0);
    OTF2_GlobalDefWriter_WriteSystemTreeNode(d, 0, MACHINE, MACHINE, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    OTF2_GlobalDefWriter_WriteLocationGroup(d, 0, PROCESS, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                            OTF2_UNDEFINED_LOCATION_GROUP);
    for (unsigned i = 0; i < locations; i++)
        OTF2_GlobalDefWriter_WriteLocation(d, i, PROCESS, OTF2_LOCATION_TYPE_CPU_THREAD, written[i], 0);
    groups(d);
    metric_definitions(d);
    OTF2_Archive_CloseGlobalDefWriter(archive, d);
    OTF2_Archive_OpenDefFiles(archive);
    for (unsigned i = 0; i < locations; i++)
        OTF2_Archive_CloseDefWriter(archive, OTF2_Archive_GetDefWriter(archive, i));
    OTF2_Archive_CloseDefFiles(archive);
}

static void open_archive(const char *directory)
{
    archive = OTF2_Archive_Open(directory, "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20, OTF2_SUBSTRATE_POSIX,
                                OTF2_COMPRESSION_NONE);
    if (!archive) exit(1);
    OTF2_Archive_SetFlushCallbacks(archive, &flush, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive);
    OTF2_Pthread_Archive_SetLockingCallbacks(archive, NULL);
    OTF2_Archive_OpenEvtFiles(archive);
}

static int close_archive(unsigned locations)
{
    OTF2_Archive_CloseEvtFiles(archive);
    define_all(locations);
    return OTF2_Archive_Close(archive) != OTF2_SUCCESS;
}

/* Two archives at a time, whose references mean different things. The first one is closed first. */
static int two(const char *directory)
{
    char second[4096];
    OTF2_Archive *both[2];
    OTF2_EvtWriter *w[2];
    uint64_t t[2] = {0, 0};
    int status = 0;
    snprintf(second, sizeof second, "%s-second", directory);
    for (int i = 0; i < 2; i++) open_archive(i ? second : directory), both[i] = archive;
    for (int i = 0; i < 2; i++) w[i] = OTF2_Archive_GetEvtWriter(both[i], 0);
    for (int again = 0; again < 3; again++) t[0] = loops(w[0], t[0]), t[1] = loops(w[1], t[1] + 7);
    t[1] = loops(w[1], t[1]);
    for (int i = 0; i < 2; i++) {
        archive = both[i];
        is_second = i == 1;
        close_writer(w[i], 0, t[i]);
        status |= close_archive(1);
    }
    return status;
}

int main(int count, char **argument)
{
    if (count < 3) return 64;
    const char *mode = argument[2];
    if (count > 3) rounds = strtoul(argument[3], NULL, 10);
    if (!strcmp(mode, "two")) return two(argument[1]);
    open_archive(argument[1]);
    if (!strcmp(mode, "killed")) {
        every(OTF2_Archive_GetEvtWriter(archive, 0), 0);
        raise(SIGKILL);
    }
    if (!strcmp(mode, "threads")) threads();
    else if (!strcmp(mode, "turns")) turns();
    else if (!strcmp(mode, "handed")) handed();
    else {
        OTF2_EvtWriter *w = OTF2_Archive_GetEvtWriter(archive, 0);
        if (!strcmp(mode, "locks")) of_locks = w;
        uint64_t t = !strcmp(mode, "loops") ? loops(w, 0) : every(w, 0);
        of_locks = NULL; /* the locks that follow are the program's, and OTF2's */
        close_writer(w, 0, t);
    }
    return close_archive(!strcmp(mode, "threads") || !strcmp(mode, "turns") ? LOCATIONS : 1);
}
