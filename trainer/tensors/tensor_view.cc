// Names a tensor in a file, and its shape in messages.
#include "trainer/tensors/tensor_view.h"

namespace ddprun::trainer {

std::string key_of(const TensorView& tensor) {
    if (!tensor.place) return tensor.name;
    return slice_name(tensor.name, {tensor.place->offset, tensor.shape}, tensor.place->whole);
}

std::string describe_shape(DataType type, const std::vector<std::uint64_t>& shape) {
    return std::string(to_string(type)) + " " + describe_extents(shape);
}

}  // namespace ddprun::trainer
