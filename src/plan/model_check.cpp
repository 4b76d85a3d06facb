#include "model_check.hpp"

#include <fmt/format.h>

namespace annulet::plan {
namespace {

constexpr double kMostParameters = 1e15;  // far from where 64 bits end
constexpr Elements kMostLayers = 100'000;

double as_double(Elements n) { return static_cast<double>(n); }

double rough_parameters(const Architecture& a) {
  double sum = 0;
  for (std::size_t k = 0; k + 1 < a.widths.size(); ++k) sum += as_double(a.widths[k]) * as_double(a.widths[k + 1]);
  const double queries = a.head_width == 0 ? as_double(a.width) : as_double(a.heads) * as_double(a.head_width);
  const double block = 4 * queries + 3 * as_double(a.ffn);
  const double ends = 2 * as_double(a.vocabulary) + as_double(a.positions);
  return sum + as_double(a.width) * (as_double(a.layers) * block + ends);
}

std::optional<Objection> objection_to(const Architecture& a) {
  if (a.kind == Kind::decoder && a.head_width == 0 && a.width % a.heads != 0) {
    return Objection{"heads",
                     fmt::format("{} heads do not divide a width of {} (each takes as many columns)", a.heads, a.width),
                     "Choose a width that is a multiple of the heads, or say how wide a head is"};
  }
  if (a.kv_heads != 0 && a.heads % a.kv_heads != 0) {
    return Objection{
        "kv_heads",
        fmt::format("{} heads of keys and values do not divide {} heads (each serves as many)", a.kv_heads, a.heads),
        "Choose a divisor of the heads"};
  }
  if (a.layers > kMostLayers) {
    return Objection{"layers", fmt::format("{} layers are too many (a plan lists the tensors of each)", a.layers),
                     fmt::format("Choose {} or fewer", kMostLayers)};
  }
  if (!(rough_parameters(a) <= kMostParameters)) {
    return Objection{a.kind == Kind::mlp ? "widths" : "width",
                     "the model has more than 10^15 parameters (more than the planner counts)",
                     "Look for a size with digits too many"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Objection> complete(Architecture& architecture) {
  Architecture& a = architecture;
  std::optional<Objection> objection = objection_to(a);
  if (objection || a.kind == Kind::mlp) return objection;
  if (a.kv_heads == 0) a.kv_heads = a.heads;
  if (a.head_width == 0) a.head_width = a.width / a.heads;
  return objection;
}

}  // namespace annulet::plan
