// GNNAdvisor's workload (Wang et al., OSDI 2021): groups of a row's entries are the unit of work.
//
// Workers take the same number of groups each, so a huge row occupies them all. Where the paper
// adds each group to its row atomically, here a chunk of groups adds its own rows, and what it has
// of a row that an earlier chunk began is kept aside and added afterwards, in order. The chunks
// depend on the groups alone: the bits are the same for any number of threads.
#pragma once

#include <cstdint>

namespace gnnbench {

int64_t count_groups(const int32_t* indptr, int64_t num_rows, int64_t group);

// starts [groups + 1] and rows [groups]; a row without entries has no group.
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
