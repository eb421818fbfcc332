#include "cpu/aggregate/groups.h"

#include <algorithm>

#include "cpu/aggregate/values.h"
#include "cpu/common/multiversion.h"
#include "cpu/common/parallel.h"

namespace gnnbench {
namespace {

constexpr int64_t kGroupChunk = 64;
constexpr int64_t kRowChunk = 4096;

// Adds the group's rows of x to `to`, kLanes columns in registers.
template <int kLanes, class S>
GNNBENCH_INLINE void add_columns(const GroupSums<S>& s, int64_t group, int64_t column, S* to) {
  S acc[kLanes];
  for (int k = 0; k < kLanes; ++k) acc[k] = to[column + k];
  for (int64_t i = s.starts[group]; i < s.starts[group + 1]; ++i) {
    const S* from = s.x + s.indices[i] * s.dim + column;
    for (int k = 0; k < kLanes; ++k) acc[k] += from[k];
  }
  for (int k = 0; k < kLanes; ++k) to[column + k] = acc[k];
}

template <class S>
GNNBENCH_INLINE void add_group(const GroupSums<S>& s, int64_t group, S* to) {
  int64_t column = 0;
  for (; column + 64 <= s.dim; column += 64) add_columns<64>(s, group, column, to);
  for (; column + 8 <= s.dim; column += 8) add_columns<8>(s, group, column, to);
  for (; column < s.dim; ++column) add_columns<1>(s, group, column, to);
}

template <class S>
GNNBENCH_INLINE void add_groups(const GroupSums<S>& s, int64_t chunk, int64_t begin, int64_t end) {
  const int64_t of_earlier = begin > 0 ? s.rows[begin - 1] : -1;
  S* carry = s.carry + chunk * s.dim;
  std::fill(carry, carry + s.dim, S{0});
  for (int64_t g = begin; g < end; ++g) {
    add_group(s, g, s.rows[g] == of_earlier ? carry : s.out + s.rows[g] * s.dim);
  }
}

GNNBENCH_CLONES void chunk(const GroupSums<float>& s, int64_t c, int64_t begin, int64_t end) {
  add_groups(s, c, begin, end);
}

GNNBENCH_CLONES void chunk(const GroupSums<double>& s, int64_t c, int64_t begin, int64_t end) {
  add_groups(s, c, begin, end);
}

}  // namespace

int64_t count_groups(const int32_t* indptr, int64_t num_rows, int64_t group) {
  int64_t groups = 0;
  for (int64_t row = 0; row < num_rows; ++row) {
    groups += (indptr[row + 1] - indptr[row] + group - 1) / group;
  }
  return groups;
}

void make_groups(const int32_t* indptr, int64_t num_rows, int64_t group, int32_t* starts,
                 int32_t* rows) {
  int64_t g = 0;
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = indptr[row]; i < indptr[row + 1]; i += group) {
      starts[g] = static_cast<int32_t>(i);
      rows[g++] = static_cast<int32_t>(row);
    }
  }
  starts[g] = indptr[num_rows];
}

int64_t group_chunks(int64_t num_groups) { return num_chunks(num_groups, kGroupChunk); }

template <class S>
void sum_groups(const GroupSums<S>& s) {
  parallel_chunks(s.num_rows, kRowChunk, [&](int64_t, int64_t begin, int64_t end) {
    std::fill(s.out + begin * s.dim, s.out + end * s.dim, S{0});
  });
  parallel_chunks(s.num_groups, kGroupChunk,
                  [&](int64_t c, int64_t begin, int64_t end) { chunk(s, c, begin, end); });
  for (int64_t c = 1; c < group_chunks(s.num_groups); ++c) {
    const int64_t first = c * kGroupChunk;
    if (s.rows[first] != s.rows[first - 1]) continue;
    const S* carry = s.carry + c * s.dim;
    S* to = s.out + s.rows[first] * s.dim;
    for (int64_t k = 0; k < s.dim; ++k) to[k] += carry[k];
  }
}

template void sum_groups(const GroupSums<float>&);
template void sum_groups(const GroupSums<double>&);

}  // namespace gnnbench
