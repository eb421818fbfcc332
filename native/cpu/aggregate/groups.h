// GNNAdvisor's workload (Wang et al., OSDI 2021): groups of a row's entries are the unit of work.
//
// Workers take the same number of groups each, so a huge row is shared by all of them. The paper
// adds each group to its row atomically. Here each chunk of groups adds its own rows; its share of
// a row that an earlier chunk began is stored separately and added afterwards, in order. The chunks
// depend on the groups only, so results are bitwise equal for any number of threads.
#pragma once

#include <cstdint>

namespace gnnbench {

int64_t count_groups(const int32_t* indptr, int64_t num_rows, int64_t group);

// Writes starts [groups + 1] and rows [groups]. A row without entries has no group.
void make_groups(const int32_t* indptr, int64_t num_rows, int64_t group, int32_t* starts,
                 int32_t* rows);

template <class S>
struct GroupSums {
  const int32_t* starts;
  const int32_t* rows;  // ascending
  int64_t num_groups;
  const int32_t* indices;
  const S* x;
  int64_t dim;
  int64_t num_rows;
  S* carry;  // [group_chunks(num_groups), dim], scratch
  S* out;    // [num_rows, dim]
};

int64_t group_chunks(int64_t num_groups);

template <class S>
void sum_groups(const GroupSums<S>& sums);

}  // namespace gnnbench
