// One visitor out of several lambdas, for std::visit.
#pragma once

namespace ddprun {

template <class... F>
struct Overload : F... {
    using F::operator()...;
};

}  // namespace ddprun
