/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P10
 * P10: the default size of the buffer respects the memory limits of the control groups. The test builds file trees of
 * both versions and compares the limit that fdr finds. */
#include "base/system/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

/* Writes a file below ROOT and makes its folders. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + sizeof "/tmp"; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int begin(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/fdr-cgroup-XXXXXX");
    return !mkdtemp(root);
}

static int end(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void P10_no_groups_no_limit(void **state)
{
    (void)state;
    assert_true(fdri_system_cgroup_memory_limit(root) == UINT64_MAX);
    put("proc/thread-self/cgroup", "0::/a\n");
    assert_true(fdri_system_cgroup_memory_limit(root) == UINT64_MAX);
}

/* In its own namespace a process finds its group at the mount point. */
static void P10_the_mount_point_itself(void **state)
{
    (void)state;
    put("proc/thread-self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "8000000\n");
    assert_int_equal(fdri_system_cgroup_memory_limit(root), 8000000);
    put("proc/thread-self/cgroup", "0::/../elsewhere\n");
    put("sys/fs/elsewhere/memory.max", "7\n"); /* not this group's */
    assert_int_equal(fdri_system_cgroup_memory_limit(root), 8000000);
}

/* A batch system makes groups without namespaces: the least limit on the way up counts. */
static void P10_the_least_on_the_way_up(void **state)
{
    (void)state;
    put("proc/thread-self/cgroup", "0::/system.slice/job_7/step_0/task_3\n");
    put("sys/fs/cgroup/system.slice/memory.max", "max\n");
    put("sys/fs/cgroup/system.slice/job_7/memory.max", "4000000000\n");
    put("sys/fs/cgroup/system.slice/job_7/step_0/memory.max", "max\n");
    put("sys/fs/cgroup/system.slice/job_7/step_0/task_3/memory.max", "max\n");
    put("sys/fs/cgroup/system.slice/job_8/memory.max", "5\n"); /* another group's */
    assert_true(fdri_system_cgroup_memory_limit(root) == 4000000000u);
    put("sys/fs/cgroup/system.slice/job_7/step_0/task_3/memory.max", "3000000000\n");
    assert_true(fdri_system_cgroup_memory_limit(root) == 3000000000u);
}

static void P10_version_1(void **state)
{
    (void)state;
    put("proc/thread-self/cgroup",
        "12:cpuset:/slurm/a\n9:hugetlb,memory:/slurm/uid_1/job_7\n1:name=systemd:/\n0::/x\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/slurm/a/memory.limit_in_bytes", "6\n"); /* its group in another hierarchy */
    assert_true(fdri_system_cgroup_memory_limit(root) == 9223372036854771712u);
    put("sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.limit_in_bytes", "2000000000\n");
    assert_int_equal(fdri_system_cgroup_memory_limit(root), 2000000000);
    put("sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes", "1000000000\n");
    assert_int_equal(fdri_system_cgroup_memory_limit(root), 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(P10_no_groups_no_limit, begin, end),
        cmocka_unit_test_setup_teardown(P10_the_mount_point_itself, begin, end),
        cmocka_unit_test_setup_teardown(P10_the_least_on_the_way_up, begin, end),
        cmocka_unit_test_setup_teardown(P10_version_1, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
