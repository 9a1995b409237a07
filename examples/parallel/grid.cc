// Rank = replica × parts + part.
#include "examples/parallel/grid.h"

namespace example {

ddprun::Result<Grid> Grid::make(ddprun::trainer::ProcessGroup& world, int parts) {
    Grid grid;
    grid.parts = world.size() == 1 ? 1 : parts;
    if (world.size() % grid.parts)
        return ddprun::usage_error(std::to_string(world.size()) +
                                   " ranks cannot be cut into replicas of --parts " +
                                   std::to_string(parts) + "; start a multiple of it");
    grid.replicas = world.size() / grid.parts;
    grid.part = world.rank() % grid.parts;
    grid.replica = world.rank() / grid.parts;
    auto row = world.split(grid.replica);
    if (!row) return row.error();
    auto column = world.split(grid.part);
    if (!column) return column.error();
    grid.row = std::move(*row);
    grid.column = std::move(*column);
    return grid;
}

}  // namespace example
