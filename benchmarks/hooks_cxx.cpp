// SPDX-License-Identifier: MIT
// A loop over std::vector and std::map. For each element it calls two functions of its own (a compiler without hooks
// inlines one) and tens of the standard library. Part `cxx` of run.sh compiles it without hooks, with the hooks of
// fdr::instrument, and with hooks in everything. Prints ns of CPU time for an element.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <vector>

class groups {
    std::map<int, long> sums;

public:
    static int key(int n) { return n % 97; }
    __attribute__((noinline)) void add(int n) { sums[key(n)] += n; }
    long total() const
    {
        long sum = 0;
        for (const auto &entry : sums) sum += entry.second;
        return sum;
    }
};

static long pass(int count)
{
    std::vector<int> list;
    groups all;
    for (int i = 0; i < count; i++) list.push_back(i);
    for (int n : list) all.add(n);
    return all.total();
}

static double cpu_ns()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * now.tv_sec + now.tv_nsec;
}

int main(int argc, char **argv)
{
    const int count = 1000, passes = argc > 1 ? std::atoi(argv[1]) : 1000;
    volatile long sum = pass(count); // warm
    const double begin = cpu_ns();
    for (int i = 0; i < passes; i++) sum = sum + pass(count);
    std::printf("%.3f\n", (cpu_ns() - begin) / passes / count);
}
