// A system call that leaves errno alone, for a process that still shares its parent's memory
// (worker_child): errno is the parent's there.
//
// The result, or minus the error. Nothing of the C library is entered. Where kBareCalls is false, on
// other processors, errno is written after all, and memory must not be shared.
// Source: syscall(2), "Architecture calling conventions".
#pragma once

#include <unistd.h>

#include <cerrno>
#include <type_traits>

namespace ddprun::agent {

#if defined(__x86_64__)
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

template <class T>
long as_word(T value) {
    if constexpr (std::is_null_pointer_v<T>)
        return 0;
    else if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<long>(value);
    else
        return static_cast<long>(value);
}

template <class A = long, class B = long, class C = long, class D = long>
long bare_call(long number, A a = {}, B b = {}, C c = {}, D d = {}) {
    return bare_call_of_words(number, as_word(a), as_word(b), as_word(c), as_word(d));
}

}  // namespace ddprun::agent
