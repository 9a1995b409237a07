// Makes a system call without touching errno. worker_child needs this: its child shares the
// keeper's memory until exec, so errno in the child is the keeper's errno.
//
// The functions return the kernel's result: zero or more, or minus the error number. They do not
// enter the C library. On processors other than x86-64 and AArch64 kBareCalls is false; there errno
// is written, so memory must not be shared.
//
// Source: syscall(2), "Architecture calling conventions".
#pragma once

#include <unistd.h>

#include <cerrno>
#include <type_traits>

namespace ddprun::agent {

#if defined(__x86_64__)
// rcx and r11 are listed as clobbered because the syscall instruction overwrites them.
inline constexpr bool kBareCalls = true;
inline long bare_call_of_words(long number, long a, long b, long c, long d) {
    long result = 0;
    register long fourth asm("r10") = d;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                 : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
inline constexpr bool kBareCalls = true;
inline long bare_call_of_words(long number, long a, long b, long c, long d) {
    register long which asm("x8") = number;
    register long first asm("x0") = a;
    register long second asm("x1") = b;
    register long third asm("x2") = c;
    register long fourth asm("x3") = d;
    asm volatile("svc 0"
                 : "+r"(first)
                 : "r"(which), "r"(second), "r"(third), "r"(fourth)
                 : "memory");
    return first;
}
#else
inline constexpr bool kBareCalls = false;
inline long bare_call_of_words(long number, long a, long b, long c, long d) {
    const long result = ::syscall(number, a, b, c, d);
    return result < 0 ? -errno : result;
}
#endif

// Converts an argument to the machine word that the kernel expects. A null pointer becomes 0.
template <class T>
long as_word(T value) {
    if constexpr (std::is_null_pointer_v<T>)
        return 0;
    else if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<long>(value);
    else
        return static_cast<long>(value);
}

// System calls here have at most four arguments. Missing ones are 0.
template <class A = long, class B = long, class C = long, class D = long>
long bare_call(long number, A a = {}, B b = {}, C c = {}, D d = {}) {
    return bare_call_of_words(number, as_word(a), as_word(b), as_word(c), as_word(d));
}

}  // namespace ddprun::agent
