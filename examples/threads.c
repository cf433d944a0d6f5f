/* SPDX-License-Identifier: MIT */
/* Threads: each one becomes a location with its first event; the program registers nothing. Three workers take items
 * under a lock. `fdr stats --by location threads.*.fdr` shows how much each did; in `fdr dump threads.*.fdr` the calls
 * of "take" show when a worker waited for the lock. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { ITEMS = 200, WORKERS = 3 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_item;

static int take(void)
{
    FDR_FUNCTION();
    pthread_mutex_lock(&lock);
    int item = next_item++;
    pthread_mutex_unlock(&lock);
    return item;
}

static void *worker(void *number)
{
    char name[32];
    snprintf(name, sizeof name, "worker %d", (int)(intptr_t)number);
    fdr_thread_name(name);
    for (int item; (item = take()) < ITEMS;) {
        FDR_REGION("item")
        {
            volatile double x = item;
            for (int i = 0; i < 20000; i++) x = x * 0.5 + 1;
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[WORKERS];
    fdr_init(NULL);
    fdr_thread_name("main");
    FDR_REGION("workers")
    {
        for (intptr_t i = 0; i < WORKERS; i++) pthread_create(&thread[i], NULL, worker, (void *)i);
        for (int i = 0; i < WORKERS; i++) pthread_join(thread[i], NULL);
    }
    if (fdr_snapshot("all items done") == 0) printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
