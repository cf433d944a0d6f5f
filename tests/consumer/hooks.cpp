// SPDX-License-Identifier: MIT
// Own functions and functions of the standard library, for the compiler's hooks.
#include <map>
#include <vector>

class own_total {
    int sum = 0;

public:
    void add(int n) { sum += n; }
    int get() const { return sum; }
};

static __attribute__((noinline)) int own_leaf(int n)
{
    return n * 3;
}

__attribute__((noinline)) int own_loop(int count)
{
    std::vector<int> list;
    std::map<int, int> map;
    own_total total;
    for (int i = 0; i < count; i++) {
        list.push_back(i);
        map[i % 97] += own_leaf(list[i]);
    }
    for (const auto &entry : map) total.add(entry.second);
    return total.get();
}

int main()
{
    return own_loop(1000) == 3 * 999 * 500 ? 0 : 1;
}
