/* SPDX-License-Identifier: MIT */
/* Events of OTF2 for which fdr has no class of its own: they are user events with the same fields. A row is the number
 * of fields, the event's name, and type and name of each field. */
#ifndef FDRI_ADAPTERS_OTF2_GENERIC_EVENTS_H
#define FDRI_ADAPTERS_OTF2_GENERIC_EVENTS_H

/* clang-format off */
#define FDRI_OTF2_GENERIC(E0, E1, E2, E3, E4, E6) \
    E1(BufferFlush, OTF2_TimeStamp, stopTime) \
    E1(MeasurementOnOff, OTF2_MeasurementMode, measurementMode) \
    E1(OmpFork, uint32_t, numberOfRequestedThreads) \
    E0(OmpJoin) \
    E2(OmpAcquireLock, uint32_t, lockID, uint32_t, acquisitionOrder) \
    E2(OmpReleaseLock, uint32_t, lockID, uint32_t, acquisitionOrder) \
    E1(OmpTaskCreate, uint64_t, taskID) \
    E1(OmpTaskSwitch, uint64_t, taskID) \
    E1(OmpTaskComplete, uint64_t, taskID) \
    E2(ParameterString, OTF2_ParameterRef, parameter, OTF2_StringRef, string) \
    E1(RmaWinCreate, OTF2_RmaWinRef, win) \
    E1(RmaWinDestroy, OTF2_RmaWinRef, win) \
    E0(RmaCollectiveBegin) \
    E6(RmaCollectiveEnd, OTF2_CollectiveOp, collectiveOp, OTF2_RmaSyncLevel, syncLevel, OTF2_RmaWinRef, win, \
       uint32_t, root, uint64_t, bytesSent, uint64_t, bytesReceived) \
    E3(RmaGroupSync, OTF2_RmaSyncLevel, syncLevel, OTF2_RmaWinRef, win, OTF2_GroupRef, group) \
    E4(RmaRequestLock, OTF2_RmaWinRef, win, uint32_t, remote, uint64_t, lockId, OTF2_LockType, lockType) \
    E4(RmaAcquireLock, OTF2_RmaWinRef, win, uint32_t, remote, uint64_t, lockId, OTF2_LockType, lockType) \
    E4(RmaTryLock, OTF2_RmaWinRef, win, uint32_t, remote, uint64_t, lockId, OTF2_LockType, lockType) \
    E3(RmaReleaseLock, OTF2_RmaWinRef, win, uint32_t, remote, uint64_t, lockId) \
    E3(RmaSync, OTF2_RmaWinRef, win, uint32_t, remote, OTF2_RmaSyncType, syncType) \
    E1(RmaWaitChange, OTF2_RmaWinRef, win) \
    E4(RmaPut, OTF2_RmaWinRef, win, uint32_t, remote, uint64_t, bytes, uint64_t, matchingId) \
    E4(RmaGet, OTF2_RmaWinRef, win, uint32_t, remote, uint64_t, bytes, uint64_t, matchingId) \
    E6(RmaAtomic, OTF2_RmaWinRef, win, uint32_t, remote, OTF2_RmaAtomicType, type, uint64_t, bytesSent, \
       uint64_t, bytesReceived, uint64_t, matchingId) \
    E2(RmaOpCompleteBlocking, OTF2_RmaWinRef, win, uint64_t, matchingId) \
    E2(RmaOpCompleteNonBlocking, OTF2_RmaWinRef, win, uint64_t, matchingId) \
    E2(RmaOpTest, OTF2_RmaWinRef, win, uint64_t, matchingId) \
    E2(RmaOpCompleteRemote, OTF2_RmaWinRef, win, uint64_t, matchingId) \
    E2(ThreadFork, OTF2_Paradigm, model, uint32_t, numberOfRequestedThreads) \
    E1(ThreadJoin, OTF2_Paradigm, model) \
    E1(ThreadTeamBegin, OTF2_CommRef, threadTeam) \
    E1(ThreadTeamEnd, OTF2_CommRef, threadTeam) \
    E3(ThreadAcquireLock, OTF2_Paradigm, model, uint32_t, lockID, uint32_t, acquisitionOrder) \
    E3(ThreadReleaseLock, OTF2_Paradigm, model, uint32_t, lockID, uint32_t, acquisitionOrder) \
    E3(ThreadTaskCreate, OTF2_CommRef, threadTeam, uint32_t, creatingThread, uint32_t, generationNumber) \
    E3(ThreadTaskSwitch, OTF2_CommRef, threadTeam, uint32_t, creatingThread, uint32_t, generationNumber) \
    E3(ThreadTaskComplete, OTF2_CommRef, threadTeam, uint32_t, creatingThread, uint32_t, generationNumber) \
    E2(ThreadCreate, OTF2_CommRef, threadContingent, uint64_t, sequenceCount) \
    E2(ThreadBegin, OTF2_CommRef, threadContingent, uint64_t, sequenceCount) \
    E2(ThreadWait, OTF2_CommRef, threadContingent, uint64_t, sequenceCount) \
    E2(ThreadEnd, OTF2_CommRef, threadContingent, uint64_t, sequenceCount) \
    E2(CallingContextEnter, OTF2_CallingContextRef, callingContext, uint32_t, unwindDistance) \
    E1(CallingContextLeave, OTF2_CallingContextRef, callingContext) \
    E3(CallingContextSample, OTF2_CallingContextRef, callingContext, uint32_t, unwindDistance, \
       OTF2_InterruptGeneratorRef, interruptGenerator) \
    E4(IoCreateHandle, OTF2_IoHandleRef, handle, OTF2_IoAccessMode, mode, OTF2_IoCreationFlag, creationFlags, \
       OTF2_IoStatusFlag, statusFlags) \
    E1(IoDestroyHandle, OTF2_IoHandleRef, handle) \
    E3(IoDuplicateHandle, OTF2_IoHandleRef, oldHandle, OTF2_IoHandleRef, newHandle, OTF2_IoStatusFlag, statusFlags) \
    E4(IoSeek, OTF2_IoHandleRef, handle, int64_t, offsetRequest, OTF2_IoSeekOption, whence, uint64_t, offsetResult) \
    E2(IoChangeStatusFlags, OTF2_IoHandleRef, handle, OTF2_IoStatusFlag, statusFlags) \
    E2(IoDeleteFile, OTF2_IoParadigmRef, ioParadigm, OTF2_IoFileRef, file) \
    E2(IoOperationTest, OTF2_IoHandleRef, handle, uint64_t, matchingId) \
    E2(IoOperationIssued, OTF2_IoHandleRef, handle, uint64_t, matchingId) \
    E2(IoOperationCancelled, OTF2_IoHandleRef, handle, uint64_t, matchingId) \
    E2(IoAcquireLock, OTF2_IoHandleRef, handle, OTF2_LockType, lockType) \
    E2(IoReleaseLock, OTF2_IoHandleRef, handle, OTF2_LockType, lockType) \
    E2(IoTryLock, OTF2_IoHandleRef, handle, OTF2_LockType, lockType) \
    E1(ProgramEnd, int64_t, exitStatus) \
    E1(NonBlockingCollectiveRequest, uint64_t, requestID) \
    E6(NonBlockingCollectiveComplete, OTF2_CollectiveOp, collectiveOp, OTF2_CommRef, communicator, uint32_t, root, \
       uint64_t, sizeSent, uint64_t, sizeReceived, uint64_t, requestID) \
    E1(CommCreate, OTF2_CommRef, communicator) \
    E1(CommDestroy, OTF2_CommRef, communicator)
/* clang-format on */

#endif
