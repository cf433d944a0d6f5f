// SPDX-License-Identifier: MIT
// fdr for C++: scopes as objects, so that exceptions leave them too. Everything else is in <fdr/fdr.h>.
#ifndef FDR_FDR_HPP
#define FDR_FDR_HPP

#include <fdr/fdr.h>

#include <exception>

namespace fdr {

#ifdef __cpp_exceptions
// An exception that nobody catches: what it says becomes the note "what", which is in the bundle that abort() leaves.
// Then the terminate handler that was there before does its work. Including this header is enough. A plugin that is
// unloaded puts that one back, unless somebody has set another one since.
namespace detail {
FDR_UNHOOKED_ inline std::terminate_handler &terminate_before()
{
    static std::terminate_handler before = nullptr;
    return before;
}
FDR_UNHOOKED_ inline void on_terminate()
{
    try {
        if (std::current_exception()) throw;
    } catch (const std::exception &e) {
        fdr_note("what", e.what());
    } catch (...) {
    }
    if (terminate_before()) terminate_before()();
}
FDR_UNHOOKED_ inline unsigned &terminate_users()
{
    static unsigned users = 0;
    return users;
}
struct terminate_user {
    FDR_UNHOOKED_ terminate_user()
    {
        if (terminate_users()++ == 0) terminate_before() = std::set_terminate(on_terminate);
    }
    FDR_UNHOOKED_ ~terminate_user()
    {
        if (--terminate_users() == 0 && std::get_terminate() == on_terminate) std::set_terminate(terminate_before());
    }
};
static const terminate_user terminate_noted __attribute__((unused));
} // namespace detail
#endif

// A region that is left when the object goes: `static const fdr::region solve("solve"); fdr::scope in(solve);`
// Copying a scope would leave twice, so it cannot be copied. Threads and signals: as fdr_enter and fdr_leave.
class region {
public:
    FDR_UNHOOKED_ explicit region(const char *name, const char *file = "", unsigned line = 0)
        : name_(name), file_(file), line_(line), id_(0)
    {
    }
    // Defined on first use while something records; 0 while nothing does, or where it found no room (not asked for
    // again then).
    FDR_UNHOOKED_ fdr_region id() const
    {
        uint32_t id = __atomic_load_n(&id_, __ATOMIC_RELAXED), on = __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED);
        if (id - 1u < FDR_REFUSED_ - 1u) return id;
        return on ? fdr_scope_define_(&id_, on, name_, file_, line_) : 0;
    }

private:
    const char *name_, *file_;
    unsigned line_;
    mutable uint32_t id_;
};

// A region that found no room is recorded as [unknown]. Where the compiler's hooks are on (fdr::instrument) none stand
// in here: the leave of such a constructor would close the region that it has just entered.
class scope {
public:
    FDR_UNHOOKED_ explicit scope(const region &r) : id_(FDR_NOT_ENTERED_)
    {
        if (__atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED)) fdr_enter(id_ = r.id());
    }
    FDR_UNHOOKED_ ~scope()
    {
        if (id_ != FDR_NOT_ENTERED_) fdr_leave(id_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    fdr_region id_;
};

} // namespace fdr

#endif
