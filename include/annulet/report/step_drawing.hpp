#pragma once
// One step in the terminal: a time axis in milliseconds; forward, backward, each bucket from ready to its end, exposed
// communication, optimiser; below it the same step as it was predicted, on the same axis.
#include <string>

#include "annulet/train/records.hpp"

namespace annulet::report {

enum class Colour { none, ansi };

struct DrawingOptions {
  int width = 80;  // columns; at least 60 are used
  Colour colour = Colour::none;
};

std::string draw_step(const train::ShownStep& step, const DrawingOptions& options);

// COLUMNS, else the size of the terminal (the launcher's, under one), else 80.
int terminal_width();

}  // namespace annulet::report
