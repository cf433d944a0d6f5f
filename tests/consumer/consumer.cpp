// SPDX-License-Identifier: MIT
// The smallest user in C++. The C header compiles as C++, and an exception ends the regions that it leaves.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <fdr/fdr.h>
#if __has_include(<fdr/fdr.hpp>)
#include <fdr/fdr.hpp>
#endif

static void thrower(int i)
{
    static const fdr_region region = fdr_region_define("thrower", __FILE__, __LINE__);
    struct scope {
        scope() { fdr_enter(region); }
        ~scope() { fdr_leave(region); }
    } here;
    if (i % 2) throw std::runtime_error("odd");
}

int main()
{
    if (fdr_init(nullptr) != 0) return EXIT_FAILURE;
    int odd = 0;
    for (int i = 0; i < 100; i++) {
        try {
            thrower(i);
        } catch (const std::runtime_error &) {
            odd++;
        }
    }
    const unsigned char key[FDR_TALLY_KEY_BYTES] = {1};
    const fdr::tally thrown(FDR_TALLY_YOURS, key);
    uint64_t expected = 4;
    if (!thrown.ok() || thrown.add(0, 4) != 0 || thrown.add(0) != 4 || thrown.compare_set(0, expected, 9)) return 1;
    thrown.set(1, 3);
    if (expected != 5 || !thrown.compare_set(0, expected, 9) || thrown.read(0) != 9 || thrown.read(1) != 3) return 1;
    if (odd != 50 || fdr_snapshot("why") != 0) return EXIT_FAILURE;
    std::printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return EXIT_SUCCESS;
}
