// Combines several lambdas into one visitor for std::visit.
#pragma once

namespace ddprun {

template <class... F>
struct Overload : F... {
    using F::operator()...;
};

}  // namespace ddprun
