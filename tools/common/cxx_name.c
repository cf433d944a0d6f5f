/* SPDX-License-Identifier: MIT */
/* Takes demangled names of C++ functions apart, and shortens them. */
#include "tools/common/cxx_name.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }
static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80; }

/* ---- the parts of a name ----------------------------------------------------------------------------------------- */

static const char ANONYMOUS[] = "(anonymous namespace)";

/* Bytes of an operator's symbol, with the word `operator`; 0: no operator is there. *converts: a type follows, up to
 * the parameters. */
static size_t operator_bytes(const char *text, size_t at, bool *converts)
{
    static const char *const symbols[] = {
        "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "==",  "!=", "&&",
        "||", "++", "--",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "<",   ">",  "+",
        "-",  "*",  "/",   "%",   "&",   "|",   "^",  "~",  "!",  "=",  ",",  "\"\""};
    const char *s = text + at + 8;
    if (!starts(text + at, "operator") || in_word(*s) || (at && in_word(text[at - 1]))) return 0;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (starts(s, symbols[i])) {
            size_t count = strlen(symbols[i]);
            /* a blank belongs to the name: operator"" _x, operator<< <int> */
            return 8 + count + (s[count] == ' ' && (symbols[i][0] == '"' || s[count + 1] == '<'));
        }
    static const char *const words[] = {" new[]", " delete[]", " new", " delete", " co_await"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts(s, words[i]) && !in_word(s[strlen(words[i])])) return 8 + strlen(words[i]);
    *converts = *s == ' ';
    return *converts ? 9 : 0;
}

/* The bracket that closes the one at `at`; the end of the text: none. Brackets of operators do not count. */
static size_t closing(const char *text, size_t at)
{
    size_t depth = 0;
    for (size_t i = at; text[i]; i++) {
        bool converts = false;
        size_t symbol = text[i] == 'o' ? operator_bytes(text, i, &converts) : 0;
        if (symbol) i += symbol - 1;
        else if (strchr("<({[", text[i])) depth++;
        else if (strchr(">)}]", text[i]) && !(text[i] == '>' && i && text[i - 1] == '-') && --depth == 0) return i;
    }
    return strlen(text);
}

/* After a list of parameters: bytes before the "::" that makes the function a scope, as in "f(int) const::local".
 * SIZE_MAX: it is none. */
static size_t scope_bytes(const char *after)
{
    static const char *const words[] = {" const", " volatile", " &&", " &"};
    const char *at = after;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts(at, words[i])) at += strlen(words[i]);
    return starts(at, "::") ? (size_t)(at - after) : SIZE_MAX;
}

/* A bracket outside of all others. Returns where to go on; the length of the text with *end set: parameters begin. */
static size_t bracket(const char *text, size_t i, struct cxx_name *n, bool *stop)
{
    size_t close = closing(text, i);
    if (text[i] == '{') n->local = true;
    if (text[i] != '(' || !text[close]) return text[close] ? close + 1 : close;
    if (starts(text + i, ANONYMOUS) || (i >= 8 && starts(text + i - 8, "decltype")) ||
        (i >= 9 && starts(text + i - 9, "decltype ")))
        return close + 1;
    size_t scope = scope_bytes(text + close + 1);
    if (scope != SIZE_MAX) {
        n->local = true;
        return close + 1 + scope;
    }
    n->end = i;
    n->parameters = *stop = true;
    return i;
}

struct cxx_name cxx_name_parse(const char *text)
{
    struct cxx_name n = {0, strlen(text), false, false, false};
    bool stop = false;
    for (size_t i = 0; text[i] && !stop;) {
        bool converts = false;
        size_t symbol = text[i] == 'o' && !n.converts ? operator_bytes(text, i, &converts) : 0;
        n.converts |= converts;
        if (symbol) i += symbol;
        else if (strchr("<({[", text[i])) i = bracket(text, i, &n, &stop);
        else if (text[i++] == ' ' && !n.converts) n.begin = i;
    }
    if (n.begin < n.end && (n.parameters || n.begin == 0)) return n;
    return (struct cxx_name){0, strlen(text), false, n.local, n.converts}; /* no function of C++ */
}

/* ---- the standard library's templates ---------------------------------------------------------------------------- */

static bool is_default(const char *argument)
{
    static const char *const defaults[] = {"std::allocator<", "std::char_traits<", "std::less<",
                                           "std::equal_to<",  "std::hash<",        "std::default_delete<"};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (starts(argument, defaults[i])) return true;
    return false;
}

struct text {
    char *bytes;
    size_t count;
};

/* Copies text[from, to) without default arguments. The copy is never longer. */
static void put_without_defaults(struct text *out, const char *text, size_t from, size_t to)
{
    size_t spent = 0; /* a name whose brackets are nested for ever must not take time by the square of its length */
    for (size_t i = from; i < to;) {
        size_t close = 0;
        if (spent <= 8 * (to - from) && starts(text + i, ", std::") && is_default(text + i + 2)) {
            close = closing(text, i + 2 + strcspn(text + i + 2, "<"));
            spent += close - i;
        }
        bool ends = close && close < to &&
                    (text[close + 1] == ',' || text[close + 1] == '>' ||
                     (text[close + 1] == ' ' && text[close + 2] == '>'));
        if (!ends) {
            out->bytes[out->count++] = text[i++];
            continue;
        }
        i = close + 1;
        /* "<int, std::allocator<int> >": the blank stood between the two brackets */
        if (text[i] == ' ' && out->count && out->bytes[out->count - 1] != '>') i++;
    }
    out->bytes[out->count] = 0;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

/* Replaces `from` by the shorter `to`, in place. */
static void replace(char *text, const char *from, const char *to)
{
    size_t a = strlen(from), b = strlen(to), used = 0;
    for (size_t i = 0; text[i];) {
        if (starts(text + i, from)) {
            memcpy(text + used, to, b);
            used += b;
            i += a;
        } else {
            text[used++] = text[i++];
        }
    }
    text[used] = 0;
}

char *cxx_name_short(const char *text, bool parameters)
{
    struct cxx_name n = cxx_name_parse(text);
    size_t end = parameters ? strlen(text) : n.end;
    struct text out = {malloc(end - n.begin + 1), 0};
    if (!out.bytes) return NULL;
    put_without_defaults(&out, text, n.begin, end);
    replace(out.bytes, "> >", ">>");
    replace(out.bytes, "> >", ">>"); /* three in a row */
    replace(out.bytes, "std::__cxx11::", "std::");
    replace(out.bytes, "std::basic_string<char>", "std::string");
    replace(out.bytes, "std::basic_string<wchar_t>", "std::wstring");
    return out.bytes;
}

/* ---- for gcc ----------------------------------------------------------------------------------------------------- */

char *cxx_name_qualified(const char *text)
{
    struct cxx_name n = cxx_name_parse(text);
    char *name = strndup(text + n.begin, n.end - n.begin);
    if (!name) return NULL;
    replace(name, ANONYMOUS, "{anonymous}");
    replace(name, "operator\"\" ", "operator\"\"");
    return name;
}

/* True if gcc prints the template arguments text[from, to) in the same words: only one, of plain words. gcc orders
 * `unsigned long` and `char const*` in another way, and writes no suffix at numbers. Of several arguments it leaves out
 * those that are defaults, but not always. */
static bool same_words(const char *text, size_t from, size_t to)
{
    static const char *const other[] = {"long", "short", "unsigned", "signed", "const", "volatile"};
    for (size_t i = from; i < to; i++) {
        if (!in_word(text[i]) && !strchr("<>: ", text[i])) return false;
        if (in_word(text[i - 1])) continue;
        if (isdigit((unsigned char)text[i])) return false;
        size_t word = 0;
        while (i + word < to && in_word(text[i + word])) word++;
        for (size_t k = 0; k < sizeof other / sizeof *other; k++)
            if (word == strlen(other[k]) && !strncmp(text + i, other[k], word)) return false;
    }
    return true;
}

/* The last template list of a qualified name whose words gcc may print in another way, at [*open, *close]. Arguments of
 * the function itself always: gcc leaves out those with a default. */
static bool last_doubtful(const char *text, size_t *open, size_t *close)
{
    bool found = false, converts;
    for (size_t i = 0; text[i];) {
        size_t symbol = text[i] == 'o' ? operator_bytes(text, i, &converts) : 0;
        if (symbol || text[i] != '<') {
            i += symbol ? symbol : 1;
            continue;
        }
        size_t end = closing(text, i);
        if (!text[end] || !text[end + 1] || !i || !same_words(text, i + 1, end)) {
            *open = i;
            *close = end;
            found = true;
        }
        i = text[end] ? end + 1 : end;
    }
    return found;
}

/* Keeps text[from, to). */
static void keep_part(char *text, size_t from, size_t to)
{
    while (to > from && text[to - 1] == ' ') to--;
    memmove(text, text + from, to - from);
    text[to - from] = 0;
}

/* The name as a C or Fortran compiler knows it: "flux" for module::flux, "solve" for solve_, "inner" for inner.0. */
static void not_cxx(char *name)
{
    for (char *at; (at = strstr(name, "::"));) memmove(name, at + 2, strlen(at + 2) + 1);
    size_t count = strlen(name);
    char *dot = strchr(name, '.');
    if (dot && dot > name) *dot = 0;
    else if (count > 1 && name[count - 1] == '_') name[count - 1] = 0;
}

char *cxx_name_gcc_item(const char *text, bool *none)
{
    struct cxx_name n = cxx_name_parse(text);
    size_t open, close;
    *none = n.local || n.converts || n.begin == n.end;
    char *item = cxx_name_qualified(text);
    if (!item || *none) return item;
    while (last_doubtful(item, &open, &close)) {
        /* arguments of the function itself: up to their bracket. Those of its class: from their bracket on */
        if (!item[close] || !item[close + 1]) keep_part(item, 0, open);
        else keep_part(item, close, strlen(item));
    }
    if (!n.parameters) not_cxx(item);
    /* "operator,": gcc wants a backslash before the comma, but in its @file two, and the shell and CMake have rules of
     * their own */
    item[strcspn(item, ",")] = 0;
    *none = *item == 0;
    return item;
}
