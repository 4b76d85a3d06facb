#include "nn/attention.hpp"

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "nn/pulses.hpp"
#include "nn/vector_math.hpp"

namespace annulet::nn {
namespace {

using Eigen::internal::pmadd;
using Eigen::internal::pmul;
using Eigen::internal::psub;

constexpr Elements kStripElements = 32'768;  // two strips of these stay in the second-level cache

template <class T>
Elements whole_packets(Elements n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

Elements whole_tiles(Elements rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

template <class T>
Elements panels(Elements columns) {
  return (columns + kTileColumns<T> - 1) / kTileColumns<T>;
}

template <class T>
Elements rows_of_a_strip(Elements time) {
  const Elements row = panels<T>(time) * kTileColumns<T>;
  return std::clamp(kStripElements / row / kTileRows * kTileRows, Elements{kTileRows}, whole_tiles(time));
}

template <class T, class Pointer>
Rows<Pointer> part(Rows<Pointer> rows, Elements row) {
  return {rows.data + row * rows.row, rows.row};
}

// Rows of B: the inner dimension of a product.
struct Depth {
  Elements first, count;
};

// C = start + A B for those rows and all columns of B; A has at most kTileRows rows.
template <class T>
void multiply(Elements rows, Factor<T> a, const Panels<T>& b, Depth depth, const Sum<T>& sum) {
  const Rows<const T> start = sum.start;
  const Rows<T> c = sum.c;
  for (Elements j = 0; j < b.columns(); j += kTileColumns<T>) {
    const Elements columns = std::min(kTileColumns<T>, b.columns() - j);
    multiply_tile<T>({rows, depth.count, columns}, a, b.at(depth.first, j / kTileColumns<T>),
                     {{start.data ? start.data + j : nullptr, start.row}, {c.data + j, c.row}});
  }
}

}  // namespace

template <class T>
Elements Panels<T>::elements(Elements most_depth, Elements most_columns) {
  return most_depth * panels<T>(most_columns) * kTileColumns<T>;
}

template <class T>
Panels<T>::Panels(Elements most_depth, Elements most_columns)
    : data_(static_cast<std::size_t>(elements(most_depth, most_columns))) {}

template <class T>
void Panels<T>::pack_rows(Elements depth, Elements columns, Rows<const T> b) {
  depth_ = depth, columns_ = columns;
  for (Elements j = 0; j < columns; j += kTileColumns<T>) {
    nn::pack_rows<T>(depth, std::min(kTileColumns<T>, columns - j), {b.data + j, b.row}, panel(j / kTileColumns<T>));
  }
}

template <class T>
void Panels<T>::pack_transpose(Elements depth, Elements columns, Rows<const T> b) {
  depth_ = depth, columns_ = columns;
  for (Elements j = 0; j < columns; j += kTileColumns<T>) {
    nn::pack_transpose<T>(depth, std::min(kTileColumns<T>, columns - j), {b.data + j * b.row, b.row},
                          panel(j / kTileColumns<T>));
  }
}

template <class T>
AttentionScratch<T>::AttentionScratch(const AttentionOptions& options)
    : strip_rows(rows_of_a_strip<T>(options.context)), strip_row(panels<T>(options.context) * kTileColumns<T>) {
  const Elements time = options.context, depth = options.width / options.heads;
  keys_transposed = values_transposed = Panels<T>(depth, time);
  keys = values = Panels<T>(time, depth);
  strip_queries = strip_gradients = Panels<T>(strip_rows, depth);
  probabilities.resize(static_cast<std::size_t>(strip_rows * strip_row));
  score_gradients.resize(probabilities.size());
}

template <class T>
Elements AttentionScratch<T>::elements(const AttentionOptions& options) {
  const Elements time = options.context, depth = options.width / options.heads, rows = rows_of_a_strip<T>(time);
  return 2 * (Panels<T>::elements(depth, time) + Panels<T>::elements(time, depth) + Panels<T>::elements(rows, depth) +
              rows * panels<T>(time) * kTileColumns<T>);
}

template <class T>
Attention<T>::Attention(const AttentionOptions& options, Elements capacity, AttentionScratch<T>& scratch)
    : options_(options),
      depth_(options.width / options.heads),
      scale_(static_cast<T>(1 / std::sqrt(static_cast<double>(depth_)))),
      scratch_(scratch),
      softmax_(static_cast<std::size_t>(capacity * options.heads)) {}

template <class T>
typename Attention<T>::Head Attention<T>::head(Elements sequence, Elements h, Elements time, Matrix<const T> x) {
  const T* first = x.row(sequence * time) + h * depth_;
  Head head{};
  head.q = {first, x.columns};
  head.k = {first + options_.width, x.columns};
  head.v = {first + 2 * options_.width, x.columns};
  head.softmax = &softmax_[static_cast<std::size_t>((sequence * options_.heads + h) * time)];
  head.time = time;
  return head;
}

template <class T>
void Attention<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  ANNULET_EXPECTS(pass.time <= options_.context && x.rows % pass.time == 0, "rows are whole sequences");
  Pulses pulses(pass.progress);
  for (Elements b = 0; b < x.rows / pass.time; ++b) {
    for (Elements h = 0; h < options_.heads; ++h) {
      Head one = head(b, h, pass.time, x);
      one.out = {y.row(b * pass.time) + h * depth_, y.columns};
      forward(one);
      pulses.worked(pass.time * pass.time * depth_);  // two products, half of each
    }
  }
}

template <class T>
void Attention<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy,
                            Matrix<T> dx) {
  Pulses pulses(pass.progress);
  for (Elements b = 0; b < x.rows / pass.time; ++b) {
    for (Elements h = 0; h < options_.heads; ++h) {
      Head one = head(b, h, pass.time, x);
      const Elements first = b * pass.time, column = h * depth_;
      one.y = {y.row(first) + column, y.columns};
      one.dy = {dy.row(first) + column, dy.columns};
      one.dq = {dx.row(first) + column, dx.columns};
      one.dk = {one.dq.data + options_.width, dx.columns};
      one.dv = {one.dk.data + options_.width, dx.columns};
      backward(one);
      pulses.worked(pass.time * pass.time * depth_ * 5 / 2);  // five products, half of each
    }
  }
}

// to [tile.rows, tile.columns] = rows times the first columns of the panels, without the scale; in whole packets, so
// that something is written right of the last column too, which nobody reads.
template <class T>
void Attention<T>::scores(const Rows<const T>& rows, Shape tile, const Panels<T>& keys, T* to) const {
  for (Elements j = 0; j < tile.columns; j += kTileColumns<T>) {
    const Elements columns = std::min(kTileColumns<T>, whole_packets<T>(tile.columns - j));
    multiply_tile<T>({tile.rows, tile.depth, columns}, {rows.data, rows.row, 1}, keys.at(0, j / kTileColumns<T>),
                     {{nullptr, 0}, {to + j, scratch_.strip_row}});
  }
}

template <class T>
void Attention<T>::forward(const Head& head) {
  using P = Packet<T>;
  scratch_.keys_transposed.pack_transpose(depth_, head.time, head.k);
  scratch_.values.pack_rows(head.time, depth_, head.v);
  T* strip = scratch_.probabilities.data();
  for (Elements i = 0; i < head.time; i += kTileRows) {
    const Elements rows = std::min<Elements>(kTileRows, head.time - i), keys = i + rows;
    scores(part<T>(head.q, i), {rows, depth_, keys}, scratch_.keys_transposed, strip);
    for (Elements r = 0; r < rows; ++r) {
      T* row = strip + r * scratch_.strip_row;
      const Elements n = i + r + 1;  // keys that this query sees
      const T most = scale_ * largest(n, row);
      const P scale = splat<T>(scale_), shift = splat<T>(most);
      transform(
          n, row, [&](P s) { return exponential<T>(psub(pmul(s, scale), shift)); }, row);
      std::fill(row + n, row + keys, T(0));  // keys of this tile that come after the query
      const T sum = sum_of<T>(
          n, [](P p) { return p; }, row);
      head.softmax[i + r] = {most, 1 / sum};
    }
    const Rows<T> out = part<T>(head.out, i);
    multiply<T>(rows, {strip, scratch_.strip_row, 1}, scratch_.values, {0, keys}, {{nullptr, 0}, out});
    for (Elements r = 0; r < rows; ++r) {
      const P factor = splat<T>(head.softmax[i + r].inverse_sum);
      transform(
          depth_, out.data + r * out.row, [&](P o) { return pmul(o, factor); }, out.data + r * out.row);
    }
  }
}

template <class T>
void Attention<T>::backward(const Head& head) {
  scratch_.keys_transposed.pack_transpose(depth_, head.time, head.k);
  scratch_.values_transposed.pack_transpose(depth_, head.time, head.v);
  scratch_.keys.pack_rows(head.time, depth_, head.k);
  for (Elements first = 0; first < head.time; first += scratch_.strip_rows) {
    const Elements end = std::min(head.time, first + scratch_.strip_rows);
    scratch_.strip_queries.pack_rows(end - first, depth_, part<T>(head.q, first));
    scratch_.strip_gradients.pack_rows(end - first, depth_, part<T>(head.dy, first));
    recompute_strip(head, first, end);
    add_strip(head, first, end);
  }
}

// P and dS = P (dP - D) / sqrt(d) of the queries [first, end), with dP = dO V^T and D = dO . O; and dQ = dS K.
template <class T>
void Attention<T>::recompute_strip(const Head& head, Elements first, Elements end) {
  using P = Packet<T>;
  for (Elements i = first; i < end; i += kTileRows) {
    const Elements rows = std::min<Elements>(kTileRows, end - i), keys = i + rows;
    T* p = scratch_.probabilities.data() + (i - first) * scratch_.strip_row;
    T* ds = scratch_.score_gradients.data() + (i - first) * scratch_.strip_row;
    scores(part<T>(head.q, i), {rows, depth_, keys}, scratch_.keys_transposed, p);
    scores(part<T>(head.dy, i), {rows, depth_, keys}, scratch_.values_transposed, ds);
    for (Elements r = 0; r < rows; ++r) {
      T* p_row = p + r * scratch_.strip_row;
      T* ds_row = ds + r * scratch_.strip_row;
      const Elements n = i + r + 1;
      const auto [most, inverse_sum] = head.softmax[i + r];
      const P scale = splat<T>(scale_), shift = splat<T>(most), factor = splat<T>(inverse_sum);
      transform(
          n, p_row, [&](P s) { return pmul(factor, exponential<T>(psub(pmul(s, scale), shift))); }, p_row);
      const T dot = sum_of<T>(
          depth_, [](P o, P d) { return pmul(o, d); }, head.y.data + (i + r) * head.y.row,
          head.dy.data + (i + r) * head.dy.row);
      const P mean = splat<T>(dot);
      const auto slope = [&](P one, P d) { return pmul(pmul(one, scale), psub(d, mean)); };
      transform(n, ds_row, slope, p_row, ds_row);
      std::fill(p_row + n, p_row + keys, T(0));
      std::fill(ds_row + n, ds_row + keys, T(0));
    }
    multiply<T>(rows, {ds, scratch_.strip_row, 1}, scratch_.keys, {0, keys}, {{nullptr, 0}, part<T>(head.dq, i)});
  }
}

// dV += P^T dO and dK += dS^T Q by the queries [first, end); keys from `first` on get their first part.
template <class T>
void Attention<T>::add_strip(const Head& head, Elements first, Elements end) const {
  for (Elements j = 0; j < end; j += kTileRows) {
    const Elements rows = std::min<Elements>(kTileRows, end - j);
    const Elements from = std::max(first, j);  // earlier queries do not see these keys
    const Elements offset = (from - first) * scratch_.strip_row + j;
    const Depth queries{from - first, end - from};
    const auto add = [&](const AlignedVector<T>& factors, const Panels<T>& b, Rows<T> c) {
      const Rows<const T> start{j < first ? c.data : nullptr, c.row};
      multiply<T>(rows, {factors.data() + offset, 1, scratch_.strip_row}, b, queries, {start, c});
    };
    add(scratch_.probabilities, scratch_.strip_gradients, part<T>(head.dv, j));
    add(scratch_.score_gradients, scratch_.strip_queries, part<T>(head.dk, j));
  }
}

template class Panels<float>;
template class Panels<double>;
template struct AttentionScratch<float>;
template struct AttentionScratch<double>;
template class Attention<float>;
template class Attention<double>;

}  // namespace annulet::nn
