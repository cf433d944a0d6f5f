// SPDX-License-Identifier: MIT
// fdr for C++: regions as objects, whose calls also end when an exception passes, and tallies as objects. All else is
// in <fdr/fdr.h>.
//
//     static const fdr::region solve("solve");
//     fdr::scope in(solve); // one call of the region, until the end of the block
#ifndef FDR_FDR_HPP
#define FDR_FDR_HPP

#include <fdr/fdr.h>
#include <fdr/tally.h>

#include <exception>

namespace fdr
{

#ifdef __cpp_exceptions
// Including this header installs a terminate handler: for an uncaught exception it stores what() as the note "what",
// which is then in the crash bundle. After that it calls the terminate handler that was there before. When a plugin
// that includes this header is unloaded, the handler before is put back, unless another one was set meanwhile.
namespace detail
{
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

// A region. Make it static const; the strings are not copied and must live as long as it does.
class region
{
  public:
    FDR_UNHOOKED_ explicit region(const char *name, const char *file = "", unsigned line = 0)
        : name_(name), file_(file), line_(line), id_(0)
    {
    }
    // Defined at the first use in a recording. 0: nothing records, or the definition found no room, which is asked for
    // once in a recording.
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

// One call of a region, from the constructor to the destructor. Not copyable, as a copy would leave twice. Threads,
// signals and cost as fdr_enter and fdr_leave. A region without an id is recorded as [unknown]. The compiler's hooks
// (fdr::instrument) leave these functions out: the hook of the constructor would close the call that it has entered.
class scope
{
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

// Counters of the process by a key, which events given back do not touch (fdr/tally.h). Its functions do nothing if
// there was no room for the key, or in another recording; ok() says so at the start.
class tally
{
  public:
    // kind: FDR_TALLY_YOURS or above; key: FDR_TALLY_KEY_BYTES bytes
    FDR_UNHOOKED_ tally(uint32_t kind, const void *key) : id_(0) { fdr_tally_make(kind, key, &id_); }
    FDR_UNHOOKED_ bool ok() const { return id_ != 0; }
    // Returns the value before: the ordinal of what is counted. 0 also if nothing was counted.
    FDR_UNHOOKED_ uint64_t add(unsigned counter, uint64_t more = 1) const
    {
        uint64_t before = 0;
        fdr_tally_add(id_, counter, more, &before);
        return before;
    }
    FDR_UNHOOKED_ void set(unsigned counter, uint64_t value) const { fdr_tally_set(id_, counter, value); }
    FDR_UNHOOKED_ void set(const uint64_t (&value)[FDR_TALLY_COUNTERS]) const { fdr_tally_set_all(&id_, 1, value); }
    FDR_UNHOOKED_ uint64_t read(unsigned counter) const
    {
        uint64_t value = 0;
        fdr_tally_read(id_, counter, &value);
        return value;
    }
    FDR_UNHOOKED_ bool compare_set(unsigned counter, uint64_t &expected, uint64_t desired) const
    {
        return fdr_tally_compare_set(id_, counter, &expected, desired) == 1;
    }

  private:
    fdr_tally id_;
};

} // namespace fdr

#endif
