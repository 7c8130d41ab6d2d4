#include "modurob/dynamics.h"

#include <string.h>

typedef char row_is_plain[sizeof(mr_row) == MR_ROW_SIZE * sizeof(mr_real) ? 1 : -1];

enum { Q, COS, SIN, V, X }; /* of a record */

static const mr_real *row_of(const mr_table *table, int link)
{
  return table->rows[link].p; /* the first number of the row */
}

static void call(mr_kernel kernel, const mr_table *table, mr_work *work, int joint, mr_real *parent,
                 mr_real *out, int stride)
{
  kernel(row_of(table, joint + 1), work->states[joint + 1], parent, work->records[joint], out,
         stride);
}

static void add_friction(const mr_passes *passes, const mr_table *table, mr_work *work, mr_real *y)
{
  for (int k = 0; table->has_friction && k < table->joint_count; k++) {
    call(passes->friction, table, work, k, NULL, y + k, 1);
  }
}

/* Every joint with every joint between it and the base. */
static void pair_joints(const mr_passes *passes, const mr_table *table, mr_work *work, mr_real *y)
{
  const int n = table->joint_count;
  for (int i = 0; i < n; i++) {
    if (passes->lift) {
      passes->lift(work->states[i + 1], work->carried);
    }
    for (int at = i; table->parent[at] > 0; at = table->parent[at] - 1) {
      const int j = table->parent[at] - 1;
      if (passes->carry[0]) {
        call(passes->carry[table->pattern[at]], table, work, at, work->carried, NULL, 0);
      }
      passes->pair(work->states[i + 1], work->states[j + 1], work->carried, y + i * n + j,
                   y + j * n + i, n * n);
    }
  }
}

/* The whole algorithm; x is its third input, v and x may be NULL for zero. */
static void walk(const mr_passes *passes, const mr_table *table, mr_work *work, const mr_real *q,
                 const mr_real *v, const mr_real *x, mr_real *y)
{
  const int n = table->joint_count, stride = passes->pair ? n * n : n;
  for (int k = 0; k < n; k++) {
    mr_real *record = work->records[k];
    record[Q] = q[k];
    record[COS] = mr_cos(q[k]);
    record[SIN] = mr_sin(q[k]);
    record[V] = v ? v[k] : 0;
    record[X] = x ? x[k] : 0;
  }
  if (passes->pair) { /* joints on different branches have zeros */
    memset(y, 0, (size_t)(passes->matrices * n * n) * sizeof *y);
  }
  if (passes->friction && passes->friction_first) {
    add_friction(passes, table, work, y);
  }
  passes->base(row_of(table, 0), work->states[0], NULL, NULL, NULL, 0);
  for (int k = 0; k < n; k++) {
    call(passes->outward[table->pattern[k]], table, work, k, work->states[table->parent[k]], NULL,
         0);
  }
  for (int k = 0; passes->begin && k < n; k++) {
    call(passes->begin, table, work, k, NULL, NULL, 0);
  }
  for (int k = n - 1; passes->inward[0] && k >= 0; k--) {
    call(passes->inward[table->pattern[k]], table, work, k, work->states[table->parent[k]],
         passes->pair ? y + k * n + k : y + k, stride);
  }
  if (passes->turn) {
    passes->turn(row_of(table, 0), work->states[0], NULL, NULL, y, 1);
  }
  for (int k = 0; passes->back[0] && k < n; k++) {
    call(passes->back[table->pattern[k]], table, work, k, work->states[table->parent[k]], y + k,
         stride);
  }
  if (passes->friction && !passes->friction_first) {
    add_friction(passes, table, work, y);
  }
  if (passes->pair) {
    pair_joints(passes, table, work, y);
  }
  for (int k = 1; passes->output && k < table->part_count; k++) {
    const mr_part *part = &table->parts[k];
    passes->output(part->pose.R, work->states[part->link], NULL, NULL, y + 12 * (k - 1), 1);
  }
}

void mr_inverse_dynamics(const mr_table *table, mr_work *work, const mr_real *q, const mr_real *v,
                         const mr_real *a, mr_real *tau)
{
  walk(&mr_inverse_dynamics_passes, table, work, q, v, a, tau);
}

void mr_forward_dynamics(const mr_table *table, mr_work *work, const mr_real *q, const mr_real *v,
                         const mr_real *tau, mr_real *a)
{
  walk(&mr_forward_dynamics_passes, table, work, q, v, tau, a);
}

void mr_mass_matrix(const mr_table *table, mr_work *work, const mr_real *q, mr_real *M)
{
  walk(&mr_mass_matrix_passes, table, work, q, NULL, NULL, M);
}

void mr_inverse_dynamics_derivatives(const mr_table *table, mr_work *work, const mr_real *q,
                                     const mr_real *v, const mr_real *a, mr_real *D)
{
  walk(&mr_inverse_dynamics_derivatives_passes, table, work, q, v, a, D);
}

void mr_forward_kinematics(const mr_table *table, mr_work *work, const mr_real *q, mr_real *T)
{
  walk(&mr_forward_kinematics_passes, table, work, q, NULL, NULL, T);
}

void mr_center_of_mass(const mr_table *table, mr_work *work, const mr_real *q, mr_real c[3])
{
  walk(&mr_center_of_mass_passes, table, work, q, NULL, NULL, c);
}
