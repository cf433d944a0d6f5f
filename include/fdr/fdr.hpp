// SPDX-License-Identifier: MIT
// fdr for C++: scopes as objects, so that exceptions leave them too. Everything else is in <fdr/fdr.h>.
#ifndef FDR_FDR_HPP
#define FDR_FDR_HPP

#include <fdr/fdr.h>

#include <exception>

namespace fdr {

#ifdef __cpp_exceptions
// An exception that nobody catches: what it says becomes the note "what", which is in the bundle that abort() leaves. Then the
// terminate handler that was there before does its work. Including this header is enough.
namespace detail {
inline std::terminate_handler &terminate_before()
{
    static std::terminate_handler before = nullptr;
    return before;
}
inline void on_terminate()
{
    try {
        if (std::current_exception()) throw;
    } catch (const std::exception &e) {
        fdr_note("what", e.what());
    } catch (...) {
    }
    if (terminate_before()) terminate_before()();
}
inline bool note_terminate()
{
    static const bool once = (terminate_before() = std::set_terminate(on_terminate), true);
    return once;
}
static const bool terminate_noted __attribute__((unused)) = note_terminate();
} // namespace detail
#endif

// A region that is left when the object goes: `static const fdr::region solve("solve"); fdr::scope in(solve);`
// Copying a scope would leave twice, so it cannot be copied. Threads and signals: as fdr_enter and fdr_leave.
class region {
public:
    explicit region(const char *name, const char *file = "", unsigned line = 0) : name_(name), file_(file), line_(line), id_(0) {}
    // Defined on first use while something records; 0 while nothing does.
    fdr_region id() const
    {
        fdr_region id = __atomic_load_n(&id_, __ATOMIC_RELAXED);
        if (id == 0) {
            id = fdr_region_define(name_, file_, line_);
            __atomic_store_n(&id_, id, __ATOMIC_RELAXED);
        }
        return id;
    }

private:
    const char *name_, *file_;
    unsigned line_;
    mutable fdr_region id_;
};

class scope {
public:
    explicit scope(const region &r) : id_(__atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED) ? r.id() : 0)
    {
        if (id_ != 0) fdr_enter(id_);
    }
    ~scope()
    {
        if (id_ != 0) fdr_leave(id_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    fdr_region id_;
};

} // namespace fdr

#endif
